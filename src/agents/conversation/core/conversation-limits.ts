/** The limits of a conversation. Lengths are UTF-16 units, unless their comment names another unit. */

/** Active turns of one conversation. One more is refused with `TOO_MANY_TURNS`. */
export const MAX_ACTIVE_TURNS = 64;
/** Messages of one conversation that are accepted and have not begun their turns. One more is `QUEUE_OVERFLOW`. */
export const MAX_QUEUED_SIGNALS = 10_000;
/** Size of these messages, as JSON, in bytes (UTF-8). */
export const MAX_QUEUED_BYTES = 32 * 1024 * 1024;
/** Messages of a batch, or of the queue, that begin their turns before other work may come between. */
export const DRAIN_STEP = 128;
/** Ids of dropped messages that the journal's entry names. */
export const MAX_NAMED_SIGNALS = 100;
/** Maximum number of turns that one message of a user starts, over all agents. The application may set another number. */
export const MAX_AGENT_TURNS = 8;
export const MAX_USERS = 100;
/** Agents of a conversation, including agents that left. The actor keeps the versions of all in memory. */
export const MAX_AGENTS = 8;
/** Attempts of one model call, the first included. */
export const MODEL_ATTEMPTS = 3;
/** Milliseconds before the second attempt, the third, … No jitter. */
export const MODEL_BACKOFF_MS = [500, 1_000] as const;
/** A provider's `Retry-After` lengthens the backoff up to this many milliseconds. */
export const MAX_BACKOFF_MS = 60_000;
/** Maximum repairs of one turn's answer that does not fit its schema. */
export const MAX_OUTPUT_REPAIRS = 2;
/** Length of a withdrawn answer that is sent back to the model. */
export const MAX_WITHDRAWN_LENGTH = 64 * 1024;
/** Length of a turn's output schema, as JSON. */
export const MAX_OUTPUT_SCHEMA = 64 * 1024;
/** Length of a reply's native parts, as JSON. Longer parts are dropped, and the reply is kept as text and calls. */
export const MAX_NATIVE_LENGTH = 256 * 1024;
/** Crashes under one turn without an outcome in between. At one more the turn fails with `RECOVERY_EXHAUSTED`. */
export const MAX_RECOVERIES = 10;
/** Milliseconds before a turn begins again after its second crash without an outcome. They double with each further one. */
export const RESUME_PAUSE_MS = 250;
/** The longest such pause, in milliseconds. */
export const MAX_RESUME_PAUSE_MS = 5_000;
/** Turns that run at a time after the first crash without an outcome, the second, …; one turn after more. */
export const RUNNING_AFTER_CRASHES = [MAX_ACTIVE_TURNS, 16, 4] as const;
/** Milliseconds after a crash to wait for the result of a `once` tool that ran. */
export const LATE_RESULT_MS = 30_000;
/** Calls that a conversation asks its agent's budget for at a time. */
export const LEASED_CALLS = 4;
/** Calls of agents below each other: an agent that was called so may call no further one. */
export const MAX_CALL_DEPTH = 4;
/** Calls of other agents that a conversation has open at a time. */
export const MAX_OPEN_CALLS = 32;
/** Calls of agents that are open at a time below one conversation, at all levels together. */
export const MAX_TREE_CALLS = 256;
/** Length of the messages of the calls that a conversation has open, together, as JSON: they fit into the actor's outbox. */
export const MAX_CALLS_LENGTH = 2 * 1024 * 1024;
/** Milliseconds that a caller waits longer than the call may take: the text of an agent that was too slow still arrives. */
export const CALL_GRACE_MS = 5_000;
/** Time limit of an approval, in milliseconds, unless the application sets another. */
export const APPROVAL_TIMEOUT_MS = 24 * 3_600_000;
/** Times that the same call has the same result in a turn before the model gets a note. */
export const REPEATED_CALLS_NOTED = 3;
/** Times that the same call has the same result in a turn before the model must answer without tools. */
export const MAX_REPEATED_CALLS = 5;
/** Tool calls of one reply. Calls beyond this are dropped and do not run. */
export const MAX_CALLS_PER_REPLY = 64;
/** Foreground calls of tools that run at a time in a conversation, unless the application sets another number. Further calls wait. */
export const MAX_RUNNING_CALLS = 4;
/** Calls of one tool in a row that time out in a turn before the turn may call the tool no more. */
export const MAX_TIMEOUTS_IN_A_ROW = 3;

/** Length of all results of one turn, as JSON. A view replaces a result that exceeds it. */
export const MAX_TURN_RESULTS = 8 * 1024 * 1024;
/** Length of the inputs, tools, notes and results of all active turns: the actor has them in memory. */
export const MAX_ACTIVE_CONTENT = 16 * 1024 * 1024;

/**
 * The shortest wait for the heartbeat that restarts lost effects, in milliseconds. It exceeds a short turn, so a short turn needs no
 * heartbeat.
 */
export const MIN_HEARTBEAT_MS = 1_500;
/** The longest wait for that wake-up, in milliseconds: a crash delays no turn longer. */
export const MAX_HEARTBEAT_MS = 10_000;
/** Default time limit of a tool that a client runs, in milliseconds. */
export const CLIENT_TOOL_TIMEOUT_MS = 600_000;

/** Attempts of a hook with a task that may run again. A hook with a `once` task has one attempt. */
export const HOOK_ATTEMPTS = 3;
/** Milliseconds before a hook's second attempt, and the third. */
export const HOOK_BACKOFF_MS = [100, 200] as const;
/** Time limit of one attempt of a hook, in milliseconds. */
export const HOOK_TIMEOUT_MS = 30_000;
/** Maximum number of running extractions in a conversation. A further extraction fails at once. */
export const MAX_EXTRACTIONS = 64;
/** Failed extractions that a conversation keeps, to begin them once more. */
export const MAX_LOST_EXTRACTIONS = 16;
export const MAX_MEMORY_OPERATIONS = 100;
/** Length of an extraction's memory operations, as JSON. */
export const MAX_MEMORY_OPERATIONS_LENGTH = 64 * 1024;
/** Consecutive failed extractions of an agent after which the conversation reports an error. */
export const EXTRACTION_FAILURES = 3;

/** Maximum time in milliseconds that a reply with only pure tool calls stays uncommitted while they run. */
export const PURE_WINDOW_MS = 50;

/** Length of the text that is kept of a message that was cut off. */
export const MAX_SHOWN_LENGTH = 256 * 1024;
/** Length of a quoted message in the model's input, for a reply to it. */
export const MAX_QUOTED_LENGTH = 2_000;
/** Other active turns in the model's input. */
export const MAX_NOTED_TURNS = 8;
/** Turns with noted calls, among the turns that a new turn replaces. */
export const MAX_NOTED_REPLACED = 32;
/** Length of a noted message, or of the noted operations of a turn. */
export const MAX_NOTED_LENGTH = 400;

/** Finished turns of other agents in the model's input. */
export const MAX_SHOWN_TURNS = 16;
/** Length of a message of such a turn. */
export const MAX_SHOWN_MESSAGE_LENGTH = 1_000;
/** Part of the context's budget that all of this may have. */
export const SHOWN_SHARE = 0.1;
/** Finished turns shown to an agent that joins with a full handoff. */
export const MAX_HANDOFF_TURNS = 64;
/** Part of the context's budget that a full handoff may have. */
export const HANDOFF_SHARE = 0.25;

/** Parts of a history's budget: above the first it is compacted, and the newest turns within the second are kept. */
export const COMPACT_ABOVE = 0.8;
export const COMPACT_KEEP = 0.4;
/** Target length of a summary as a part of the context's budget. A summary of more than twice as much is refused. */
export const SUMMARY_SHARE = 0.1;
/** Part of the context's budget that the moves of a turn have in any case. */
export const MOVES_SHARE = 0.25;

/** The platform's notices, which replace an empty reply to the last call of a turn. */
export const NOTICES = {
  movesExhausted: "The turn stopped here: it used up its allowed steps before it reached an answer.",
  callsRepeated: "The turn stopped here: the same tool call had the same result again and again.",
} as const;
