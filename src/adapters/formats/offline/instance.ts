/**
 * A value that fits a JSON Schema, made by rule: the offline model's answer if data is demanded.
 *
 * OFFLINE-4  Equal schemas give equal values. A value fits its schema unless that has a `pattern`, `not`, `if`,
 *            `contains`, or parts of an `allOf` that contradict each other.
 */
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";

/** Levels of nesting; deeper members are left out, or are `null`. */
const MAX_DEPTH = 32;
/** Levels of nesting that have optional members. */
const OPTIONAL_DEPTH = 8;

const FORMATS: ReadonlyMap<Json | undefined, string> = new Map([
  ["date-time", "2000-01-01T00:00:00Z"],
  ["date", "2000-01-01"],
  ["time", "00:00:00Z"],
  ["duration", "P1D"],
  ["email", "offline@example.com"],
  ["hostname", "example.com"],
  ["ipv4", "192.0.2.1"],
  ["ipv6", "2001:db8::1"],
  ["uri", "https://example.com/"],
  ["uri-reference", "/"],
  ["uuid", "00000000-0000-4000-8000-000000000000"],
]);
const TEXT = "offline";

/** Makes a value of a schema: the first of what is allowed, as short as possible, with every property that is named. */
export function instanceOf(root: JsonObject): Json {
  return instance(root, { root, depth: 0 });
}

interface Place {
  root: JsonObject;
  depth: number;
}

function instance(given: Json | undefined, place: Place): Json {
  const schema = resolved(given, place.root);
  if (schema.const !== undefined) return schema.const;
  if (Array.isArray(schema.enum)) return schema.enum[0] ?? null;
  if (schema.default !== undefined) return schema.default;
  switch (typeOf(schema)) {
    case "object":
      return objectOf(schema, place);
    case "array":
      return arrayOf(schema, place);
    case "number":
      return numberOf(schema);
    case "integer":
      return numberOf({ multipleOf: 1, ...schema });
    case "boolean":
      return true;
    case "string":
      return textOf(schema);
    default:
      return null;
  }
}

/** Joins a schema with its reference, all of `allOf`, and the first of its alternatives. */
function resolved(given: Json | undefined, root: JsonObject, steps = 0): JsonObject {
  if (!isJsonObject(given) || steps > MAX_DEPTH) return {};
  const { $ref, allOf, anyOf, oneOf, ...own } = given;
  const others = [
    ...(typeof $ref === "string" ? [target($ref, root)] : []),
    ...listOf(allOf),
    ...listOf(anyOf).slice(0, 1),
    ...listOf(oneOf).slice(0, 1),
  ];
  return others.reduce<JsonObject>((whole, other) => merged(whole, resolved(other, root, steps + 1)), own);
}

function merged(one: JsonObject, other: JsonObject): JsonObject {
  const whole = { ...one, ...other };
  if (isJsonObject(one.properties) && isJsonObject(other.properties)) {
    whole.properties = { ...one.properties, ...other.properties };
  }
  if (Array.isArray(one.required) && Array.isArray(other.required)) {
    whole.required = [...one.required, ...other.required];
  }
  return whole;
}

function target(reference: string, root: JsonObject): Json | undefined {
  let value: Json | undefined = root;
  for (const part of reference.split("/").slice(1)) {
    const key = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
    value = typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;
  }
  return value;
}

function typeOf(schema: JsonObject): Json | undefined {
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (typeof type === "string") return type;
  if ("properties" in schema || "required" in schema) return "object";
  return "items" in schema || "prefixItems" in schema ? "array" : "string";
}

function objectOf(schema: JsonObject, { root, depth }: Place): Json {
  if (depth >= MAX_DEPTH) return {};
  const properties = isJsonObject(schema.properties) ? schema.properties : {};
  const required = listOf(schema.required).map(String);
  const names = depth < OPTIONAL_DEPTH ? new Set([...Object.keys(properties), ...required]) : required;
  return Object.fromEntries(
    [...names].map((name) => [name, instance(properties[name] ?? {}, { root, depth: depth + 1 })]),
  );
}

function arrayOf(schema: JsonObject, { root, depth }: Place): Json {
  if (depth >= MAX_DEPTH) return [];
  const first = listOf(schema.prefixItems);
  const least = countOf(schema.minItems) ?? (depth < OPTIONAL_DEPTH ? Math.max(first.length, 1) : 0);
  const length = Math.min(least, countOf(schema.maxItems) ?? least, 1_000);
  const items = Array.from({ length }, (_, n) => {
    return instance(first[n] ?? schema.items ?? {}, { root, depth: depth + 1 });
  });
  return schema.uniqueItems === true ? distinct(items) : items;
}

/** Makes numbers and texts differ by their place; of other equal values one stays. */
function distinct(items: Json[]): Json[] {
  const changed = items.map((item, n) => {
    if (n === 0) return item;
    if (typeof item === "number") return item + n;
    return typeof item === "string" ? `${item}-${n + 1}` : item;
  });
  return [...new Map(changed.map((item) => [JSON.stringify(item), item])).values()];
}

/** Tries 0, then numbers at the bounds, between them and next to them. */
function numberOf(schema: JsonObject): number {
  // An absent bound is NaN: no comparison with it is true.
  const boundOf = (key: string) => (typeof schema[key] === "number" ? schema[key] : Number.NaN);
  const [above, low] = [boundOf("exclusiveMinimum"), boundOf("minimum")];
  const [below, high] = [boundOf("exclusiveMaximum"), boundOf("maximum")];
  const fits = (value: number) =>
    Number.isFinite(value) && !(value <= above || value < low || value >= below || value > high);
  const step = boundOf("multipleOf");
  const middles = [above, low].flatMap((from) => [below, high].map((to) => (from + to) / 2));
  const bounds = [above, low, below, high];
  const candidates =
    step > 0
      ? bounds.flatMap((end) => [0, 1, -1, -2].map((n) => (Math.ceil(end / step) + n) * step))
      : [above, low, ...middles, below, high, ...bounds.flatMap((end) => [end + 1, end - 1])];
  return [0, ...candidates].find(fits) ?? 0;
}

function textOf(schema: JsonObject): string {
  const base = FORMATS.get(schema.format) ?? TEXT;
  const least = Math.min(countOf(schema.minLength) ?? 0, 10_000);
  return base.padEnd(least, ".").slice(0, countOf(schema.maxLength) ?? base.length + least);
}

function countOf(value: Json | undefined): number | undefined {
  return typeof value === "number" && value >= 0 ? value : undefined;
}

function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}
