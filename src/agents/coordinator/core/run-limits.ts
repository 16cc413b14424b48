/** The limits of runs. */

/** Tokens of one run. */
export const MAX_TOKENS = 10_000;
export const MAX_TOKEN_STEPS = 200_000;
/** Steps of one commit. Afterwards other actors of the isolate may run. */
export const MAX_COMMIT_STEPS = 250_000;
/** Steps of a token without its expressions. */
export const STEPS_OF_TOKEN = 100;
export const STEPS_OF_BRANCH = 10;
/** Maximum number of open sub-workflows and agents of one run. The outbox has room for their starts and their cancellations. */
export const MAX_OPEN_CALLS = 1_000;
/** Maximum number and JSON bytes of the envelopes that start sub-workflows and agents in one commit. Both are below the limits of an outbox. */
export const MAX_COMMIT_STARTS = 500;
export const MAX_COMMIT_START_BYTES = 2 * 1024 * 1024;
/** Bytes of one such envelope as JSON: no more than an envelope may have. */
export const MAX_START_BYTES = 768 * 1024;
/** Bytes of the envelope that begins a part, at most. */
export const PART_START_BYTES = 2 * 1024;
/** Bytes that a mailbox adds to an envelope, at most: its id, its sender and its time. */
export const ADDRESSING_BYTES = 1024;
/** Milliseconds to wait after a crash for the result of a `once` task. The Executor may still deliver it. */
export const LOST_RESULT_MS = 30_000;
/** Retries of one token with a `once` task or a gate. Each needs another operation, and an id has room for as many (`MAX_ITEM_INDEX`). */
export const MAX_RETRIES = 8_191;
/** Maximum number of wakes without progress. A further wake fails the run. */
export const MAX_RECOVERIES = 10;
/** Pause of tasks after the second wake without progress, and the longest pause after further wakes. Milliseconds. */
export const RESUME_PAUSE_MS = 250;
export const MAX_RESUME_PAUSE_MS = 60_000;
/** Waits between heartbeats, in milliseconds. */
export const MIN_HEARTBEAT_MS = 1_000;
export const MAX_HEARTBEAT_MS = 60_000;
/** Time limit of an agent's answer, in milliseconds, unless the node sets another. */
export const AGENT_NODE_MS = 24 * 3_600_000;
/**
 * Branches of one fan-out in one run. A wider fan-out is spread. The number equals the agents and sub-workflows that a run may wait for at
 * once.
 */
export const FAN_OUT_WIDTH = 1_000;
/** Branches of one fan-out, over all runs. */
export const MAX_BRANCHES = 100_000;
/** Maximum number of open parts of one run. The next part begins when another part ends. */
export const MAX_OPEN_PARTS = 8;
/** Milliseconds for parts to answer a request to end. Later parts are cancelled. */
export const CLOSE_MS = 30_000;
/** Length of the start of a part, as JSON in UTF-16 units: its items and the areas that its nodes read. */
export const MAX_PART_LENGTH = 4 * 1024 * 1024;
/** Length of the result of a part, as JSON in UTF-16 units. In UTF-8 it fits into one stored text. */
export const MAX_PART_RESULT_LENGTH = 10 * 1024 * 1024;
/** Length of the message of a failed branch in the result of a part. */
export const MAX_BRANCH_MESSAGE = 2_000;
/** Length of a merged value, as JSON in UTF-16 units. */
export const MAX_MERGED_LENGTH = 16 * 1024 * 1024;
/** Length of the input of a node, as JSON in UTF-16 units. */
export const MAX_INPUT_LENGTH = 1024 * 1024;
