/** Zod's verdict in our terms: a parsed value, or `INVALID_INPUT` with one issue per place. */
import type { z } from "zod";
import { DramatisError, type InputIssue } from "./errors.ts";

/** At most this many issues are reported of one input. */
const MAX_ISSUES = 20;

/** A JSON pointer (RFC 6901) of a path; `base` is the pointer it continues. */
export function jsonPointer(path: readonly PropertyKey[], base = ""): string {
  return path.reduce<string>(
    (pointer, key) => `${pointer}/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`,
    base,
  );
}

/**
 * The value as the schema reads it; otherwise throws `INVALID_INPUT` that says what is wrong with `name`, and where:
 * issues are reported under the JSON pointer `base`.
 */
export function validate<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  base = "",
  name = "The input",
): z.output<Schema> {
  const parsed = schema.safeParse(value, { error: missing });
  if (parsed.success) return parsed.data;
  const errors = inputIssues(parsed.error, base);
  throw new DramatisError("INVALID_INPUT", `${name} is not valid: ${issuesText(errors)}`, { errors });
}

/** What is wrong with nothing at all: zod would speak of types, and of its own names for them. */
function missing({ input }: { readonly input?: unknown }): string | undefined {
  return input === undefined ? "Is required." : undefined;
}

/** A failed parse as issues; the empty path means the value itself. */
export function inputIssues(error: z.core.$ZodError, base = ""): InputIssue[] {
  return error.issues.flatMap((issue) => toIssues(issue, base)).slice(0, MAX_ISSUES);
}

/** Issues as one line: `/limit: Invalid input …; /query: …`. */
export function issuesText(issues: readonly InputIssue[]): string {
  const texts = issues.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`));
  return texts.join("; ").replaceAll(".; ", "; ");
}

function toIssues(issue: z.core.$ZodIssue, base: string): InputIssue[] {
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => ({
      path: jsonPointer([...issue.path, key], base),
      message: "Unknown field.",
    }));
  }
  if (issue.code === "invalid_union") {
    // Where only one of the alternatives is of the input's kind, that one was meant.
    const meant = issue.errors.filter((errors) => errors.every(({ path }) => path.length > 0));
    if (meant.length === 1)
      return (meant[0] ?? []).flatMap((inner) => toIssues(inner, jsonPointer(issue.path, base)));
  }
  return [{ path: jsonPointer(issue.path, base), message: issue.message }];
}
