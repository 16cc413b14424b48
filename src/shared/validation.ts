/** Validation with zod: a parsed value, or `INVALID_INPUT` with one issue per place. */
import type { z } from "zod";
import { DramatisError, type InputIssue } from "./errors.ts";
import { meantField } from "./known-fields.ts";
import { shorten } from "./text.ts";

/** Issues reported per input. */
const MAX_ISSUES = 20;
/** Length of an issue's path. Names from outside may have any length. */
const MAX_PATH_LENGTH = 200;

/** Returns a path as a JSON pointer (RFC 6901) that continues the pointer `base`. */
export function jsonPointer(path: readonly PropertyKey[], base = ""): string {
  return path.reduce<string>(
    (pointer, key) => `${pointer}/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`,
    base,
  );
}

/** Returns an issue, with a path that fits into an answer. */
export function issueAt(path: string, message: string): InputIssue {
  return { path: shorten(path, MAX_PATH_LENGTH), message };
}

/**
 * Returns the value as the schema parses it. Throws `INVALID_INPUT` with `name` in the message and issues under the JSON
 * pointer `base`.
 */
export function validate<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  base = "",
  name = "The input",
): z.output<Schema> {
  const parsed = schema.safeParse(value, { error: plainly });
  if (parsed.success) return parsed.data;
  const errors = inputIssues(parsed.error, base, schema);
  throw new DramatisError("INVALID_INPUT", `${name} is not valid: ${issuesText(errors)}`, { errors });
}

/** Returns the error of a value with one problem. `path` is its JSON pointer, and `text` the message of the error. */
export function invalidAt(path: string, message: string, text = message): DramatisError {
  return new DramatisError("INVALID_INPUT", text, { errors: [{ path, message }] });
}

/** Replaces zod's messages for an absent value and for a value that is not in a list. */
export function plainly(issue: {
  readonly input?: unknown;
  readonly values?: readonly unknown[];
  readonly discriminator?: unknown;
  readonly options?: unknown;
}): string | undefined {
  if (issue.input === undefined) return "Is required.";
  const known = issue.discriminator === undefined ? issue.values : issue.options;
  if (!Array.isArray(known) || known.length === 0) return undefined;
  return `Must be ${known.map((value) => JSON.stringify(value)).join(" or ")}.`;
}

/** Returns a failed parse as issues. The empty path means the value itself. With `schema`, unknown fields suggest known fields (FIELD-1). */
export function inputIssues(error: z.core.$ZodError, base = "", schema?: z.ZodType): InputIssue[] {
  const meant: Meant = (path) => (schema === undefined ? undefined : meantField(schema, path));
  return error.issues.flatMap((issue) => toIssues(issue, [], base, meant)).slice(0, MAX_ISSUES);
}

/** Returns the known field that an unknown field may mean. */
type Meant = (path: readonly PropertyKey[]) => string | undefined;

/** Returns issues as one line: `/limit: Invalid input …; /query: …`. */
export function issuesText(issues: readonly InputIssue[]): string {
  const texts = issues.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`));
  return texts.join("; ").replaceAll(".; ", "; ");
}

function toIssues(
  issue: z.core.$ZodIssue,
  within: readonly PropertyKey[],
  base: string,
  meant: Meant,
): InputIssue[] {
  const path = [...within, ...issue.path];
  if (issue.code === "unrecognized_keys") {
    return issue.keys.slice(0, MAX_ISSUES).map((key) => {
      const field = meant([...path, key]);
      const advice = field === undefined ? "" : ` Did you mean "${field}"?`;
      return issueAt(jsonPointer([...path, key], base), `Unknown field.${advice}`);
    });
  }
  if (issue.code === "invalid_union") {
    // If the kind and the discriminator of the input fit a single alternative, report its issues.
    const alternatives = issue.errors.filter((errors) => errors.every(({ path: inner }) => inner.length > 0));
    const fitting = alternatives.length > 1 ? alternatives.filter(isChosen) : alternatives;
    const [only, ...others] = fitting;
    if (only !== undefined && others.length === 0)
      return only.flatMap((inner) => toIssues(inner, path, base, meant));
  }
  return [issueAt(jsonPointer(path, base), issue.message)];
}

/** Reports whether the input has a known discriminator of an alternative, or the alternative has no discriminator. */
function isChosen(errors: readonly z.core.$ZodIssue[]): boolean {
  return !errors.some(
    (issue) => issue.code === "invalid_union" && issue.errors.length === 0 && issue.path.length === 1,
  );
}
