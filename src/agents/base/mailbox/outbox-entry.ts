/**
 * The life of one envelope at its sender, as a pure state machine. The shell writes an entry before what it says is
 * done, so after a crash the entry knows at least as much as the receiver could have seen.
 *
 * MAIL-3  An entry ends in one outcome: `delivered`, `failed` or `unknown`.
 * MAIL-4  `failed` is concluded only from an answer that rules out the receiver's acting: a refusal that it recorded, or
 *         one when every attempt before was answered. Everything else that is not `delivered` is `unknown`, also a "not
 *         now" to the last attempt.
 * MAIL-5  Attempts are numbered, and a number is used once: an attempt that a crash may have interrupted counts as made
 *         and as unanswered.
 */

import type { Envelope } from "../../../protocol/envelope.ts";
import type { Answer } from "../../../protocol/mailbox-api.ts";
import type { ErrorData } from "../../../shared/errors.ts";
import type { Json } from "../../../shared/json.ts";
import { delayAfter, MAX_ATTEMPTS, MAX_DELAY_MS } from "./limits.ts";

export interface OutboxEntry {
  readonly envelope: Envelope;
  /** The newest attempt's number. */
  readonly attempt: number;
  /** The number that ends this series of attempts. */
  readonly lastAttempt: number;
  /** `null` while an attempt is under way; else when the next one is due. */
  readonly dueAt: number | null;
  /** An attempt ended without an answer: the receiver may have acted, or may do so when it arrives after all. */
  readonly unanswered: boolean;
  /** An outcome was told before: the envelope was a dead letter, and its next outcome is late. */
  readonly late: boolean;
}

export type Outcome =
  | { status: "delivered"; result: Json }
  /** The receiver has not acted, and will not. */
  | { status: "failed"; error: ErrorData }
  /** The receiver may have acted. */
  | { status: "unknown"; error: ErrorData };

export type OutboxInput =
  /** The next attempt is to be made. */
  | { type: "begin" }
  | { type: "answered"; answer: Answer }
  | { type: "unanswered"; error: ErrorData }
  /** The entry was found in the store by a new life of the actor, which made no attempt itself. */
  | { type: "woken" }
  /** The outcome could not be committed. It is asked for again: the receiver repeats it. */
  | { type: "unsettled" };

export type OutboxStep =
  | { type: "attempt"; entry: OutboxEntry }
  | { type: "wait"; entry: OutboxEntry }
  | { type: "settle"; entry: OutboxEntry; outcome: Outcome };

/** The entry of an envelope that is sent now; its first attempt follows the commit at once. */
export function newEntry(envelope: Envelope): OutboxEntry {
  return {
    envelope,
    attempt: 1,
    lastAttempt: MAX_ATTEMPTS,
    dueAt: null,
    unanswered: false,
    late: false,
  };
}

/** The entry of a dead letter that is sent again: a new series, under numbers of its own. */
export function redeliveredEntry({
  envelope,
  attempt,
  unanswered,
}: Pick<OutboxEntry, "envelope" | "attempt" | "unanswered">): OutboxEntry {
  return {
    envelope,
    attempt: attempt + 1,
    lastAttempt: attempt + MAX_ATTEMPTS,
    dueAt: null,
    unanswered,
    late: true,
  };
}

/** What an input means for an entry. */
export function stepOutbox(entry: OutboxEntry, input: OutboxInput, now: number): OutboxStep {
  switch (input.type) {
    case "begin":
      return { type: "attempt", entry: { ...entry, attempt: entry.attempt + 1, dueAt: null } };
    case "answered":
      return afterAnswer(entry, input.answer, now);
    case "unanswered":
      return afterFailure({ ...entry, unanswered: true }, input.error, delayOf(entry), now);
    case "woken":
      // Due at once: how long it has waited is not known, and that attempt has been counted.
      return entry.dueAt === null
        ? afterFailure({ ...entry, unanswered: true }, INTERRUPTED, 0, now)
        : { type: "wait", entry };
    case "unsettled":
      return { type: "wait", entry: { ...entry, unanswered: true, dueAt: now + delayOf(entry) } };
    default:
      throw new Error(`Unknown input: ${JSON.stringify(input satisfies never)}`);
  }
}

/** Whether the newest attempt ends its series. */
export function isLastAttempt({ attempt, lastAttempt }: OutboxEntry): boolean {
  return attempt >= lastAttempt;
}

function afterAnswer(entry: OutboxEntry, answer: Answer, now: number): OutboxStep {
  switch (answer.type) {
    case "done":
      return { type: "settle", entry, outcome: { status: "delivered", result: answer.result } };
    case "refused":
      return {
        type: "settle",
        entry,
        outcome: {
          status: answer.recorded || !entry.unanswered ? "failed" : "unknown",
          error: answer.error,
        },
      };
    case "busy": {
      // A receiver that can write refuses a last attempt and records that; without a record nothing is ruled out.
      if (isLastAttempt(entry)) {
        return { type: "settle", entry, outcome: { status: "unknown", error: answer.error } };
      }
      const wanted = Math.min(answer.retryAfterMs ?? 0, MAX_DELAY_MS);
      return afterFailure(entry, answer.error, Math.max(delayOf(entry), wanted), now);
    }
    default:
      throw new Error(`Unknown answer: ${JSON.stringify(answer satisfies never)}`);
  }
}

function afterFailure(entry: OutboxEntry, error: ErrorData, delay: number, now: number): OutboxStep {
  if (!isLastAttempt(entry)) return { type: "wait", entry: { ...entry, dueAt: now + delay } };
  return { type: "settle", entry, outcome: { status: entry.unanswered ? "unknown" : "failed", error } };
}

function delayOf({ attempt, lastAttempt }: OutboxEntry): number {
  return delayAfter(Math.max(1, attempt - lastAttempt + MAX_ATTEMPTS));
}

const INTERRUPTED: ErrorData = {
  code: "UNAVAILABLE",
  message: "The sender stopped during its last attempt.",
  retriable: true,
};
