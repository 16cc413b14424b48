/** Schemas of the values that many answers have in common. */
import { z } from "zod";
import { agentIdSchema, definitionIdSchema } from "../shared/id-schemas.ts";
import { CONVERSATION_ID, isOperationId, RUN_ID, TURN_ID } from "../shared/identifiers.ts";
import type { Json, JsonValue } from "../shared/json.ts";

export const ids = {
  agent: agentIdSchema.meta({ description: "Id of an agent.", example: "assistant" }),
  conversation: z
    .string()
    .regex(CONVERSATION_ID)
    .meta({ description: "Id of a conversation.", example: "conv_01JD0000000000000000000000" }),
  turn: z
    .string()
    .regex(TURN_ID)
    .meta({ description: "Id of a turn.", example: "turn_01JD0000000000000000000001" }),
  message: z.string().meta({ description: "Id of a message.", example: "msg_01JD00000000000000000000A0" }),
  operation: z.string().refine(isOperationId).describe("Id of a tool call."),
  deadLetter: z
    .string()
    .refine(isOperationId)
    .meta({ description: "Id of an operation.", example: "op_01JD0000000000000000000000" }),
  library: definitionIdSchema.meta({ description: "Id of a library.", example: "support" }),
  definition: definitionIdSchema.meta({ description: "Id within the library.", example: "guide" }),
};

export const runId = z
  .string()
  .regex(RUN_ID)
  .meta({ description: "Id of a run.", example: "run_01JD0000000000000000000000" });

export const time = z.iso
  .datetime()
  .meta({ description: "ISO 8601, UTC.", example: "2026-03-01T10:00:00.000Z" });
export const anyJson = z.unknown().describe("Any JSON.") as z.ZodType<Json>;
/** The same in views that cross RPC. */
// SAFETY: `Json` is a `JsonValue` whose type does not recurse.
export const anyValue = anyJson as z.ZodType<unknown> as z.ZodType<JsonValue>;
export const count = z.int().min(0);
