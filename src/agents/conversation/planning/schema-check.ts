/** Values checked against JSON Schemas, and what is wrong with them in words. */
import type { OutputUnit } from "@cfworker/json-schema";
import type { Json, JsonObject } from "../../../shared/json.ts";
import { compileSchema, type SchemaCheck } from "../../../shared/json-schema.ts";

/** At most this many violations are told. */
const MAX_VIOLATIONS = 5;

/**
 * What is wrong with a value, as `path: what`; empty where it fits, `null` where the schema cannot be checked, or not in so
 * many steps.
 */
export function violations(schema: JsonObject, value: Json, maxSteps?: number): string[] | null {
  const errors = errorsOf(schema, value, maxSteps);
  if (errors === null) return null;
  const leaves = errors.filter((error) => error.keyword !== "properties" && error.keyword !== "items");
  return (leaves.length > 0 ? leaves : errors)
    .slice(0, MAX_VIOLATIONS)
    .map((error) => `${error.instanceLocation.replace(/^#/, "") || "/"}: ${error.error.replace(/\.$/, "")}`);
}

function errorsOf(schema: JsonObject, value: Json, maxSteps: number | undefined): OutputUnit[] | null {
  try {
    return checkOf(schema)(value, maxSteps);
  } catch (error) {
    console.error("A schema cannot be checked:", error);
    return null;
  }
}

/** Schemas are pinned, so one check each serves for as long as its owner is in memory. */
const checks = new WeakMap<JsonObject, SchemaCheck>();

function checkOf(schema: JsonObject): SchemaCheck {
  const known = checks.get(schema);
  if (known !== undefined) return known;
  const check = compileSchema(schema);
  checks.set(schema, check);
  return check;
}
