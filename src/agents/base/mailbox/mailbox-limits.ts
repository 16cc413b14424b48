/** The limits of a mailbox. Times are in milliseconds, sizes in bytes of UTF-8. */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const DAY = 24 * 60 * MINUTE;

/** An envelope as JSON. Stored with up to two bytes per character, it stays below the row limit of 2 MB. */
export const MAX_ENVELOPE_BYTES = 768 * 1024;
/** A handler's result as JSON. Larger results need an envelope of their own. */
export const MAX_RESULT_BYTES = 64 * 1024;
/** Envelopes of one actor in flight. */
export const MAX_OUTBOX_ENVELOPES = 1_000;
export const MAX_OUTBOX_BYTES = 8 * 1024 * 1024;
/** Extra room for owed envelopes, in number and bytes. */
export const OWED_ENVELOPES = 1_000;
export const OWED_BYTES = 8 * 1024 * 1024;
/** Dead letters of one actor. Beyond either limit the oldest is deleted. */
export const MAX_DEAD_LETTERS = 1_000;
export const MAX_DEAD_LETTER_BYTES = 64 * 1024 * 1024;
/** The kept part of a receiver's error: UTF-16 units of its message, its issues, UTF-16 units of an issue's path or message. */
export const MAX_ERROR_CHARACTERS = 2_000;
export const MAX_ERROR_ISSUES = 20;
export const MAX_ISSUE_CHARACTERS = 500;
/** Maximum size of a dead letter's body in views. */
export const MAX_SHOWN_BODY_BYTES = 16 * 1024;

/** Simultaneous attempts of one actor. Each destination has at most one. */
export const MAX_IN_FLIGHT = 16;
/** A longer attempt counts as unanswered. */
export const ATTEMPT_TIMEOUT_MS = 30 * SECOND;
/** Attempts of one series. If all fail at once, the series takes about 66 minutes. */
export const MAX_ATTEMPTS = 10;
const FIRST_DELAY_MS = SECOND;
const DELAY_FACTOR = 4;
export const MAX_DELAY_MS = 15 * MINUTE;

/**
 * Delay of the wake-up that a commit with envelopes arms. After a crash, delivery begins with this delay. As long as the first heartbeat
 * of a turn, so a conversation that is created and talks at once writes one wake-up.
 */
export const WAKE_AFTER_SEND_MS = 1.5 * SECOND;

/**
 * Ages of an operation, counted from the time in its id. Each age exceeds the previous age, so a receiver never forgets an operation that
 * may still be delivered.
 */
export const SEND_WITHIN_MS = 14 * DAY;
export const REDELIVER_WITHIN_MS = 30 * DAY;
export const ACT_WITHIN_MS = 32 * DAY;
export const RECEIPT_KEPT_MS = 35 * DAY;
/** The time in an id may be this far ahead of an actor's own clock. */
export const MAX_CLOCK_AHEAD_MS = DAY;

/** Receipts per trimming, and receipts written between two trimmings. */
export const TRIM_BATCH = 100;
export const TRIM_EVERY = 50;

/** Returns the pause after the `n`th attempt of a series: 1 s, 4 s, 16 s, 64 s, 256 s, then 15 minutes each. */
export function delayAfter(n: number): number {
  return Math.min(FIRST_DELAY_MS * DELAY_FACTOR ** (n - 1), MAX_DELAY_MS);
}
