/** Checks the values of JSON Schema keywords that contain no schema. Pure. */
import { isJsonObject, type Json } from "../json.ts";

const TYPES = ["array", "boolean", "integer", "null", "number", "object", "string"];

/** Returns the problem of a keyword's value, or `null`. */
type Check = (value: Json) => string | null;

const is =
  (test: (value: Json) => boolean, otherwise: string): Check =>
  (value) =>
    test(value) ? null : otherwise;

const isTextList = (value: Json): value is string[] =>
  Array.isArray(value) && value.every((item) => typeof item === "string");
/** The checker walks a list of types for each value, so the list must be short. */
const isEachOnce = (types: readonly string[]) =>
  types.length <= TYPES.length && new Set(types).size === types.length;
const isText = is((value) => typeof value === "string", "Must be a string.");
const isNumber = is((value) => typeof value === "number", "Must be a number.");
const isCount = is((value) => Number.isSafeInteger(value) && Number(value) >= 0, "Must be a whole number.");
const isFlag = is((value) => typeof value === "boolean", "Must be true or false.");

/** The checks of keywords that decide whether a value fits. */
const CHECKED = new Map<string, Check>([
  [
    "type",
    is(
      (value) =>
        typeof value === "string"
          ? TYPES.includes(value)
          : isTextList(value) &&
            value.length > 0 &&
            isEachOnce(value) &&
            value.every((type) => TYPES.includes(type)),
      `Must be one of ${TYPES.join(", ")}, or a list of them, each at most once.`,
    ),
  ],
  ["const", () => null],
  [
    "enum",
    is((value) => Array.isArray(value) && value.length > 0, "Must be a list with at least one value."),
  ],
  ["required", is(isTextList, "Must be a list of names.")],
  [
    "dependentRequired",
    is((value) => isJsonObject(value) && Object.values(value).every(isTextList), "Must hold lists of names."),
  ],
  ["format", (value) => (value === "url" ? 'Is not supported: use "uri".' : isText(value))],
  ["multipleOf", is((value) => typeof value === "number" && value > 0, "Must be a number above 0.")],
  ["uniqueItems", isFlag],
  ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"].map((name) => [name, isNumber] as const),
  ...["Length", "Items", "Properties", "Contains"].flatMap((what) => [
    [`min${what}`, isCount] as const,
    [`max${what}`, isCount] as const,
  ]),
]);

/** The checks of keywords that are refused, or only describe. */
const OTHERS = new Map<string, Check>([
  ...["title", "description", "$comment", "$schema", "contentMediaType"].map(
    (name) => [name, isText] as const,
  ),
  ["dependencies", () => "Belongs to an older draft: use dependentRequired or dependentSchemas."],
  // These keywords change the meaning of references.
  ...["$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "$recursiveAnchor"].map(
    (name) =>
      [
        name,
        () => "Is not supported: put shared schemas under $defs, and refer to them by #/$defs/NAME.",
      ] as const,
  ),
]);

/** Reports whether a keyword without schemas decides whether a value fits. */
export function isChecked(name: string): boolean {
  return CHECKED.has(name);
}

/** Returns the problem of a keyword's value. `null` if it is valid or unknown. */
export function keywordProblem(name: string, value: Json): string | null {
  return (CHECKED.get(name) ?? OTHERS.get(name))?.(value) ?? null;
}
