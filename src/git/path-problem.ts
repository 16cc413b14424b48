/**
 * The paths of files in repositories. Pure.
 *
 * PATH-1  A path names one file below the root: by segments that "/" separates. No segment leaves its folder, and none names the
 *         folder `.git` of any file system.
 */

/** Characters of a path, and of a segment in bytes of UTF-8. Most file systems have these limits. */
const MAX_PATH_LENGTH = 1_024;
const MAX_SEGMENT_BYTES = 255;

/** Characters that file systems of macOS ignore in names. */
const IGNORED = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g;

/**
 * Returns the problem of a path; `undefined` for a valid path.
 *
 * @example pathProblem("src/../x"); // 'has the segment "..". Write the path from the root of the repository.'
 */
export function pathProblem(path: string): string | undefined {
  if (path === "") return "is empty. Name a file, such as src/index.ts.";
  if (path.length > MAX_PATH_LENGTH) return `has more than ${MAX_PATH_LENGTH} characters. Shorten it.`;
  if (!path.isWellFormed()) return "is not well-formed Unicode.";
  if (/\p{Cc}/u.test(path)) return "has a control character. Remove it.";
  if (path.includes("\\")) return 'has a backslash. Separate segments with "/".';
  if (path.startsWith("/") || /^[A-Za-z]:/.test(path))
    return "is absolute. Write it from the root of the repository.";
  for (const segment of path.split("/")) {
    const problem = segmentProblem(segment);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function segmentProblem(segment: string): string | undefined {
  if (segment === "") return 'has an empty segment. Remove the "/" without a name.';
  if (segment === "." || segment === "..")
    return `has the segment "${segment}". Write the path from the root of the repository.`;
  // Windows ignores dots and spaces at the end, and the part after a colon. `git~1` is its short name of `.git`.
  const [name = ""] = segment.replace(IGNORED, "").toLowerCase().split(":");
  if (/^(?:\.git|git~1)[. ]*$/.test(name)) return 'names the folder ".git". Choose another name.';
  if (new TextEncoder().encode(segment).length > MAX_SEGMENT_BYTES)
    return `has a segment of more than ${MAX_SEGMENT_BYTES} bytes. Shorten it.`;
  return undefined;
}
