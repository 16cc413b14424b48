/**
 * A value that fits a JSON Schema, made by rule: what the offline model answers where data is demanded.
 *
 * OFFLINE-4  Equal schemas give equal values. A value fits its schema unless that has a `pattern`, `not`, `if`,
 *            `contains`, or parts of an `allOf` that contradict each other.
 */
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";

/** Levels of nesting; what would be deeper is left out, or is `null`. */
const MAX_DEPTH = 32;

const FORMATS: Readonly<Record<string, string>> = {
  "date-time": "2000-01-01T00:00:00Z",
  date: "2000-01-01",
  time: "00:00:00Z",
  duration: "P1D",
  email: "offline@example.com",
  hostname: "example.com",
  ipv4: "192.0.2.1",
  ipv6: "2001:db8::1",
  uri: "https://example.com/",
  "uri-reference": "/",
  uuid: "00000000-0000-4000-8000-000000000000",
};
const TEXT = "offline";

/** A value of this schema: the first of what is allowed, as short as it may be, with every property that is named. */
export function instanceOf(schema: JsonObject): Json {
  return instance(schema, { root: schema, depth: 0 });
}

interface Place {
  root: JsonObject;
  depth: number;
}

function instance(given: Json | undefined, place: Place): Json {
  const schema = resolved(given, place);
  if ("const" in schema) return schema.const ?? null;
  if (Array.isArray(schema.enum)) return schema.enum[0] ?? null;
  if ("default" in schema) return schema.default ?? null;
  switch (typeOf(schema)) {
    case "object":
      return objectOf(schema, place);
    case "array":
      return arrayOf(schema, place);
    case "number":
      return numberOf(schema, false);
    case "integer":
      return numberOf(schema, true);
    case "boolean":
      return true;
    case "string":
      return textOf(schema);
    default:
      return null;
  }
}

/** The schema itself with what it refers to, all of `allOf`, and the first of its alternatives. */
function resolved(given: Json | undefined, place: Place, steps = 0): JsonObject {
  if (!isJsonObject(given) || steps > MAX_DEPTH) return {};
  const { $ref, allOf, anyOf, oneOf, ...own } = given;
  const first = (list: Json | undefined) => (Array.isArray(list) ? list.slice(0, 1) : []);
  const others = [
    ...(typeof $ref === "string" ? [target($ref, place.root)] : []),
    ...(Array.isArray(allOf) ? allOf : []),
    ...first(anyOf),
    ...first(oneOf),
  ];
  return others.reduce<JsonObject>((whole, other) => merged(whole, resolved(other, place, steps + 1)), own);
}

function merged(one: JsonObject, other: JsonObject): JsonObject {
  const properties =
    isJsonObject(one.properties) && isJsonObject(other.properties)
      ? { properties: { ...one.properties, ...other.properties } }
      : {};
  const required =
    Array.isArray(one.required) && Array.isArray(other.required)
      ? { required: [...one.required, ...other.required] }
      : {};
  return { ...one, ...other, ...properties, ...required };
}

function target(reference: string, root: JsonObject): Json | undefined {
  let value: Json | undefined = root;
  for (const part of reference.split("/").slice(1)) {
    const key = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
    value = typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;
  }
  return value;
}

function typeOf(schema: JsonObject): string | undefined {
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (typeof type === "string") return type;
  if ("properties" in schema || "required" in schema) return "object";
  if ("items" in schema || "prefixItems" in schema) return "array";
  return "string";
}

/** Beyond the deepest level only what is required. */
function objectOf(schema: JsonObject, place: Place): Json {
  const properties = isJsonObject(schema.properties) ? schema.properties : {};
  const required = Array.isArray(schema.required) ? schema.required.map(String) : [];
  const names =
    place.depth < MAX_DEPTH / 4 ? [...new Set([...Object.keys(properties), ...required])] : required;
  if (place.depth >= MAX_DEPTH) return {};
  const inner = { ...place, depth: place.depth + 1 };
  return Object.fromEntries(names.map((name) => [name, instance(properties[name] ?? {}, inner)]));
}

function arrayOf(schema: JsonObject, place: Place): Json {
  const first = Array.isArray(schema.prefixItems) ? schema.prefixItems : [];
  const isDeep = place.depth >= MAX_DEPTH / 4;
  const least = countOf(schema.minItems) ?? (isDeep ? 0 : Math.max(first.length, 1));
  const length = Math.min(least, countOf(schema.maxItems) ?? least, 1_000);
  if (place.depth >= MAX_DEPTH) return [];
  const inner = { ...place, depth: place.depth + 1 };
  const items = Array.from({ length }, (_, index) => instance(first[index] ?? schema.items ?? {}, inner));
  return schema.uniqueItems === true ? unlike(items) : items;
}

/** Numbers and texts told apart by their place; of other equal values one stays. */
function unlike(items: Json[]): Json[] {
  const told = items.map((item, index) => {
    if (index === 0) return item;
    if (typeof item === "number") return item + index;
    return typeof item === "string" ? `${item}-${index + 1}` : item;
  });
  const texts = told.map((item) => JSON.stringify(item));
  return told.filter((_, index) => texts.indexOf(texts[index] ?? "") === index);
}

function numberOf(schema: JsonObject, isWhole: boolean): number {
  const step = typeof schema.multipleOf === "number" && schema.multipleOf > 0 ? schema.multipleOf : undefined;
  const unit = step ?? (isWhole ? 1 : undefined);
  const [low, high] = [
    boundOf(schema, "minimum", "exclusiveMinimum"),
    boundOf(schema, "maximum", "exclusiveMaximum"),
  ];
  const within = (value: number) =>
    (low === undefined || (low.isOpen ? value > low.value : value >= low.value)) &&
    (high === undefined || (high.isOpen ? value < high.value : value <= high.value));
  if (within(0)) return 0;
  if (unit !== undefined) {
    const near = low !== undefined ? Math.ceil(low.value / unit) : Math.floor((high?.value ?? 0) / unit);
    const direction = low !== undefined ? 1 : -1;
    return within(near * unit) ? near * unit : (near + direction) * unit;
  }
  if (low !== undefined && high !== undefined)
    return within(low.value) ? low.value : (low.value + high.value) / 2;
  return low !== undefined ? low.value + (low.isOpen ? 1 : 0) : (high?.value ?? 0) - (high?.isOpen ? 1 : 0);
}

function boundOf(
  schema: JsonObject,
  closed: string,
  open: string,
): { value: number; isOpen: boolean } | undefined {
  const [inner, outer] = [schema[closed], schema[open]];
  if (typeof outer === "number") return { value: outer, isOpen: true };
  return typeof inner === "number" ? { value: inner, isOpen: false } : undefined;
}

function textOf(schema: JsonObject): string {
  const base = typeof schema.format === "string" ? (FORMATS[schema.format] ?? TEXT) : TEXT;
  const least = Math.min(countOf(schema.minLength) ?? 0, 10_000);
  return base.padEnd(least, ".").slice(0, countOf(schema.maxLength) ?? base.length + least);
}

function countOf(value: Json | undefined): number | undefined {
  return typeof value === "number" && value >= 0 ? value : undefined;
}
