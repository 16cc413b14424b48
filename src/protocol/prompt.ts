/** The newest request of a turn to its model, as operators see it. */
import { z } from "zod";
import { anyJson, ids } from "./scalars.ts";

const promptPart = z.strictObject({
  name: z.enum(["instructions", "tools", "output", "history", "notes", "message", "moves", "hook"]).meta({
    description:
      "`history`: messages of earlier turns. `notes`: memories, other turns and participants. `message`: the message of the turn. `moves`: the calls and results of the turn so far. `hook`: the request of the persona's context hook.",
  }),
  tokens: z.int().min(0).meta({ description: "An estimate." }),
  count: z.int().min(1).meta({ description: "Messages, instructions or tools." }),
});

export type PromptPart = z.infer<typeof promptPart>;

export const turnPrompt = z
  .strictObject({
    turnId: ids.turn,
    agentId: z.string(),
    provider: z.string(),
    model: z.string(),
    tokens: z.int().min(0).meta({ description: "The estimate of all parts." }),
    parts: z.array(promptPart),
    missing: z.array(z.enum(["memories", "withdrawn", "hook", "notes"])).meta({
      description:
        "Parts of the original request that are not stored after the turn: texts of recalled memories, withdrawn answers, the request of a context hook, and notes on other agents and quoted messages.",
    }),
    request: anyJson.meta({
      description:
        "The body of the provider's request, as the present code builds it. Media are names in brackets.",
    }),
  })
  .meta({ id: "TurnPrompt", description: "The newest request of a turn to its model, by parts." });

export type TurnPrompt = z.infer<typeof turnPrompt>;
