/** The requests of a turn to its models, as operators see them. */
import { z } from "zod";
import { anyJson, anyValue, ids } from "./scalars.ts";

const promptPart = z.strictObject({
  name: z
    .enum(["instructions", "tools", "output", "history", "notes", "message", "moves", "hook"])
    .describe(
      "`history`: messages of earlier turns. `notes`: memories, other turns and participants. `message`: the message of the turn. `moves`: the calls and results of the turn so far. `hook`: the request of the persona's context hook.",
    ),
  tokens: z.int().min(0).describe("An estimate."),
  count: z.int().min(1).describe("Messages, instructions or tools."),
});

export type PromptPart = z.infer<typeof promptPart>;

const MISSING = ["memories", "withdrawn", "hook", "notes", "history", "media", "erased"] as const;

export const turnPrompt = z
  .strictObject({
    turnId: ids.turn,
    agentId: z.string(),
    call: z.int().min(1).describe("The number of the call among the `calls` of the turn, from 1."),
    calls: z.int().min(1).describe("The number of calls."),
    provider: z.string(),
    model: z.string(),
    tokens: z.int().min(0).describe("The estimate of all parts."),
    parts: z.array(promptPart),
    missing: z
      .array(z.enum(MISSING))
      .describe(
        "Parts of the original request that are not stored. `memories`: texts of recalled memories. `withdrawn`: withdrawn answers, and the parts of a paused reply. `hook`: the request of a context hook. `notes`: notes on other agents, other turns, artifacts and quoted messages. `history`: the history of an earlier cycle, or before it was cut. `media`: images and files. `erased`: erased contents.",
      ),
    request: anyJson.describe(
      "The body of the provider's request, as the present code builds it. Media are names in brackets.",
    ),
    reply: anyValue
      .describe(
        "The reply as stored: its text, tool calls, finish reason and usage, as `raw` of a move. Absent before the reply, and if no reply of the call is stored.",
      )
      .exactOptional(),
  })
  .meta({ id: "TurnPrompt", description: "The request of a model call of a turn, by parts." });

export type TurnPrompt = z.infer<typeof turnPrompt>;
