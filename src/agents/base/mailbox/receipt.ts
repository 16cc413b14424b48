/**
 * What a receiver decides about an envelope that has arrived, from what it remembers of the operation. Pure.
 *
 * MAIL-6  An operation is acted upon at most once: after that, every attempt gets the recorded result.
 * MAIL-7  A recorded refusal holds for the attempt it was given to and all earlier ones, however late they arrive. Only
 *         an attempt with a higher number is looked at anew.
 * MAIL-8  An operation is forgotten only at an age at which it is refused anyway: 35 days, refused from 32 days on,
 *         redelivered until 30, sent until 14.
 */

import { ageOf } from "../../../protocol/envelope.ts";
import type { Answer } from "../../../protocol/mailbox-api.ts";
import type { ErrorData } from "../../../shared/errors.ts";
import type { Json } from "../../../shared/json.ts";
import { ACT_WITHIN_MS, MAX_CLOCK_AHEAD_MS } from "./limits.ts";

/** What a receiver remembers of an operation. */
export type Receipt =
  | { type: "done"; result: Json }
  /** Refused up to and including this attempt. */
  | { type: "refused"; attempt: number; error: ErrorData };

export type ReceiptDecision = { type: "act" } | { type: "answer"; answer: Answer };

/** What to do with attempt `attempt` of an operation; `receipt` is what is remembered of it. */
export function decideReceipt(
  operationId: string,
  attempt: number,
  receipt: Receipt | undefined,
  now: number,
): ReceiptDecision {
  if (receipt?.type === "done") {
    return { type: "answer", answer: { type: "done", result: receipt.result } };
  }
  if (receipt?.type === "refused" && attempt <= receipt.attempt) {
    return { type: "answer", answer: { type: "refused", error: receipt.error, recorded: true } };
  }
  const age = ageOf(operationId, now);
  if (age <= ACT_WITHIN_MS && age >= -MAX_CLOCK_AHEAD_MS) return { type: "act" };
  return { type: "answer", answer: { type: "refused", error: WRONG_AGE, recorded: false } };
}

const WRONG_AGE: ErrorData = {
  code: "INVALID_INPUT",
  message: "The operation is too old, or from the future: send a new envelope under a new operation id.",
  retriable: false,
};
