/** What crosses between two mailboxes beside the envelope: which attempt this is, and how the receiver answers it. */
import { z } from "zod";
import type { ErrorData } from "../../shared/errors.ts";
import { isJson, type Json } from "../../shared/json.ts";
import type { Envelope } from "./envelope.ts";

/** An attempt to deliver. */
export interface Attempt {
  /** Ascends strictly over all attempts for one operation, redeliveries and crashes included. */
  number: number;
  /** No further attempt follows by itself: whatever the receiver refuses now, it refuses for good. */
  last: boolean;
}

export const attemptSchema = z.strictObject({ number: z.int().min(1), last: z.boolean() });

export type Answer =
  /** The envelope was acted upon, now or before. */
  | { type: "done"; result: Json }
  /** It was not acted upon. `recorded`: nor will it be by this or any earlier attempt, however late it arrives. */
  | { type: "refused"; error: ErrorData; recorded: boolean }
  /** It was not acted upon; a later attempt may be. */
  | { type: "busy"; error: ErrorData; retryAfterMs?: number };

const errorSchema = z.object({
  code: z.string().max(100),
  message: z.string(),
  retriable: z.boolean(),
  errors: z.exactOptional(z.array(z.object({ path: z.string(), message: z.string() }))),
});

export const answerSchema: z.ZodType<Answer> = z.discriminatedUnion("type", [
  z.object({ type: z.literal("done"), result: z.custom<Json>(isJson) }),
  z.object({ type: z.literal("refused"), error: errorSchema, recorded: z.boolean() }),
  z.object({
    type: z.literal("busy"),
    error: errorSchema,
    retryAfterMs: z.exactOptional(z.number().min(0)),
  }),
]);

/** The RPC surface that mailboxes use of each other. */
export interface MailboxPeer {
  receive(envelope: Envelope, attempt: Attempt): Promise<Answer>;
}
