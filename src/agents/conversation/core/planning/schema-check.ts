/** Values checked against JSON Schemas, by a validator that needs no code generation, as far as that is bounded (EFFORT-1). */
import { type OutputUnit, type Schema, Validator } from "@cfworker/json-schema";
import type { Json, JsonObject } from "../../../../shared/json.ts";
import { effortOf } from "../../../../shared/json-schema/effort.ts";

/** At most this many violations are told. */
const MAX_VIOLATIONS = 5;

/** What is wrong with a value, as `path: what`; empty where it fits, `null` where the schema cannot be checked. */
export function violations(schema: JsonObject, value: Json): string[] | null {
  const errors = errorsOf(schema, value);
  if (errors === null) return null;
  const leaves = errors.filter((error) => error.keyword !== "properties" && error.keyword !== "items");
  return (leaves.length > 0 ? leaves : errors)
    .slice(0, MAX_VIOLATIONS)
    .map((error) => `${error.instanceLocation.replace(/^#/, "") || "/"}: ${error.error.replace(/\.$/, "")}`);
}

function errorsOf(
  schema: JsonObject,
  value: Json,
): Pick<OutputUnit, "instanceLocation" | "keyword" | "error">[] | null {
  try {
    const effort = effortOf(schema, value);
    if (effort === "large") return [TOO_LARGE];
    return effort === "unbounded" ? null : validatorOf(schema).validate(value).errors;
  } catch (error) {
    console.error("A schema cannot be checked:", error);
    return null;
  }
}

const TOO_LARGE = {
  instanceLocation: "#",
  keyword: "",
  error:
    "Is too large to be checked against this schema: give less, and shorter texts where a pattern stands.",
};

/** Schemas are pinned, so one validator each serves for as long as its owner is in memory. */
const validators = new WeakMap<JsonObject, Validator>();

function validatorOf(schema: JsonObject): Validator {
  const known = validators.get(schema);
  if (known !== undefined) return known;
  // The library marks the schema it is given, and ours is not to be changed.
  // SAFETY: an object of JSON; what in it is no schema, the library throws at, or passes over.
  const validator = new Validator(structuredClone(schema) as Schema, "2020-12", false);
  validators.set(schema, validator);
  return validator;
}
