/** The limits of repositories, in bytes unless a comment names another unit. The memory of a Worker gives them. */

/** A file, or another object. */
export const MAX_OBJECT_BYTES = 16 * 1_024 * 1_024;
/** The new files of a commit. */
export const MAX_COMMIT_BYTES = 32 * 1_024 * 1_024;
/** The new objects of a commit or a merge: files, folders and commits. */
export const MAX_NEW_BYTES = 64 * 1_024 * 1_024;
/** The changed files of a commit. */
export const MAX_CHANGES = 10_000;
/** An imported bundle. */
export const MAX_BUNDLE_BYTES = 32 * 1_024 * 1_024;
/** The objects of a bundle together, inflated. */
export const MAX_UNPACKED_BYTES = 1_024 * 1_024 * 1_024;
/** What an import inflates and makes of deltas to read the commits and folders of a bundle. Large repositories need 20 MiB. */
export const MAX_READ_BYTES = 512 * 1_024 * 1_024;
/** A commit or a tag of a bundle. */
export const MAX_MESSAGE_BYTES = 1_024 * 1_024;
/** An exported repository. */
export const MAX_EXPORT_BYTES = 40 * 1_024 * 1_024;
/** The objects of a bundle. */
export const MAX_OBJECTS = 100_000;
/** The branches and tags of a bundle. */
export const MAX_REFERENCES = 2_000;
/** Deltas between an object of a bundle and its whole base. */
export const MAX_CHAIN = 250;
/** The files and folders of a commit that are listed. */
export const MAX_LISTED = 50_000;
/** A file that a merge merges by lines. */
export const MAX_MERGED_BYTES = 2 * 1_024 * 1_024;
/** The lines that a merge compares, times their edits. */
export const MAX_MERGE_WORK = 100_000_000;
/** The commits that an import visits to check that branches move forward. */
export const MAX_VISITED = 1_000_000;
