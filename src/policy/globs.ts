/** Globs of files, in rules of policies and in workspaces. Pure. */
import { Minimatch } from "minimatch";
import { z } from "zod";
import { validate } from "../shared/validation.ts";

export const glob = z
  .string()
  .max(200)
  .regex(/^(?![./!]*\/|!)(?!.*(?:\\|\.\.))./, "Must be a glob from the root, such as `src/**` or `*.md`.");

const SENSITIVE_FILES = [".env", ".env.!(example)", "*.pem", "*.key", "id_rsa", "id_ed25519"];
/** Paths with a known answer, because a repository has the same paths in each call. */
const MAX_KNOWN = 20_000;

/** Returns a function that matches paths. A glob without a slash matches in each folder, and no glob distinguishes letter cases. */
export function pathMatcher(globs: readonly string[]): (path: string) => boolean {
  const options = { dot: true, matchBase: true, nocase: true, nonegate: true, nocomment: true };
  // A folder is a path, too: `src/**` matches `src`.
  const patterns = globs.flatMap((pattern) => [pattern, pattern.replace(/\/\*\*$/, "")]);
  const matcher = new Minimatch("**", options);
  // One pattern with all alternatives splits a path once.
  matcher.set = [...new Set(patterns)].flatMap((pattern) => new Minimatch(pattern, options).set);
  return (path) => matcher.match(path);
}

/** Returns a function that finds sensitive files. Throws `INVALID_INPUT` for an invalid glob. */
export function sensitiveFiles(globs: readonly string[] = SENSITIVE_FILES): (path: string) => boolean {
  const matches = pathMatcher(validate(z.array(glob).max(200), globs, "/workspaces/sensitiveFiles"));
  const known = new Map<string, boolean>();
  return (path) => {
    const answer = known.get(path) ?? matches(path);
    if (known.size >= MAX_KNOWN) known.clear();
    known.set(path, answer);
    return answer;
  };
}
