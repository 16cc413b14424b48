/** Schemas of what callers give a conversation by RPC. */
import { z } from "zod";
import { contentSchema, outputSchema } from "../../client/protocol.ts";
import { MAX_KEY_LENGTH } from "./signals.ts";

const key = z
  .string()
  .min(1)
  .max(MAX_KEY_LENGTH)
  .refine((text) => text.isWellFormed(), "Must be well-formed Unicode.");

export const startTurnSchema = z
  .strictObject({
    content: contentSchema,
    replyToMessageId: z.string().min(1).max(MAX_KEY_LENGTH).optional(),
    idempotencyKey: key.optional(),
    output: outputSchema.optional(),
  })
  .transform(({ content, replyToMessageId, idempotencyKey, output }) => ({
    content,
    ...(output === undefined ? {} : { output }),
    ...(replyToMessageId === undefined ? {} : { replyToMessageId }),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
  }));

export const subscribeSchema = z.strictObject({
  from: z.int().min(0).optional(),
  turnId: z.string().optional(),
  encoding: z.enum(["sse", "ndjson"]),
});
