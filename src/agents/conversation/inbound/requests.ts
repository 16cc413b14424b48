/** Checks the requests that reach a conversation by RPC. */

import { z } from "zod";
import { knownTraceparent } from "../../../model/span.ts";
import { budgetSchema } from "../../../protocol/budget.ts";
import type { StartTurn } from "../../../protocol/conversation-api.ts";
import { turnOrderSchema } from "../../../protocol/conversation-schemas.ts";
import { MAX_OUTPUT_BYTES } from "../../../protocol/executor-api.ts";
import { MAX_DEFER_MS } from "../../../protocol/operation-handle.ts";
import {
  approvalFields,
  identifier,
  outcomeSchema,
  stopFields,
  submissionsSchema,
  type ToolOutcome,
  type ToolSubmission,
  turnFields,
} from "../../../protocol/requests.ts";
import { contentSchema } from "../../../shared/content.ts";
import { defined } from "../../../shared/defined.ts";
import { DramatisError } from "../../../shared/errors.ts";
import type { Principal } from "../../../shared/principal.ts";
import { utf8Length } from "../../../shared/utf8.ts";
import { validate } from "../../../shared/validation.ts";
import type { UserMessage } from "../core/signals.ts";

const key = identifier.refine((text) => text.isWellFormed(), "Must be well-formed Unicode.");

export const startTurnSchema = z
  .strictObject({
    content: contentSchema,
    // RPC callers may pass `undefined` for omitted members.
    ...z.object(turnFields).partial().shape,
    idempotencyKey: key.optional(),
    maxOutputTokens: z.int().min(1).optional(),
    singleCalls: z.literal(true).optional(),
    foreground: z.literal(true).optional(),
    traceparent: z
      .string()
      .transform((header) => knownTraceparent(header))
      .optional(),
  })
  .transform(({ content, tools, toolChoice, traceparent, ...others }) => ({
    content,
    ...defined(others),
    ...defined({ traceparent }),
    ...(tools === undefined || tools.length === 0 ? {} : { tools }),
    ...(toolChoice === undefined || toolChoice === "auto" ? {} : { toolChoice }),
  }));

export const updateSchema = z
  .strictObject({
    turns: turnOrderSchema.optional(),
    budget: budgetSchema.nullable().optional(),
    orchestration: z.boolean().optional(),
  })
  .transform(defined);

/** RPC callers may pass `undefined` for omitted members. */
export const stopSchema = z.strictObject(stopFields).partial().transform(defined);

/** RPC callers may pass `undefined` for an omitted reason. */
export const approvalSchema = z.strictObject({
  approved: approvalFields.approved,
  reason: approvalFields.reason.optional(),
});

export const subscribeSchema = z.strictObject({
  from: z.int().min(0).optional(),
  turnId: z.string().optional(),
  untilWaiting: z.boolean().optional(),
  encoding: z.enum(["sse", "ndjson"]),
});

/** The payload of a signal that stops a turn, or the conversation. */
export const cancelSignalSchema = z.strictObject({ turnId: identifier.exactOptional(), ...stopFields });

/** The payload of a signal that resumes the conversation. */
export const resumeSignalSchema = z.strictObject(stopFields);

/** Returns the message of a user who starts a turn. */
export function messageOf({ subject }: Principal, { idempotencyKey, ...data }: StartTurn): UserMessage {
  return {
    type: "conversation.user.message",
    ...defined({ id: idempotencyKey }),
    caller: { type: "user", userId: subject },
    data,
  };
}

export const deferSchema = z
  .strictObject({
    operationId: identifier,
    attempt: z.int().min(1),
    expiresInMs: z.int().min(1).max(MAX_DEFER_MS).optional(),
  })
  .transform(({ operationId, attempt, expiresInMs }) => ({
    operationId,
    attempt,
    ...defined({ expiresInMs }),
  }));

/** Parses the result of a deferred operation. Throws as `parseSubmissions`. */
export function parseOutcome(value: unknown): ToolOutcome {
  const outcome = validate(outcomeSchema, value);
  checkSize(outcome);
  // SAFETY: the schema has checked that results are JSON.
  return outcome as ToolOutcome;
}

/** Parses results from a client. Throws `INVALID_INPUT`, or `TOO_LARGE` beyond the limit of a tool's output. */
export function parseSubmissions(value: unknown): ToolSubmission[] {
  const results = validate(submissionsSchema, value);
  results.forEach(checkSize);
  // SAFETY: the schema has checked that results are JSON.
  return results as ToolSubmission[];
}

function checkSize({ result }: { result?: unknown }): void {
  const bytes = result === undefined ? 0 : utf8Length(JSON.stringify(result));
  if (bytes <= MAX_OUTPUT_BYTES) return;
  const message = `A result has ${bytes} bytes of JSON; the limit is ${MAX_OUTPUT_BYTES}. Send less.`;
  throw new DramatisError("TOO_LARGE", message);
}
