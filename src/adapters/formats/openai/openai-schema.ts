/**
 * Adapts JSON Schemas to OpenAI. OpenAI refuses patterns with lookaround. These move into a description, so the model can read them. OpenAI
 * enforces a part of the language ("strict") and refuses a strict request with other keywords. So a request is strict only if all keywords
 * are known to be enforced. Pure.
 */
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { FORMATS, mapSchemas, withNote } from "../common/tool-schemas.ts";

const MAX_DEPTH = 10;

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

const LOOKAROUND = /\(\?<?[=!]/;

const NESTED = new Set([
  "properties",
  "$defs",
  "definitions",
  "patternProperties",
  "items",
  "prefixItems",
  "anyOf",
  "oneOf",
  "allOf",
  "not",
  "additionalProperties",
]);

/** Moves every pattern that looks around into a description. */
export function withoutLookaround(schema: JsonObject): JsonObject {
  const made = Object.fromEntries(
    Object.entries(schema).map(([keyword, value]) => {
      return [keyword, NESTED.has(keyword) ? mapSchemas(keyword, value, withoutLookaround) : value];
    }),
  );
  const { pattern, ...rest } = made;
  if (typeof pattern !== "string" || !LOOKAROUND.test(pattern)) return made;
  return { ...rest, description: withNote(rest.description, `Pattern: ${pattern}`) };
}

/** Reports whether a schema can be enforced: every object requires all of its properties and allows no others, and so on. */
export function fitsStrict(schema: JsonObject): boolean {
  return schema.type === "object" && schema.anyOf === undefined && fits(schema, 0);
}

function fits(schema: Json, depth: number): boolean {
  if (!isJsonObject(schema) || depth > MAX_DEPTH) return false;
  // A reference has no other keyword; every other schema has a type.
  if (schema.$ref !== undefined) return typeof schema.$ref === "string" && Object.keys(schema).length === 1;
  if (schema.type === undefined && schema.anyOf === undefined) return false;
  if (typeof schema.format === "string" && !FORMATS.has(schema.format)) return false;
  if (mayBe("array", schema) && schema.items === undefined) return false;
  if ((mayBe("object", schema) || schema.properties !== undefined) && !isClosed(schema)) return false;
  return Object.entries(schema).every(([keyword, value]) => {
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
        return PLAIN.has(keyword);
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
