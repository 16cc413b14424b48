/**
 * JSON Schemas as the Messages API enforces them. It knows a part of the language only and refuses the rest, so what it
 * does not know is told to the model in words, as part of a description. Pure.
 */
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { unsupported } from "../common/native.ts";

/** Keywords that are sent as they are. */
const KEPT = new Set(["$ref", "type", "enum", "const", "title", "description", "required"]);

/** Keywords whose members are schemas, by name or in a list. */
const NESTED = new Set(["$defs", "definitions", "properties", "items", "anyOf", "allOf"]);

const FORMATS = new Set([
  "date-time",
  "time",
  "date",
  "duration",
  "email",
  "hostname",
  "uri",
  "ipv4",
  "ipv6",
  "uuid",
]);

/**
 * The schema with every object closed and every other limit in a description. What fits it fits the given one too,
 * except for the limits. Throws `UNSUPPORTED` for an object whose members have no names of their own.
 */
export function enforceable(schema: JsonObject): JsonObject {
  if (isMap(schema)) {
    throw unsupported("anthropic", 'structured output with an object of any members: name its "properties"');
  }
  const made: JsonObject = {};
  const told: string[] = [];
  for (const [keyword, value] of Object.entries(schema)) {
    if (KEPT.has(keyword)) made[keyword] = value;
    else if (keyword === "oneOf" && schema.anyOf === undefined) made.anyOf = nested(value);
    else if (keyword === "items" ? isJsonObject(value) : NESTED.has(keyword))
      made[keyword] = inside(keyword, value);
    else if (isKnown(keyword, value)) made[keyword] = value;
    else if (keyword !== "$schema" && keyword !== "additionalProperties")
      told.push(`${keyword}: ${JSON.stringify(value)}`);
  }
  const isObject = schema.type === "object" || schema.properties !== undefined;
  return {
    ...made,
    ...(isObject ? { additionalProperties: false } : {}),
    ...(told.length === 0 ? {} : { description: described(schema.description, told) }),
  };
}

function inside(keyword: string, value: Json): Json {
  if (keyword === "items" || !isJsonObject(value)) return nested(value);
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, nested(member)]));
}

function nested(value: Json): Json {
  if (Array.isArray(value)) return value.map(nested);
  return isJsonObject(value) ? enforceable(value) : value;
}

function isKnown(keyword: string, value: Json): boolean {
  if (keyword === "format") return typeof value === "string" && FORMATS.has(value);
  return keyword === "minItems" && (value === 0 || value === 1);
}

/** Closed, such an object could only be empty. */
function isMap({ type, properties, additionalProperties: others, ...rest }: JsonObject): boolean {
  if (isJsonObject(others)) return true;
  const isDescribed =
    properties !== undefined || ["anyOf", "oneOf", "allOf", "$ref"].some((key) => key in rest);
  return type === "object" && others !== false && !isDescribed;
}

function described(description: Json | undefined, told: readonly string[]): string {
  const limits = `Limits: ${told.join(", ")}`;
  return typeof description === "string" ? `${description}\n\n${limits}` : limits;
}
