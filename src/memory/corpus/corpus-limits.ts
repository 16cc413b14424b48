/** The limits of memories. Texts are counted in UTF-16 units unless bytes are named. */

/** Bytes of a memory's text in UTF-8. */
export const MAX_CONTENT_BYTES = 256 * 1024;

/** Bytes of metadata as JSON in UTF-8. */
export const MAX_METADATA_BYTES = 16 * 1024;

/** Memories of one call. */
export const MAX_BATCH = 100;

/** Length of a type, a key, a speaker, a session and an id of a subject. */
export const MAX_NAME_LENGTH = 200;

/** Bytes of a text in UTF-8 that the stores keep in a row. A longer one goes to the object store. */
export const MAX_INLINE_BYTES = 4096;

/** Length of the beginning of a long text that lists and searches show. */
export const EXCERPT_LENGTH = 1000;

/** Length of a query. The rest is cut. */
export const MAX_QUERY_LENGTH = 2000;

/** Results of a search. */
export const MAX_RESULTS = 100;
export const DEFAULT_RESULTS = 10;

/** Members of the metadata that a filter names. */
export const MAX_METADATA_FILTERS = 10;

/** Entries of the log that `why` returns, the newest. */
export const MAX_LOG = 100;

/** Operations of one extraction. */
export const MAX_OPERATIONS = 100;
