/** The limits of memories. Lengths count UTF-16 units. Sizes in bytes count UTF-8. */

export const MAX_CONTENT_BYTES = 256 * 1024;

/** Size of the JSON. */
export const MAX_METADATA_BYTES = 16 * 1024;

/** Longest text that a row keeps. A longer text goes to the object store. */
export const MAX_INLINE_BYTES = 4096;

/** Length of the excerpt of a long text in lists and searches. */
export const EXCERPT_LENGTH = 1000;

/** Longest query. The rest is cut. */
export const MAX_QUERY_LENGTH = 2000;

export const DEFAULT_RESULTS = 10;

/** Newest log entries that `why` returns. */
export const MAX_LOG = 100;

export const MAX_OPERATIONS = 100;
