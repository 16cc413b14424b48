/**
 * Checks JSON Schemas from outside: known keywords have the form of JSON Schema 2020-12, references point into the schema,
 * and the effort of checking a value is bounded. Pure.
 *
 * INSCHEMA-1  A schema from outside is accepted only if its patterns never need exponential time, and no part of it applies
 *             itself, or more than `MAX_IN_PLACE` schemas, to one value. Each problem is reported with its place.
 */
import type { InputIssue } from "../shared/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../shared/json.ts";
import {
  referredSchema,
  SCHEMA_LISTS,
  SCHEMA_MAPS,
  SCHEMAS,
  schemasInPlace,
} from "../shared/json-schema/keywords.ts";
import { patternProblem } from "../shared/json-schema/pattern-effort.ts";
import { jsonPointer } from "../shared/validation.ts";

const TYPES = ["array", "boolean", "integer", "null", "number", "object", "string"];

type Path = readonly (string | number)[];
/** Returns the problem of a keyword's value, or `null`. */
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

/** The checks of keywords that hold no schema. */
const KEYWORDS: Record<string, Check> = {
  type: is(
    (value) =>
      typeof value === "string"
        ? TYPES.includes(value)
        : isTextList(value) && value.length > 0 && value.every((type) => TYPES.includes(type)),
    `Must be one of ${TYPES.join(", ")}, or a list of them.`,
  ),
  enum: is((value) => Array.isArray(value) && value.length > 0, "Must be a list with at least one value."),
  required: is(isTextList, "Must be a list of names."),
  dependentRequired: is(
    (value) => isJsonObject(value) && Object.values(value).every(isTextList),
    "Must hold lists of names.",
  ),
  pattern: patternProblem,
  format: (value) => (value === "url" ? 'Is not supported: use "uri".' : isText(value)),
  multipleOf: is((value) => typeof value === "number" && value > 0, "Must be a number above 0."),
  uniqueItems: isFlag,
};
for (const name of ["title", "description", "$comment", "$schema", "contentMediaType"])
  KEYWORDS[name] = isText;
for (const name of ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]) KEYWORDS[name] = isNumber;
for (const what of ["Length", "Items", "Properties", "Contains"]) {
  KEYWORDS[`min${what}`] = isCount;
  KEYWORDS[`max${what}`] = isCount;
}
KEYWORDS.dependencies = () => "Belongs to an older draft: use dependentRequired or dependentSchemas.";
// These keywords change the meaning of references.
for (const name of ["$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "$recursiveAnchor"])
  KEYWORDS[name] = () =>
    "Is not supported: put shared schemas under $defs, and refer to them by #/$defs/NAME.";

/** Returns the problems of a schema; none if it can be used. `base` is the JSON pointer of the schema itself. */
export function inputSchemaIssues(schema: JsonObject, base = ""): InputIssue[] {
  const issues: InputIssue[] = [];
  const report = (path: Path, message: string) => issues.push({ path: jsonPointer(path, base), message });
  walk(schema, [], schema, report);
  if (issues.length === 0 && schema.type !== "object") report(["type"], 'Must be "object".');
  if (issues.length > 0) return issues;
  const size = sizing(schema);
  let patterns = 0;
  each(schema, [], (node, path) => {
    patterns += lengthOfPatterns(node);
    const problem = sizeProblem(size(node));
    if (issues.length === 0 && problem !== null) report(path, problem);
  });
  if (patterns > MAX_PATTERNS)
    report([], `Has ${patterns} characters of patterns. The maximum is ${MAX_PATTERNS}.`);
  return issues;
}

/** Maximum number of schemas that one schema applies to the same value: itself, and those it combines or refers to. */
const MAX_IN_PLACE = 1_000;

/** Maximum total length of the patterns of one schema, in characters. */
const MAX_PATTERNS = 10_000;

function lengthOfPatterns({ pattern = "", patternProperties = {} }: JsonObject): number {
  const names = Object.keys(patternProperties ?? {});
  return names.reduce((sum, name) => sum + name.length, String(pattern).length);
}

/** Counts the schemas that a part of `root` applies to one value: infinitely many if the part applies itself. */
function sizing(root: JsonObject): (node: Json) => number {
  const sizes = new Map<Json, number>();
  const size = (node: Json, depth = 0): number => {
    if (!isJsonObject(node)) return 1;
    if (depth > MAX_IN_PLACE) return MAX_IN_PLACE;
    const known = sizes.get(node);
    if (known !== undefined) return known;
    // A second visit before the count is known means that the schema applies itself.
    sizes.set(node, Number.POSITIVE_INFINITY);
    const total = schemasInPlace(node, root).reduce<number>((sum, part) => sum + size(part, depth + 1), 1);
    sizes.set(node, total);
    return total;
  };
  return size;
}

function sizeProblem(size: number): string | null {
  if (size <= MAX_IN_PLACE) return null;
  return size === Number.POSITIVE_INFINITY
    ? "Applies itself to the same value: refer to it only from within properties or items."
    : `Applies ${size} schemas to one value, including references. The maximum is ${MAX_IN_PLACE}: combine fewer.`;
}

/** Visits every schema in `node`, itself first. */
function each(node: Json, path: Path, visit: (node: JsonObject, path: Path) => void): void {
  if (!isJsonObject(node)) return;
  visit(node, path);
  for (const [name, value] of Object.entries(node)) {
    if (SCHEMAS.includes(name)) each(value, [...path, name], visit);
    else if (SCHEMA_LISTS.includes(name) || SCHEMA_MAPS.includes(name))
      for (const [key, one] of Object.entries(value ?? {})) each(one, [...path, name, key], visit);
  }
}

/** Reports problems of keywords and references. */
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
    else if (name === "$ref" && referredSchema(value, root) === undefined)
      report(at, "Must refer to a schema within this one: #/$defs/NAME.");
    else if (SCHEMAS.includes(name)) walk(value, at, root, report);
    else if (SCHEMA_LISTS.includes(name)) {
      if (!Array.isArray(value) || value.length === 0) report(at, "Must be a list of schemas.");
      else for (const [index, one] of value.entries()) walk(one, [...at, index], root, report);
    } else if (SCHEMA_MAPS.includes(name)) {
      if (!isJsonObject(value)) report(at, "Must be an object of schemas.");
      else
        for (const [key, one] of Object.entries(value)) {
          const badName = name === "patternProperties" ? patternProblem(key) : null;
          if (badName !== null) report([...at, key], badName);
          walk(one, [...at, key], root, report);
        }
    }
  }
}
