/** Resolves a part of a JSON Schema to plain keywords: references, and the schemas that it combines. */
import { isJsonObject, type Json, type JsonObject } from "../json.ts";
import type { Meter } from "./meter.ts";
import { decoded } from "./read-schema.ts";
import { areEqual } from "./values.ts";

/** Steps of resolving a schema, and of each of its keywords. */
const [STEPS_OF_SCHEMA, STEPS_OF_KEYWORD] = [30, 12];

/** Where alternatives are chosen. */
export interface Choice {
  root: JsonObject;
  /** Index of the alternative of `anyOf` and `oneOf`, limited to the last alternative. */
  alternative: number;
  meter: Meter;
  known: Map<JsonObject, JsonObject | false>;
}

/** Returns the keywords that apply to one value. `false` allows no value. */
export function resolved(schema: Json | undefined, choice: Choice): JsonObject | false {
  if (schema === false) return false;
  if (!isJsonObject(schema)) return {};
  const { known } = choice;
  const found = known.get(schema) ?? resolve(schema, choice);
  known.set(schema, found);
  return found;
}

function resolve(schema: JsonObject, choice: Choice): JsonObject | false {
  const { meter } = choice;
  meter.spend(STEPS_OF_SCHEMA + Object.keys(schema).length * STEPS_OF_KEYWORD);
  const { $ref, allOf = [], anyOf, oneOf, ...own } = schema;
  const parts: Json[] = [own];
  if (typeof $ref === "string") parts.push(at(choice, $ref) ?? {});
  if (Array.isArray(allOf)) parts.push(...allOf);
  for (const alternatives of [anyOf, oneOf])
    if (Array.isArray(alternatives))
      parts.push(alternatives[Math.min(choice.alternative, alternatives.length - 1)] ?? {});
  return parts.reduce<JsonObject | false>((merged, part, index) => {
    const more = index === 0 ? own : resolved(part, choice);
    return merged === false || more === false ? false : merge(merged, more, meter);
  }, {});
}

function at({ root, meter }: Choice, reference: string): Json | undefined {
  meter.spend(reference.length);
  const names = decoded(reference.slice(1)).split("/").slice(1);
  return names.reduce<Json | undefined>((value, name) => {
    const key = name.replaceAll("~1", "/").replaceAll("~0", "~");
    if (Array.isArray(value)) return value[Number(key)];
    return isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  }, root);
}

type Combine = (one: Json, other: Json, meter: Meter) => Json;

const both = (one: Json, other: Json): Json => ({ allOf: [one, other] });
const most: Combine = (one, other) => Math.max(Number(one), Number(other));
const least: Combine = (one, other) => Math.min(Number(one), Number(other));
const listOf = (value: Json): Json[] => (Array.isArray(value) ? value : [value]);

const COMBINE: Readonly<Record<string, Combine>> = {
  type: (one, other, meter) => {
    const [types, others] = [listOf(one), listOf(other)];
    meter.spend(types.length * others.length);
    // A whole number is a number.
    const narrow = (type: Json) =>
      others.includes(type) || (type === "integer" && others.includes("number"))
        ? [type]
        : type === "number" && others.includes("integer")
          ? ["integer"]
          : [];
    return types.flatMap(narrow);
  },
  enum: (one, other, meter) =>
    listOf(one).filter((value) => listOf(other).some((item) => areEqual(item, value, meter))),
  required: (one, other, meter) => {
    meter.spend((listOf(one).length + listOf(other).length) * STEPS_OF_KEYWORD);
    return [...new Set([...listOf(one), ...listOf(other)])];
  },
  properties: (one, other, meter) => {
    if (!isJsonObject(one) || !isJsonObject(other)) return other;
    const names = new Set([...Object.keys(one), ...Object.keys(other)]);
    meter.spend(names.size * STEPS_OF_SCHEMA);
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

function merge(one: JsonObject, other: JsonObject, meter: Meter): JsonObject {
  meter.spend(STEPS_OF_SCHEMA + (Object.keys(one).length + Object.keys(other).length) * STEPS_OF_KEYWORD);
  const merged = { ...one };
  for (const [name, value] of Object.entries(other)) {
    const before = member(one, name);
    const combine = Object.hasOwn(COMBINE, name) ? COMBINE[name] : undefined;
    merged[name] = before === undefined || combine === undefined ? value : combine(before, value, meter);
  }
  return merged;
}

export function member(object: Json | undefined, name: string): Json | undefined {
  return isJsonObject(object) && Object.hasOwn(object, name) ? object[name] : undefined;
}
