/**
 * JSON Schemas that others wrote, and values checked against them, by a validator that needs no code generation.
 *
 * JSCHEMA-1  A check takes a bounded number of steps, whatever the schema: references that fan out are not followed without
 *            end.
 * JSCHEMA-2  A schema means the same whatever it calls itself: identifiers in it are no base of its references.
 */
import { dereference, type OutputUnit, type Schema, validate } from "@cfworker/json-schema";
import { isJsonObject, type Json, type JsonObject } from "./json.ts";

/** A schema applied to a value is one step. An answer of a hundred thousand numbers needs half of them. */
const MAX_STEPS = 200_000;

/** What is wrong with a value. Throws where the schema cannot be checked, or not within so many steps. */
export type SchemaCheck = (value: Json, maxSteps?: number) => OutputUnit[];

/** Throws where the schema is none that can be checked. */
export function compileSchema(schema: JsonObject): SchemaCheck {
  // SAFETY: an object of JSON; what in it is no schema, the library throws at, or passes over.
  const copy = copyOf(schema) as Schema;
  const lookup = dereference(copy);
  let left = 0;
  // The library looks at this keyword of an older draft whenever it applies a schema.
  const step = {
    get: () => {
      left -= 1;
      if (left < 0) throw new RangeError("The check takes too many steps.");
    },
  };
  for (const part of new Set(Object.values(lookup))) {
    if (typeof part === "object") Object.defineProperty(part, "$recursiveAnchor", step);
  }
  return (value, maxSteps = MAX_STEPS) => {
    left = maxSteps;
    return validate(value, copy, "2020-12", lookup, false).errors;
  };
}

/** Keywords that hold values, and those that hold schemas by names. */
const VALUES = new Set(["enum", "const", "default"]);
const MAPS = new Set(["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"]);

/** The library marks the schema that it is given, and reads one that calls itself something twice, with all that is in it. */
function copyOf(node: Json): Json {
  if (Array.isArray(node)) return node.map(copyOf);
  if (!isJsonObject(node)) return node;
  const members = Object.entries(node).filter(([key]) => key !== "$id" && key !== "id");
  return Object.fromEntries(
    members.map(([key, value]) => {
      if (VALUES.has(key)) return [key, structuredClone(value)];
      return [key, MAPS.has(key) && isJsonObject(value) ? copyOfAll(value) : copyOf(value)];
    }),
  );
}

function copyOfAll(schemas: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, copyOf(schema)]));
}
