/** The requests of a turn to its models, as operators see them. */
import { z } from "zod";
import { anyJson, anyValue, ids } from "./scalars.ts";

const promptPart = z.strictObject({
  name: z.enum(["instructions", "tools", "output", "history", "notes", "message", "moves", "hook"]).meta({
    description:
      "`history`: messages of earlier turns. `notes`: memories, other turns and participants. `message`: the message of the turn. `moves`: the calls and results of the turn so far. `hook`: the request of the persona's context hook.",
  }),
  tokens: z.int().min(0).meta({ description: "An estimate." }),
  count: z.int().min(1).meta({ description: "Messages, instructions or tools." }),
});

export type PromptPart = z.infer<typeof promptPart>;

const MISSING = ["memories", "withdrawn", "hook", "notes", "history", "media", "erased"] as const;

export const turnPrompt = z
  .strictObject({
    turnId: ids.turn,
    agentId: z.string(),
    call: z
      .int()
      .min(1)
      .meta({ description: "The number of the call among the `calls` of the turn, from 1." }),
    calls: z.int().min(1).meta({ description: "The number of calls." }),
    provider: z.string(),
    model: z.string(),
    tokens: z.int().min(0).meta({ description: "The estimate of all parts." }),
    parts: z.array(promptPart),
    missing: z.array(z.enum(MISSING)).meta({
      description:
        "Parts of the original request that are not stored. `memories`: texts of recalled memories. `withdrawn`: withdrawn answers, and the parts of a paused reply. `hook`: the request of a context hook. `notes`: notes on other agents, other turns, artifacts and quoted messages. `history`: the history of an earlier cycle, or before it was cut. `media`: images and files. `erased`: erased contents.",
    }),
    request: anyJson.meta({
      description:
        "The body of the provider's request, as the present code builds it. Media are names in brackets.",
    }),
    reply: z.exactOptional(
      anyValue.meta({
        description:
          "The reply as stored: its text, tool calls, finish reason and usage, as `raw` of a move. Absent before the reply, and if no reply of the call is stored.",
      }),
    ),
  })
  .meta({ id: "TurnPrompt", description: "The request of a model call of a turn, by parts." });

export type TurnPrompt = z.infer<typeof turnPrompt>;
