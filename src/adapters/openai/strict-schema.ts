/**
 * Which JSON Schemas OpenAI can enforce while a model writes ("strict"). It refuses a request that asks for more, so
 * strictness is asked for only where every keyword is known to be taken. Pure.
 */
import { isJsonObject, type Json, type JsonObject } from "../../shared/json.ts";

const MAX_DEPTH = 10;

/** Keywords that say nothing about nested schemas. */
const PLAIN = new Set([
  "$schema",
  "$ref",
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

/** Whether every object of the schema names all of its properties as required and allows no others, and so on. */
export function fitsStrict(schema: JsonObject): boolean {
  return schema.type === "object" && schema.anyOf === undefined && fits(schema, 0);
}

function fits(schema: Json, depth: number): boolean {
  if (!isJsonObject(schema) || depth > MAX_DEPTH) return false;
  if (typeof schema.format === "string" && !FORMATS.has(schema.format)) return false;
  if (mayBeObject(schema) && !isClosed(schema)) return false;
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

function mayBeObject({ type, properties }: JsonObject): boolean {
  return type === "object" || (Array.isArray(type) && type.includes("object")) || properties !== undefined;
}

function isClosed({ properties, required, additionalProperties }: JsonObject): boolean {
  if (additionalProperties !== false || !isJsonObject(properties)) return false;
  const named = new Set(Array.isArray(required) ? required : []);
  return Object.keys(properties).every((name) => named.has(name));
}
