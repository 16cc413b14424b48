/** Resolves a part of a JSON Schema to plain keywords: references, and the schemas that it combines. Pure. */
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";

/** Where alternatives are chosen. */
export interface Choice {
  root: JsonObject;
  /** Index of the alternative of `anyOf` and `oneOf`: the last one where there are fewer. */
  alternative: number;
}

/** Returns the keywords that apply to one value. `false` allows no value. */
export function resolved(schema: Json | undefined, choice: Choice): JsonObject | false {
  if (schema === false) return false;
  if (!isJsonObject(schema)) return {};
  const { $ref, allOf = [], anyOf, oneOf, ...own } = schema;
  const parts: Json[] = [own];
  if (typeof $ref === "string") parts.push(at(choice.root, $ref) ?? {});
  if (Array.isArray(allOf)) parts.push(...allOf);
  for (const alternatives of [anyOf, oneOf])
    if (Array.isArray(alternatives))
      parts.push(alternatives[Math.min(choice.alternative, alternatives.length - 1)] ?? {});
  return parts.reduce<JsonObject | false>((merged, part, index) => {
    const more = index === 0 ? own : resolved(part, choice);
    return merged === false || more === false ? false : merge(merged, more);
  }, {});
}

/** Returns the value that a JSON pointer of a reference names. */
function at(root: JsonObject, reference: string): Json | undefined {
  const names = decodeURIComponent(reference.slice(1)).split("/").slice(1);
  return names.reduce<Json | undefined>((value, name) => {
    const key = name.replaceAll("~1", "/").replaceAll("~0", "~");
    if (Array.isArray(value)) return value[Number(key)];
    return isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  }, root);
}

type Combine = (one: Json, other: Json) => Json;

const isIn = (list: readonly Json[], value: Json) =>
  list.some((item) => JSON.stringify(item) === JSON.stringify(value));
const both: Combine = (one, other) => ({ allOf: [one, other] });
const most: Combine = (one, other) => Math.max(Number(one), Number(other));
const least: Combine = (one, other) => Math.min(Number(one), Number(other));
const listOf = (value: Json): Json[] => (Array.isArray(value) ? value : [value]);

const COMBINE: Readonly<Record<string, Combine>> = {
  type: (one, other) => {
    const [types, others] = [listOf(one), listOf(other)];
    // A whole number is a number.
    const narrow = (type: Json) =>
      others.includes(type) || (type === "integer" && others.includes("number"))
        ? [type]
        : type === "number" && others.includes("integer")
          ? ["integer"]
          : [];
    return types.flatMap(narrow);
  },
  enum: (one, other) => listOf(one).filter((value) => isIn(listOf(other), value)),
  required: (one, other) => [...new Set([...listOf(one), ...listOf(other)])],
  properties: (one, other) => {
    if (!isJsonObject(one) || !isJsonObject(other)) return other;
    const names = new Set([...Object.keys(one), ...Object.keys(other)]);
    return Object.fromEntries(
      [...names].map((name) => [name, both(member(one, name) ?? true, member(other, name) ?? true)]),
    );
  },
  items: both,
  contains: both,
  additionalProperties: both,
  ...Object.fromEntries(
    ["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains"].map((name) => [
      name,
      most,
    ]),
  ),
  ...Object.fromEntries(
    ["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"].map((name) => [name, least]),
  ),
};

function merge(one: JsonObject, other: JsonObject): JsonObject {
  const merged = { ...one };
  for (const [name, value] of Object.entries(other)) {
    const before = member(one, name);
    const combine = Object.hasOwn(COMBINE, name) ? COMBINE[name] : undefined;
    merged[name] = before === undefined || combine === undefined ? value : combine(before, value);
  }
  return merged;
}

/** Returns an own member. */
export function member(object: Json | undefined, name: string): Json | undefined {
  return isJsonObject(object) && Object.hasOwn(object, name) ? object[name] : undefined;
}
