/**
 * A receiver's decision about an incoming envelope, from its receipt of the operation. Pure.
 *
 * MAIL-6  A receiver acts on an operation at most once. Each later attempt gets the recorded result.
 * MAIL-7  A recorded refusal holds for its own attempt and all earlier attempts, even if they arrive late. Only an attempt with a higher
 *         number gets a new decision.
 * MAIL-8  A receiver deletes a receipt only when it would refuse the operation because of its age. Operations are sent until 14 days,
 *         redelivered until 30, refused from 32 and forgotten at 35.
 */
import { ageOf } from "../../../protocol/envelope.ts";
import type { Answer } from "../../../protocol/mailbox-api.ts";
import type { ErrorData } from "../../../shared/errors.ts";
import type { Json } from "../../../shared/json.ts";
import { ACT_WITHIN_MS, MAX_CLOCK_AHEAD_MS } from "./mailbox-limits.ts";

/** A receiver's record of an operation. */
export type Receipt =
  | { type: "done"; result: Json }
  /** Refused up to and including this attempt. */
  | { type: "refused"; attempt: number; error: ErrorData };

export type ReceiptDecision = { type: "act" } | { type: "answer"; answer: Answer };

export function decideReceipt(
  operationId: string,
  attempt: number,
  receipt: Receipt | undefined,
  now: number,
): ReceiptDecision {
  if (receipt?.type === "done") return { type: "answer", answer: { type: "done", result: receipt.result } };
  if (receipt?.type === "refused" && attempt <= receipt.attempt)
    return { type: "answer", answer: { type: "refused", error: receipt.error, recorded: true } };
  const age = ageOf(operationId, now);
  if (age <= ACT_WITHIN_MS && age >= -MAX_CLOCK_AHEAD_MS) return { type: "act" };
  return { type: "answer", answer: { type: "refused", error: WRONG_AGE, recorded: false } };
}

const WRONG_AGE: ErrorData = {
  code: "INVALID_INPUT",
  message: "The operation is too old or in the future; send a new envelope under a new operation id.",
  retriable: false,
};
