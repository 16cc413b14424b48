/** The limits of triggers. */

/** Timeout of an attempt, in milliseconds. */
export const ATTEMPT_MS = 30_000;
/** An attempt that does not report within this many milliseconds is lost, because its actor stopped. */
export const LOST_ATTEMPT_MS = 2 * ATTEMPT_MS;
/** Pause before the second attempt, in milliseconds. Each further pause doubles. */
export const MIN_PAUSE_MS = 1_000;
export const MAX_PAUSE_MS = 5 * 60_000;
/** A start is retried for this many milliseconds. */
export const GIVE_UP_MS = 24 * 3_600_000;
/** A cron expression needs a date within ten years. In milliseconds. */
export const MAX_FIRST_WAIT_MS = 3_653 * 24 * 3_600_000;
/** Maximum length of `starts` as JSON, in characters. */
export const MAX_STARTS_LENGTH = 256 * 1024;
/** Largest difference between the time of a delivery and the actor's clock, in milliseconds. */
export const TOLERANCE_MS = 5 * 60_000;
/** Storage time of a delivery's id, in milliseconds. */
export const DELIVERY_KEPT_MS = 14 * 24 * 3_600_000;
