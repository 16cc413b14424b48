/**
 * Validation with zod: a parsed value, or `INVALID_INPUT` with one issue per place.
 *
 * INVALID-1  An issue states the requirement: `Must be a string.`, `Must have at least 1 item.` It never has zod's own words for these cases.
 */
import type { z } from "zod";
import { type DramatisError, type InputIssue, invalid } from "./errors.ts";
import { fieldAdvice } from "./known-fields.ts";
import { didYouMean, listIds } from "./known-ids.ts";
import { shorten } from "./text.ts";

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
  throw invalid(`${name} is not valid: ${issuesText(errors)}`, { errors });
}

/** Throws `INVALID_INPUT` for an option that is not a member of `known`. `what` names the owner of the options in the message. */
export function checkOptions(what: string, options: object, known: object): void {
  const names = Object.keys(known);
  const unknown = Object.keys(options).find((name) => !names.includes(name));
  if (unknown === undefined) return;
  const advice = didYouMean(unknown, names) || ` The options are: ${listIds(unknown, names)}.`;
  throw invalid(`${what} has no option "${unknown}".${advice}`);
}

/** As `validate`, for a request by RPC: its members that are `undefined` count as absent. */
export function validateRequest<Schema extends z.ZodType>(
  schema: Schema,
  request: unknown,
  base = "",
): z.output<Schema> {
  if (typeof request !== "object" || request === null || Array.isArray(request))
    return validate(schema, request, base);
  // Unlike an assignment, `fromEntries` keeps a member `__proto__`, which the schema then refuses.
  const members = Object.entries(request).filter(([, value]) => value !== undefined);
  return validate(schema, Object.fromEntries(members), base);
}

/** Returns the error of a value with one problem. `path` is its JSON pointer, and `text` the message of the error. */
export function invalidAt(path: string, message: string, text = message): DramatisError {
  return invalid(text, { errors: [{ path, message }] });
}

/** The types of JSON by zod's names. */
const TYPES: Readonly<Record<string, string>> = {
  ...{ string: "a string", number: "a number", int: "an integer", boolean: "true or false" },
  ...{ array: "a list", object: "an object", record: "an object", null: "null" },
};

/** Replaces zod's own messages (INVALID-1). Messages of a schema have precedence. Pass it to `safeParse` as `error`. */
export function plainly(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.input === undefined) return "Is required.";
  switch (issue.code) {
    case "invalid_type":
      return mustBe(TYPES[issue.expected]);
    case "invalid_value":
      return mustBe(...issue.values.map((value) => JSON.stringify(value)));
    case "too_small":
      return limitMessage(issue.origin, "at least", "more than", issue.minimum, issue);
    case "too_big":
      return limitMessage(issue.origin, "at most", "less than", issue.maximum, issue);
    case "invalid_union":
      return Array.isArray(issue.options)
        ? mustBe(...issue.options.map((value) => JSON.stringify(value)))
        : mustBe(
            ...issue.errors.map(([own]) => (own?.path.length === 0 ? expectedIn(own.message) : undefined)),
          );
    case "invalid_key":
      return issue.issues[0] && `Has a member with an invalid name: ${issue.issues[0].message}`;
    default:
      return undefined;
  }
}

/** Returns a message with the accepted values; `undefined` if one is unknown. */
function mustBe(...accepted: (string | undefined)[]): string | undefined {
  if (accepted.length === 0 || accepted.includes(undefined)) return undefined;
  return `Must be ${[...new Set(accepted)].join(" or ")}.`;
}

/** Returns the accepted values in a message of `mustBe`. */
function expectedIn(message: string): string | undefined {
  return /^Must be (.*)\.$/.exec(message)?.[1];
}

function limitMessage(
  origin: string,
  bound: string,
  exclusive: string,
  limit: number | bigint,
  { inclusive = true, exact = false }: { inclusive?: boolean; exact?: boolean },
): string {
  if (origin === "number" || origin === "int") return `Must be ${inclusive ? bound : exclusive} ${limit}.`;
  const unit = origin === "string" ? "character" : origin === "array" ? "item" : "member";
  return `Must have ${exact ? "exactly" : bound} ${limit} ${unit}${Number(limit) === 1 ? "" : "s"}.`;
}

/** Returns a failed parse as issues. The empty path means the value itself. With `schema`, unknown fields name known fields (FIELD-1, FIELD-2). */
export function inputIssues(error: z.core.$ZodError, base = "", schema?: z.ZodType): InputIssue[] {
  const advice: Advice = (path) => (schema === undefined ? "" : fieldAdvice(schema, path));
  return error.issues.flatMap((issue) => toIssues(issue, [], base, advice)).slice(0, MAX_ISSUES);
}

/** Returns advice on an unknown field. */
type Advice = (path: readonly PropertyKey[]) => string;

/** Returns issues as one line: `/limit: Must be an integer; /query: …`. */
export function issuesText(issues: readonly InputIssue[]): string {
  const texts = issues.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`));
  return texts.join("; ").replaceAll(".; ", "; ");
}

function toIssues(
  issue: z.core.$ZodIssue,
  within: readonly PropertyKey[],
  base: string,
  advice: Advice,
): InputIssue[] {
  const path = [...within, ...issue.path];
  if (issue.code === "unrecognized_keys") {
    return issue.keys.slice(0, MAX_ISSUES).map((key) => {
      const at = [...path, key];
      return issueAt(jsonPointer(at, base), `Unknown field.${advice(at)}`);
    });
  }
  if (issue.code === "invalid_union") {
    // If the kind and the discriminator of the input fit a single alternative, report its issues. Unknown fields alone fit, too.
    const alternatives = issue.errors.filter(
      (errors) =>
        errors.every(({ path: inner }) => inner.length > 0) ||
        errors.every(({ code }) => code === "unrecognized_keys"),
    );
    const fitting = alternatives.length > 1 ? alternatives.filter(isChosen) : alternatives;
    const [only, ...others] = fitting;
    if (only !== undefined && others.length === 0)
      return only.flatMap((inner) => toIssues(inner, path, base, advice));
  }
  return [issueAt(jsonPointer(path, base), issue.message)];
}

/** Reports whether the input has a known discriminator of an alternative, or the alternative has no discriminator. */
function isChosen(errors: readonly z.core.$ZodIssue[]): boolean {
  return !errors.some(
    (issue) => issue.code === "invalid_union" && issue.errors.length === 0 && issue.path.length === 1,
  );
}
