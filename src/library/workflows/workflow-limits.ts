/** The limits of definitions of workflows. */

/** Nodes of one workflow. */
export const MAX_NODES = 500;
export const MAX_TRANSITIONS = 1_000;
/** Expressions of one workflow together, in UTF-16 units. */
export const MAX_WORKFLOW_EXPRESSIONS = 32 * 1024;
/** Maximum number of `foreach` item names in scope of one node. */
export const MAX_ITEM_NAMES = 32;
/** Paths that the nodes and merges of one workflow write. */
export const MAX_WRITTEN_PATHS = 2_000;
/** Names of one path that is written, or read from branches, below its area. */
export const MAX_PATH_NAMES = 16;
/** Maximum number of tokens from one transition. */
export const MAX_SPAWN_COUNT = 1_000;
export const MAX_ITERATIONS = 10_000;
/** Time limits, in milliseconds: 30 days. */
export const MAX_WORKFLOW_TIMEOUT_MS = 30 * 86_400_000;
/** Fan-outs within fan-outs. */
export const MAX_FAN_OUT_DEPTH = 8;
/** Pairs of a node and the fan-outs around it, in the soundness check of one workflow. */
export const MAX_PLACES = 5_000;
/** Ways between those pairs. */
export const MAX_WAYS = 20_000;
export const MAX_WORKFLOW_ISSUES = 20;
/** Workflows within workflows, the outermost included. */
export const MAX_LEVELS = 10;
/** Tasks and workflows that a workflow and its sub-workflows name, together: each is read from the database. */
export const MAX_PARTS = 200;
/**
 * Bytes of a pinned workflow as JSON, with all that its nodes run: what several nodes run counts once for each. A run keeps it in one
 * row, and the storage takes 2 MB a row.
 */
export const MAX_PINNED_WORKFLOW_BYTES = 1024 * 1024;
