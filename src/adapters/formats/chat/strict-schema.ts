/**
 * JSON Schemas as OpenAI takes them. It refuses patterns that look around, so these are told to the model in words; and
 * it enforces a part of the language only ("strict"), and refuses a request that asks for more, so strictness is asked
 * for only where every keyword is known to be taken. Pure.
 */
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";

const MAX_DEPTH = 10;

/** Keywords that say nothing about nested schemas. */
const PLAIN = new Set([
  "$schema",
  "title",
  "description",
  "type",
  "enum",
  "const",
  "pattern",
  "format",
  "multipleOf",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "minItems",
  "maxItems",
  "required",
  "additionalProperties",
]);

const FORMATS = new Set([
  "date-time",
  "time",
  "date",
  "duration",
  "email",
  "hostname",
  "ipv4",
  "ipv6",
  "uuid",
]);

const LOOKAROUND = /\(\?<?[=!]/;

/** Keywords whose members are schemas by name, and those whose value is a schema or a list of them. */
const NAMED = new Set(["properties", "$defs", "definitions", "patternProperties"]);
const NESTED = new Set(["items", "prefixItems", "anyOf", "oneOf", "allOf", "not", "additionalProperties"]);

/** The schema with every pattern that looks around in a description. */
export function withoutLookaround(schema: JsonObject): JsonObject {
  const made = Object.fromEntries(
    Object.entries(schema).map(([keyword, value]) => {
      if (NESTED.has(keyword)) return [keyword, nested(value)];
      if (!NAMED.has(keyword) || !isJsonObject(value)) return [keyword, value];
      return [
        keyword,
        Object.fromEntries(Object.entries(value).map(([name, member]) => [name, nested(member)])),
      ];
    }),
  );
  const { pattern, ...rest } = made;
  if (typeof pattern !== "string" || !LOOKAROUND.test(pattern)) return made;
  const told = `Pattern: ${pattern}`;
  const { description } = rest;
  return { ...rest, description: typeof description === "string" ? `${description}\n\n${told}` : told };
}

function nested(value: Json): Json {
  if (Array.isArray(value)) return value.map(nested);
  return isJsonObject(value) ? withoutLookaround(value) : value;
}

/** Whether every object of the schema names all of its properties as required and allows no others, and so on. */
export function fitsStrict(schema: JsonObject): boolean {
  return schema.type === "object" && schema.anyOf === undefined && fits(schema, 0);
}

function fits(schema: Json, depth: number): boolean {
  if (!isJsonObject(schema) || depth > MAX_DEPTH) return false;
  // A reference stands alone, and anything else must say what it is.
  if (schema.$ref !== undefined) return typeof schema.$ref === "string" && Object.keys(schema).length === 1;
  if (schema.type === undefined && schema.anyOf === undefined) return false;
  if (typeof schema.format === "string" && !FORMATS.has(schema.format)) return false;
  if (mayBe("array", schema) && schema.items === undefined) return false;
  if ((mayBe("object", schema) || schema.properties !== undefined) && !isClosed(schema)) return false;
  return Object.entries(schema).every(([keyword, value]) => {
    if (PLAIN.has(keyword)) return true;
    switch (keyword) {
      case "properties":
      case "$defs":
      case "definitions":
        return isJsonObject(value) && Object.values(value).every((nested) => fits(nested, depth + 1));
      case "items":
        return fits(value, depth + 1);
      case "anyOf":
        return Array.isArray(value) && value.every((nested) => fits(nested, depth + 1));
      default:
        return false;
    }
  });
}

function mayBe(kind: string, { type }: JsonObject): boolean {
  return type === kind || (Array.isArray(type) && type.includes(kind));
}

function isClosed({ properties, required = [], additionalProperties }: JsonObject): boolean {
  if (additionalProperties !== false || !isJsonObject(properties) || !Array.isArray(required)) return false;
  const names = new Set<Json>(Object.keys(properties));
  return required.length === names.size && required.every((name) => names.has(name));
}
