/**
 * Whether what an author posted as an input's schema is one: the known keywords have the form that JSON Schema 2020-12
 * gives them, references stay within it and lead somewhere, patterns are regular expressions. Pure.
 */
import type { InputIssue } from "../shared/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../shared/json.ts";
import { compileSchema } from "../shared/json-schema.ts";
import { jsonPointer } from "../shared/validation.ts";

const TYPES = ["array", "boolean", "integer", "null", "number", "object", "string"];

type Path = readonly (string | number)[];
/** What is wrong with a keyword's value; `null` if nothing is. */
type Check = (value: Json) => string | null;

const is =
  (test: (value: Json) => boolean, otherwise: string): Check =>
  (value) =>
    test(value) ? null : otherwise;

const isTextList = (value: Json): value is string[] =>
  Array.isArray(value) && value.every((item) => typeof item === "string");
const isText = is((value) => typeof value === "string", "Must be a string.");
const isNumber = is((value) => typeof value === "number", "Must be a number.");
const isCount = is((value) => Number.isSafeInteger(value) && Number(value) >= 0, "Must be a whole number.");
const isFlag = is((value) => typeof value === "boolean", "Must be true or false.");

/** Of the keywords that hold no schema, and of one that does. */
const KEYWORDS: Record<string, Check> = {
  type: is(
    (value) =>
      typeof value === "string"
        ? TYPES.includes(value)
        : isTextList(value) && value.length > 0 && value.every((type) => TYPES.includes(type)),
    `Must be one of ${TYPES.join(", ")}, or a list of them.`,
  ),
  enum: is((value) => Array.isArray(value) && value.length > 0, "Must be a list with a value at least."),
  required: is(isTextList, "Must be a list of names."),
  dependentRequired: is(
    (value) => isJsonObject(value) && Object.values(value).every(isTextList),
    "Must hold lists of names.",
  ),
  pattern: patternProblem,
  patternProperties: (value) =>
    Object.keys(isJsonObject(value) ? value : {}).every((pattern) => patternProblem(pattern) === null)
      ? null
      : "Each name must be a regular expression.",
  multipleOf: is((value) => typeof value === "number" && value > 0, "Must be a number above 0."),
  uniqueItems: isFlag,
};
for (const name of ["title", "description", "format", "$comment", "$schema", "contentMediaType"])
  KEYWORDS[name] = isText;
for (const name of ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]) KEYWORDS[name] = isNumber;
for (const what of ["Length", "Items", "Properties", "Contains"]) {
  KEYWORDS[`min${what}`] = isCount;
  KEYWORDS[`max${what}`] = isCount;
}
KEYWORDS.dependencies = () => "Is of an older draft: use dependentRequired or dependentSchemas.";
/** What would make a reference mean something else. */
for (const name of ["$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "$recursiveAnchor"])
  KEYWORDS[name] = () => "Is not supported: put what is shared under $defs, and refer to it by #/$defs/NAME.";

const SCHEMAS = [
  ...["items", "additionalItems", "contains", "unevaluatedItems"],
  ...["additionalProperties", "unevaluatedProperties"],
  ...["propertyNames", "not", "if", "then", "else"],
];
const SCHEMA_LISTS = ["allOf", "anyOf", "oneOf", "prefixItems"];
const SCHEMA_MAPS = ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];

/** Steps in which a schema must be applied to an empty object. */
const MAX_STEPS = 20_000;

/** What is wrong with the schema; nothing if it can be used. `base` is the JSON pointer of the schema itself. */
export function inputSchemaIssues(schema: JsonObject, base = ""): InputIssue[] {
  const issues: InputIssue[] = [];
  const report = (path: Path, message: string) => issues.push({ path: jsonPointer(path, base), message });
  walk(schema, [], schema, report);
  if (issues.length === 0 && schema.type !== "object") report(["type"], 'Must be "object".');
  if (issues.length > 0) return issues;
  try {
    compileSchema(schema)({}, MAX_STEPS);
  } catch {
    report([], "Cannot be checked: does a reference lead to itself, or to too much?");
  }
  return issues;
}

function walk(node: Json, path: Path, root: JsonObject, report: (path: Path, message: string) => void): void {
  if (typeof node === "boolean") return;
  if (!isJsonObject(node)) {
    report(path, "Must be a schema: an object, true or false.");
    return;
  }
  for (const [name, value] of Object.entries(node)) {
    const at = [...path, name];
    const problem = Object.hasOwn(KEYWORDS, name) ? KEYWORDS[name]?.(value) : null;
    if (problem != null) report(at, problem);
    else if (name === "$ref" && !leadsToSchema(value, root))
      report(at, "Must lead to a schema within this one: #/$defs/NAME.");
    else if (SCHEMAS.includes(name)) walk(value, at, root, report);
    else if (SCHEMA_LISTS.includes(name)) {
      if (!Array.isArray(value) || value.length === 0) report(at, "Must be a list of schemas.");
      else for (const [index, one] of value.entries()) walk(one, [...at, index], root, report);
    } else if (SCHEMA_MAPS.includes(name)) {
      if (!isJsonObject(value)) report(at, "Must be an object of schemas.");
      else for (const [key, one] of Object.entries(value)) walk(one, [...at, key], root, report);
    }
  }
}

function patternProblem(pattern: Json): string | null {
  if (typeof pattern !== "string") return "Must be a string.";
  try {
    new RegExp(pattern, "u");
    return null;
  } catch {
    return "Is no regular expression.";
  }
}

function leadsToSchema(reference: Json, root: JsonObject): boolean {
  if (typeof reference !== "string" || !/^#(?:\/|$)/.test(reference)) return false;
  let node: Json | undefined = root;
  for (const part of reference === "#" ? [] : reference.slice(2).split("/")) {
    const key = decoded(part);
    if (typeof node !== "object" || node === null || !Object.hasOwn(node, key)) return false;
    node = Array.isArray(node) ? node[Number(key)] : node[key];
  }
  return typeof node === "boolean" || isJsonObject(node);
}

/** A part of a JSON pointer in a URI's fragment. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return part;
  }
}
