/** The small parts that answers have in common. */
import { z } from "zod";
import { idSchema } from "../../library/reference.ts";
import { CONVERSATION_ID, TURN_ID } from "../../shared/identifiers.ts";
import type { Json } from "../../shared/json.ts";

export const agentId = idSchema.meta({ description: "Id of an agent.", example: "assistant" });
export const conversationId = z
  .string()
  .regex(CONVERSATION_ID)
  .meta({ description: "Id of a conversation.", example: "conv_01JD0000000000000000000000" });
export const turnId = z
  .string()
  .regex(TURN_ID)
  .meta({ description: "Id of a turn.", example: "turn_01JD0000000000000000000001" });
export const messageId = z
  .string()
  .meta({ description: "Id of a message.", example: "msg_01JD00000000000000000000A0" });
export const operationId = z.string().meta({ description: "Id of a tool call." });
export const time = z.iso
  .datetime()
  .meta({ description: "ISO 8601, UTC.", example: "2026-03-01T10:00:00.000Z" });
export const json = z.unknown().meta({ description: "Any JSON." }) as z.ZodType<Json>;
export const count = z.int().min(0);
