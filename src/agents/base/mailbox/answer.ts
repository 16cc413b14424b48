/** What crosses between two mailboxes beside the envelope: which attempt this is, and how the receiver answers it. */
import { z } from "zod";
import type { ErrorData } from "../../../shared/errors.ts";
import { isJson, type Json } from "../../../shared/json.ts";
import type { Envelope } from "../../../protocol/envelope.ts";
import { MAX_ERROR_CHARACTERS, MAX_ERROR_ISSUES, MAX_ISSUE_CHARACTERS } from "./limits.ts";

/** An attempt to deliver. */
export interface Attempt {
  /** Ascends strictly over all attempts for one operation, redeliveries and crashes included. */
  number: number;
  /** No further attempt follows by itself: whatever the receiver refuses now, it refuses for good. */
  last: boolean;
}

/** As a receiver reads it: members that it does not know, a newer release's, are left out. */
export const attemptSchema = z.object({ number: z.int().min(1), last: z.boolean() });

export type Answer =
  /** The envelope was acted upon, now or before. */
  | { type: "done"; result: Json }
  /** It was not acted upon. `recorded`: nor will it be by this or any earlier attempt, however late it arrives. */
  | { type: "refused"; error: ErrorData; recorded: boolean }
  /** It was not acted upon; a later attempt may be. */
  | { type: "busy"; error: ErrorData; retryAfterMs?: number };

/** An error that fits beside an envelope in one row. */
export function boundedError({ code, message, retriable, errors }: ErrorData): ErrorData {
  const issues = errors?.slice(0, MAX_ERROR_ISSUES).map((issue) => ({
    path: cut(issue.path, MAX_ISSUE_CHARACTERS),
    message: cut(issue.message, MAX_ISSUE_CHARACTERS),
  }));
  return {
    code,
    message: cut(message, MAX_ERROR_CHARACTERS),
    retriable,
    ...(issues === undefined ? {} : { errors: issues }),
  };
}

function cut(text: string, length: number): string {
  return text.slice(0, length).toWellFormed();
}

const errorSchema = z
  .object({
    code: z.string().max(100),
    message: z.string(),
    retriable: z.boolean(),
    errors: z.exactOptional(z.array(z.object({ path: z.string(), message: z.string() }))),
  })
  .transform(boundedError);

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
