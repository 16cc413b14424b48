/** Checks the requests that reach a conversation by RPC. */
import { z } from "zod";
import { knownTraceparent } from "../../../model/span.ts";
import { MAX_OUTPUT_BYTES, MAX_PROGRESS_BYTES } from "../../../protocol/executor-api.ts";
import { MAX_DEFER_MS } from "../../../protocol/operation-handle.ts";
import type { StartTurn } from "../../../protocol/requests.ts";
import {
  identifier,
  outcomeSchema,
  startTurn,
  submissionsSchema,
  type ToolOutcome,
  type ToolSubmission,
} from "../../../protocol/requests.ts";
import { defined } from "../../../shared/defined.ts";
import { tooLarge } from "../../../shared/errors.ts";
import type { Json } from "../../../shared/json.ts";
import type { Principal } from "../../../shared/principal.ts";
import { utf8Length } from "../../../shared/utf8.ts";
import { validate } from "../../../shared/validation.ts";
import type { UserMessage } from "../core/signals.ts";

/** A request for a turn. Members that equal their default are absent. */
export const startTurnSchema = startTurn.transform(({ tools, toolChoice, traceparent, ...others }) => ({
  ...others,
  ...defined({ traceparent: knownTraceparent(traceparent) }),
  ...(tools === undefined || tools.length === 0 ? {} : { tools }),
  ...(toolChoice === undefined || toolChoice === "auto" ? {} : { toolChoice }),
}));

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

/** Parses the progress of an operation. Throws `INVALID_INPUT`, or `TOO_LARGE` beyond its limit. */
export function parseProgress(value: unknown): Json | undefined {
  const progress = validate(z.json().optional(), value);
  if (progress === undefined || utf8Length(JSON.stringify(progress)) <= MAX_PROGRESS_BYTES) return progress;
  throw tooLarge(`The progress has more than ${MAX_PROGRESS_BYTES} bytes.`);
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
  throw tooLarge(message);
}
