/** The limits of triggers. */

/** Milliseconds that an attempt to start may take. */
export const ATTEMPT_MS = 30_000;
/** Milliseconds after which an attempt that reports nothing is lost: its actor died. */
export const LOST_ATTEMPT_MS = 2 * ATTEMPT_MS;
/** Milliseconds before the second attempt; each further pause is twice as long. */
export const MIN_PAUSE_MS = 1_000;
export const MAX_PAUSE_MS = 5 * 60_000;
/** Milliseconds for which a start is tried. */
export const GIVE_UP_MS = 24 * 3_600_000;
/** A cron expression needs a date within ten years. Milliseconds. */
export const MAX_FIRST_WAIT_MS = 3_653 * 24 * 3_600_000;
/** The largest `starts`, in characters of JSON. */
export const MAX_STARTS_LENGTH = 256 * 1024;
/** Milliseconds by which the time of a delivery may differ from the actor's clock. */
export const TOLERANCE_MS = 5 * 60_000;
/** Milliseconds for which the id of a delivery is kept. */
export const DELIVERY_KEPT_MS = 14 * 24 * 3_600_000;
