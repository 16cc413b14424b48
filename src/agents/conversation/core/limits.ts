/** The loop's numbers, in one place. */

/** Turns of one conversation that may be active at once; one more is refused with `TOO_MANY_TURNS`. */
export const MAX_ACTIVE_TURNS = 64;
/** Attempts of one model call, the first included. */
export const MODEL_ATTEMPTS = 3;
/** Milliseconds before the second attempt, the third, … No jitter. */
export const MODEL_BACKOFF_MS = [500, 1_000] as const;
/** A provider's `Retry-After` lengthens the backoff up to this many milliseconds. */
export const MAX_BACKOFF_MS = 60_000;
/** One attempt of a model call may take this long, in milliseconds, unless its profile says otherwise. */
export const MODEL_TIMEOUT_MS = 120_000;
/** Answers of one turn that did not fit its schema and are asked for again. */
export const MAX_OUTPUT_REPAIRS = 2;
/** Characters of a withdrawn answer that the model is given back. */
export const MAX_WITHDRAWN_LENGTH = 64 * 1024;
/** Characters of JSON that a turn's output schema may have. */
export const MAX_OUTPUT_SCHEMA = 64 * 1024;
/** A reply's own parts that are longer, in characters of JSON, are not kept: it goes on as text and calls. */
export const MAX_NATIVE_LENGTH = 256 * 1024;
/** After this many crashes under one turn it fails with `RECOVERY_EXHAUSTED`. */
export const MAX_RECOVERIES = 10;
/** Tool calls of one reply beyond this are left out of it, and do not run. */
export const MAX_CALLS_PER_REPLY = 64;

/** Results of one turn, in characters of JSON together; one that would exceed it is told to the model as a failure. */
export const MAX_TURN_RESULTS = 8 * 1024 * 1024;
/** What all active turns may hold together, inputs and results, in characters: the actor has them in memory. */
export const MAX_ACTIVE_CONTENT = 16 * 1024 * 1024;

/** Between two looks after the effects of active turns, in milliseconds; a crash costs at most as much. */
export const HEARTBEAT_MS = 10_000;
/** A client has this long to run a tool, in milliseconds, where the application says nothing. */
export const CLIENT_TOOL_TIMEOUT_MS = 600_000;

/** The longest a reply that only calls pure tools may stay uncommitted while they run, in milliseconds. */
export const PURE_WINDOW_MS = 50;

/** What the agent says when the model, out of moves or silent, gives no text. */
export const NOTICES = {
  movesExhausted: "I stopped here: this turn used up its allowed steps before reaching an answer.",
  emptyReply: "The model gave an empty reply.",
} as const;

/** A frame from a client has at most this many UTF-16 units. */
export const MAX_FRAME_LENGTH = 2 * 1024 * 1024;
/**
 * What one connection may send: so many frames and UTF-16 units. Both fill up within the ten idle seconds that must pass
 * before an actor hibernates.
 */
export const FLOOD = {
  frames: { burst: 60, perMinute: 600 },
  length: { burst: 8 * 1024 * 1024, perMinute: 60 * 1024 * 1024 },
} as const;
/** WebSockets that a conversation keeps open at once, and streams of server-sent events. */
export const MAX_WATCHERS = 256;
