/**
 * Patterns of names of tools.
 *
 * POLICY-3  A pattern is the exact name of a tool, or a beginning of names with `*` at the end.
 */
import { z } from "zod";

const MAX_PATTERNS = 200;

/** Names of tools, such as `refund` or `repo_*`. */
export const toolPatterns = z
  .array(
    z.string().regex(/^(?=.)[A-Za-z0-9_-]{0,64}\*?$/, "Must be a name of a tool, or its beginning and `*`."),
  )
  .min(1)
  .max(MAX_PATTERNS);

/** Reports whether a name matches one of the patterns (POLICY-3). */
export function matchesName(patterns: readonly string[], name: string): boolean {
  return patterns.some((pattern) =>
    pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern,
  );
}
