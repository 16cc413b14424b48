/** Every number of the mailbox in one place. Times are in milliseconds, sizes in bytes of UTF-8. */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const DAY = 24 * 60 * MINUTE;

/** An envelope as JSON. Two bytes a character, the most that a stored value takes, stay below the row limit of 2 MB. */
export const MAX_ENVELOPE_BYTES = 768 * 1024;
/** What a handler answers, as JSON. Larger results travel in an envelope of their own. */
export const MAX_RESULT_BYTES = 64 * 1024;
/** What one actor may have under way. */
export const MAX_OUTBOX_ENVELOPES = 1_000;
export const MAX_OUTBOX_BYTES = 8 * 1024 * 1024;
/** Dead letters of one actor; beyond either limit the oldest leaves. */
export const MAX_DEAD_LETTERS = 1_000;
export const MAX_DEAD_LETTER_BYTES = 64 * 1024 * 1024;
/** A page of dead letters ends with the one that takes it beyond this size. */
export const MAX_PAGE_BYTES = 4 * 1024 * 1024;
/** What is kept of a receiver's error, in UTF-16 units: its message, and the path and message of each of its issues. */
export const MAX_ERROR_CHARACTERS = 2_000;
export const MAX_ERROR_ISSUES = 20;
export const MAX_ISSUE_CHARACTERS = 500;
/** The body of a dead letter is shown up to this size. */
export const MAX_SHOWN_BODY_BYTES = 16 * 1024;

/** Attempts under way at once in one actor; to one destination there is one. */
export const MAX_IN_FLIGHT = 16;
/** An attempt that takes longer counts as unanswered. */
export const ATTEMPT_TIMEOUT_MS = 30 * SECOND;
/** Attempts of one series, about 66 minutes from the first to the last when every one of them fails at once. */
export const MAX_ATTEMPTS = 10;
const FIRST_DELAY_MS = SECOND;
const DELAY_FACTOR = 4;
export const MAX_DELAY_MS = 15 * MINUTE;

/** A commit that sends also arms a wake-up this far ahead: what a crash right after it costs. */
export const WAKE_AFTER_SEND_MS = 5 * SECOND;
/** How soon the directory is told again of what it could not be told; twice as long after each failure, up to the latter. */
export const PUBLISH_RETRY_MS = 15 * SECOND;
export const MAX_PUBLISH_RETRY_MS = 15 * MINUTE;
/** How soon a mailbox looks again whether its actor's storage is still of a newer release. */
export const REFUSED_RETRY_MS = 60 * SECOND;

/**
 * Ages of an operation, counted from the time in its id. Each is longer than the one before, so nothing that may still
 * be delivered is ever forgotten by its receiver.
 */
export const SEND_WITHIN_MS = 14 * DAY;
export const REDELIVER_WITHIN_MS = 30 * DAY;
export const ACT_WITHIN_MS = 32 * DAY;
export const RECEIPT_KEPT_MS = 35 * DAY;
/** How far ahead of an actor's own clock the time in an id may be. */
export const MAX_CLOCK_AHEAD_MS = DAY;

/** Receipts that are trimmed at once, and how many are written between two trimmings. */
export const TRIM_BATCH = 100;
export const TRIM_EVERY = 50;

/** How long to wait after the `n`th attempt of a series: 1 s, 4 s, 16 s, 64 s, 256 s, then 15 minutes each. */
export function delayAfter(n: number): number {
  return Math.min(FIRST_DELAY_MS * DELAY_FACTOR ** (n - 1), MAX_DELAY_MS);
}
