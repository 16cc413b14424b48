/**
 * Whether what an author posted as an input's schema is one: the known keywords have the form that JSON Schema 2020-12
 * gives them, references stay within it and lead somewhere, and what it takes to check a value against it is bounded. Pure.
 *
 * INSCHEMA-1  Every schema from outside is taken only if its patterns take no exponential time, and no part of it applies
 *             itself, or more than `MAX_IN_PLACE` schemas, to one value. What is refused is named with its place.
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
  format: (value) =>
    typeof value !== "string"
      ? "Must be a string."
      : value === "url"
        ? 'Is not checked here: use "uri".'
        : null,
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
KEYWORDS.dependencies = () => "Is of an older draft: use dependentRequired or dependentSchemas.";
/** What would make a reference mean something else. */
for (const name of ["$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "$recursiveAnchor"])
  KEYWORDS[name] = () => "Is not supported: put what is shared under $defs, and refer to it by #/$defs/NAME.";

/** What is wrong with the schema; nothing if it can be used. `base` is the JSON pointer of the schema itself. */
export function inputSchemaIssues(schema: JsonObject, base = ""): InputIssue[] {
  const issues: InputIssue[] = [];
  const report = (path: Path, message: string) => issues.push({ path: jsonPointer(path, base), message });
  walk(schema, [], schema, report);
  if (issues.length === 0 && schema.type !== "object") report(["type"], 'Must be "object".');
  if (issues.length > 0) return issues;
  const patterns = patternsIn(schema);
  if (patterns > MAX_PATTERNS) report([], `Has ${patterns} characters of patterns; at most ${MAX_PATTERNS}.`);
  const size = sizing(schema);
  each(schema, [], (node, path) => {
    const problem = sizeProblem(size(node));
    if (issues.length === 0 && problem !== null) report(path, problem);
  });
  return issues;
}

/** Schemas that one schema may apply to the same value, its own and those that it combines or refers to. */
const MAX_IN_PLACE = 1_000;

/** Characters that the patterns of one schema may have together. */
const MAX_PATTERNS = 10_000;

function patternsIn(schema: JsonObject): number {
  let length = 0;
  each(schema, [], ({ pattern = "", patternProperties = {} }) => {
    const names = Object.keys(patternProperties ?? {});
    length += String(pattern).length + names.reduce((sum, name) => sum + name.length, 0);
  });
  return length;
}

/** How many schemas a part of `root` applies to the same value; infinitely many where it leads back to itself. */
function sizing(root: JsonObject): (node: Json) => number {
  const sizes = new Map<Json, number>();
  const size = (node: Json, depth = 0): number => {
    if (!isJsonObject(node)) return 1;
    if (depth > MAX_IN_PLACE) return MAX_IN_PLACE;
    const known = sizes.get(node);
    if (known !== undefined) return known;
    // Found again before it is known, it leads to itself.
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
    ? "Leads back to itself for the same value: refer to it from within properties or items only."
    : `Applies ${size} schemas to one value, references followed; at most ${MAX_IN_PLACE}: combine fewer.`;
}

/** Every schema in `node`, itself first. */
function each(node: Json, path: Path, visit: (node: JsonObject, path: Path) => void): void {
  if (!isJsonObject(node)) return;
  visit(node, path);
  for (const [name, value] of Object.entries(node)) {
    if (SCHEMAS.includes(name)) each(value, [...path, name], visit);
    else if (SCHEMA_LISTS.includes(name) || SCHEMA_MAPS.includes(name))
      for (const [key, one] of Object.entries(value ?? {})) each(one, [...path, name, key], visit);
  }
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
    else if (name === "$ref" && referredSchema(value, root) === undefined)
      report(at, "Must lead to a schema within this one: #/$defs/NAME.");
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
