/**
 * The life of one envelope at its sender, as a pure state machine. The shell writes an entry before it acts on it, so after
 * a crash the entry covers everything that the receiver may have seen.
 *
 * MAIL-3  An entry ends in one outcome: `delivered`, `failed` or `unknown`.
 * MAIL-4  `failed` requires proof that the receiver will not act: a recorded refusal, or a refusal after only answered attempts. Every
 *         other outcome except `delivered` is `unknown`, also after a "not now" to the last attempt.
 * MAIL-5  Attempts are numbered, and each number is used once. An attempt that a crash may have interrupted counts as unanswered.
 */
import type { Envelope } from "../../../protocol/envelope.ts";
import type { Answer } from "../../../protocol/mailbox-api.ts";
import type { ErrorData } from "../../../shared/errors.ts";
import type { Json } from "../../../shared/json.ts";
import { delayAfter, MAX_ATTEMPTS, MAX_DELAY_MS } from "./mailbox-limits.ts";

export interface OutboxEntry {
  readonly envelope: Envelope;
  readonly attempt: number;
  /** The number that ends this series of attempts. */
  readonly lastAttempt: number;
  /** The time at which the next attempt is due; `null` during an attempt. */
  readonly dueAt: number | null;
  /** An attempt ended without an answer: the receiver may have acted, or may act when the attempt arrives late. */
  readonly unanswered: boolean;
  /** An outcome was reported before: the envelope was a dead letter, and its next outcome is late. */
  readonly late: boolean;
}

export type Outcome =
  | { status: "delivered"; result: Json }
  /** The receiver has not acted and will not act. */
  | { status: "failed"; error: ErrorData }
  /** The receiver may have acted. */
  | { status: "unknown"; error: ErrorData };

export type OutboxInput =
  /** The next attempt begins. */
  | { type: "begin" }
  | { type: "answered"; answer: Answer }
  | { type: "unanswered"; error: ErrorData }
  /** A new life of the actor, which has made no attempt itself, found the entry in the store. */
  | { type: "woken" }
  /** The outcome could not be committed. Another attempt gets it again: the receiver repeats its answer. */
  | { type: "unsettled" };

export type OutboxStep =
  | { type: "attempt"; entry: OutboxEntry }
  | { type: "wait"; entry: OutboxEntry }
  | { type: "settle"; entry: OutboxEntry; outcome: Outcome };

/**
 * Returns the entry of a new envelope, or of a dead letter that is sent again. A dead letter gets a new series of attempts, and their
 * numbers continue. The first attempt begins right after the commit.
 */
export function newEntry(
  envelope: Envelope,
  letter?: Pick<OutboxEntry, "attempt" | "unanswered">,
): OutboxEntry {
  const { attempt, unanswered } = letter ?? { attempt: 0, unanswered: false };
  return {
    envelope,
    attempt: attempt + 1,
    lastAttempt: attempt + MAX_ATTEMPTS,
    dueAt: null,
    unanswered,
    late: letter !== undefined,
  };
}

export function stepOutbox(entry: OutboxEntry, input: OutboxInput, now: number): OutboxStep {
  switch (input.type) {
    case "begin":
      return { type: "attempt", entry: { ...entry, attempt: entry.attempt + 1, dueAt: null } };
    case "answered":
      return afterAnswer(entry, input.answer, now);
    case "unanswered":
      return afterFailure({ ...entry, unanswered: true }, input.error, delayOf(entry), now);
    case "woken":
      // Due at once: the time that has passed is unknown, and the interrupted attempt counts.
      return entry.dueAt === null
        ? afterFailure({ ...entry, unanswered: true }, INTERRUPTED, 0, now)
        : { type: "wait", entry };
    case "unsettled":
      return { type: "wait", entry: { ...entry, unanswered: true, dueAt: now + delayOf(entry) } };
  }
}

/** Reports whether the newest attempt ends its series. */
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
      // A receiver that can write records its refusal of a last attempt. Without that record it may still act.
      if (isLastAttempt(entry))
        return { type: "settle", entry, outcome: { status: "unknown", error: answer.error } };
      const wanted = Math.min(answer.retryAfterMs ?? 0, MAX_DELAY_MS);
      return afterFailure(entry, answer.error, Math.max(delayOf(entry), wanted), now);
    }
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
