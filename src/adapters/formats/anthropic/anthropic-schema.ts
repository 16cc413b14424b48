/**
 * Adapts JSON Schemas to the Messages API. The API refuses keywords that it does not enforce. These move into a description, so the model
 * can read them. Pure.
 */
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { unsupported } from "../common/request.ts";
import { FORMATS, mapSchemas, withNote } from "../common/tool-schemas.ts";

/** Keywords that are sent as they are. */
const KEPT = new Set(["$ref", "type", "enum", "const", "title", "description", "required"]);

/** Keywords that hold schemas, by name or in a list. */
const NESTED = new Set(["$defs", "definitions", "properties", "anyOf", "allOf"]);

/**
 * Closes every object, and moves every other limit into a description. A value of the result also fits the given schema, except for these
 * limits. Throws `UNSUPPORTED` for an object with unnamed members.
 */
export function enforceable(schema: JsonObject): JsonObject {
  if (isMap(schema)) {
    throw unsupported(
      "anthropic",
      'structured output with an object that allows any member: list its "properties"',
    );
  }
  const made: JsonObject = {};
  const limits: string[] = [];
  for (const [keyword, value] of Object.entries(schema)) {
    if (KEPT.has(keyword) || isEnforced(keyword, value)) made[keyword] = value;
    else if (keyword === "oneOf" && schema.anyOf === undefined)
      made.anyOf = mapSchemas(keyword, value, enforceable);
    else if (NESTED.has(keyword) || (keyword === "items" && isJsonObject(value)))
      made[keyword] = mapSchemas(keyword, value, enforceable);
    else if (keyword !== "$schema" && keyword !== "additionalProperties")
      limits.push(`${keyword}: ${JSON.stringify(value)}`);
  }
  if (schema.type === "object" || schema.properties !== undefined) made.additionalProperties = false;
  if (limits.length > 0) made.description = withNote(schema.description, `Limits: ${limits.join(", ")}`);
  return made;
}

function isEnforced(keyword: string, value: Json): boolean {
  if (keyword === "format") return value === "uri" || FORMATS.has(value);
  return keyword === "minItems" && (value === 0 || value === 1);
}

/** Reports whether an object has members of any name: closed, it could only be empty. */
function isMap({ type, additionalProperties: others, ...rest }: JsonObject): boolean {
  if (isJsonObject(others)) return true;
  const isDescribed = ["properties", "anyOf", "oneOf", "allOf", "$ref"].some((key) => key in rest);
  return type === "object" && others !== false && !isDescribed;
}
