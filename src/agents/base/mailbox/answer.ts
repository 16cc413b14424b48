/** What crosses between two mailboxes beside the envelope: which attempt this is, and how the receiver answers it. */

import { z } from "zod";
import type { Answer } from "../../../protocol/mailbox-api.ts";
import { defined } from "../../../shared/defined.ts";
import type { ErrorData } from "../../../shared/errors.ts";
import { isJson, type Json } from "../../../shared/json.ts";
import { MAX_ERROR_CHARACTERS, MAX_ERROR_ISSUES, MAX_ISSUE_CHARACTERS } from "./limits.ts";

/** As a receiver reads it: members that it does not know, a newer release's, are left out. */
export const attemptSchema = z.object({ number: z.int().min(1), last: z.boolean() });

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
    ...defined({ errors: issues }),
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
