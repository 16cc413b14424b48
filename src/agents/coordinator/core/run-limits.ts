/** The limits of runs. */

/** Tokens of one run. */
export const MAX_TOKENS = 10_000;
/** Steps of the expressions that one token evaluates. */
export const MAX_TOKEN_STEPS = 200_000;
/** Steps of one commit, after which others of the isolate come between. */
export const MAX_COMMIT_STEPS = 250_000;
/** Steps of a token beside its expressions. */
export const STEPS_OF_TOKEN = 100;
/** Steps of a branch that is merged. */
export const STEPS_OF_BRANCH = 10;
/** Sub-workflows and agents that one run waits for at once. Their cancellations have room in one outbox, beside their starts. */
export const MAX_OPEN_CALLS = 1_000;
/** Envelopes with which one commit begins sub-workflows and agents, and their bytes as JSON: a part of what an outbox has room for. */
export const MAX_COMMIT_STARTS = 500;
export const MAX_COMMIT_START_BYTES = 2 * 1024 * 1024;
/** Bytes of one such envelope as JSON: no more than an envelope may have. */
export const MAX_START_BYTES = 768 * 1024;
/** Bytes of the envelope that begins a part, at most. */
export const PART_START_BYTES = 2 * 1024;
/** Bytes that a mailbox adds to an envelope, at most: its id, its sender and its time. */
export const ADDRESSING_BYTES = 1024;
/** Milliseconds in which the result of a lost attempt may come. The Executor sends it by name meanwhile. */
export const LOST_RESULT_MS = 30_000;
/** Retries of one token with a `once` task or a gate. Each needs another operation, and an id has room for as many (`MAX_ITEM_INDEX`). */
export const MAX_RETRIES = 8_191;
/** Wakes without progress, after which a run fails. */
export const MAX_RECOVERIES = 10;
/** Waits between heartbeats, in milliseconds. */
export const MIN_HEARTBEAT_MS = 1_000;
export const MAX_HEARTBEAT_MS = 60_000;
/** Time limit of an agent's answer, in milliseconds, unless the node sets another. */
export const AGENT_NODE_MS = 24 * 3_600_000;
/** Branches of one fan-out that one run has; those of a wider one are spread. As many as a run may ask agents and sub-workflows at once. */
export const FAN_OUT_WIDTH = 1_000;
/** Branches of one fan-out, over all runs. */
export const MAX_BRANCHES = 100_000;
/** Parts of fan-outs that one run waits for at once. The others begin as these end. */
export const MAX_OPEN_PARTS = 8;
/** Milliseconds in which parts answer that are asked for their end. Those that have not are cancelled then. */
export const CLOSE_MS = 30_000;
/** Length of what a part begins with, as JSON in UTF-16 units: its items, and what its nodes read. */
export const MAX_PART_LENGTH = 4 * 1024 * 1024;
/** Length of the result of a part, as JSON in UTF-16 units. In UTF-8 it fits into one stored text. */
export const MAX_PART_RESULT_LENGTH = 10 * 1024 * 1024;
/** Length of the message of a failed branch in the result of a part. */
export const MAX_BRANCH_MESSAGE = 2_000;
/** Length of what a merge writes, as JSON in UTF-16 units. */
export const MAX_MERGED_LENGTH = 16 * 1024 * 1024;
/** Length of the input of a node, as JSON in UTF-16 units. */
export const MAX_INPUT_LENGTH = 1024 * 1024;
