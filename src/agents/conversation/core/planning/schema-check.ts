/**
 * Checks values against JSON Schemas, and the schemas that a turn brings. The validator needs no code generation; a check
 * whose effort is not bounded is not made (EFFORT-1).
 *
 * OUTPUT-4  A turn's schema must describe an object, be small, and have only parts that can be checked in bounded time
 *           (INSCHEMA-1). The sender gets the error, before the turn starts.
 */
import { type OutputUnit, type Schema, Validator } from "@cfworker/json-schema";
import { inputSchemaIssues } from "../../../../library/input-schema.ts";
import { DramatisError, type InputIssue } from "../../../../shared/errors.ts";
import { isJson, type Json, type JsonObject } from "../../../../shared/json.ts";
import { effortOf } from "../../../../shared/json-schema/effort.ts";
import { issuesText } from "../../../../shared/validation.ts";
import { MAX_OUTPUT_SCHEMA } from "../limits.ts";
import type { Turn } from "../state.ts";

/** Issues reported of one turn. */
const MAX_ISSUES = 20;
/** Violations reported of one value. */
const MAX_VIOLATIONS = 5;

/** Throws `INVALID_INPUT` with the paths of the parts that cannot be used. */
export function checkTurnSchemas({ output, tools = [] }: Pick<Turn, "output" | "tools">): void {
  const issues = tools.flatMap(({ inputSchema }, index) =>
    inputSchemaIssues(inputSchema, `/tools/${index}/inputSchema`),
  );
  if (output !== undefined) issues.push(...outputSchemaIssues(output.schema));
  if (issues.length === 0) return;
  const errors = issues.slice(0, MAX_ISSUES);
  throw new DramatisError("INVALID_INPUT", `A schema cannot be used: ${issuesText(errors)}`, { errors });
}

function outputSchemaIssues(schema: JsonObject): InputIssue[] {
  const path = "/output/schema";
  if (!isJson(schema)) return [{ path, message: "Must be JSON, nested at most 64 deep." }];
  const { length } = JSON.stringify(schema);
  if (length <= MAX_OUTPUT_SCHEMA) return inputSchemaIssues(schema, path);
  return [{ path, message: `Has ${length} characters; the limit is ${MAX_OUTPUT_SCHEMA}.` }];
}

/** Returns a value's violations as `path: message`; empty where it fits, `null` where the schema cannot be checked. */
export function violations(schema: JsonObject, value: Json): string[] | null {
  const errors = errorsOf(schema, value);
  if (errors === null) return null;
  const leaves = errors.filter(({ keyword }) => keyword !== "properties" && keyword !== "items");
  return (leaves.length > 0 ? leaves : errors)
    .slice(0, MAX_VIOLATIONS)
    .map((found) => `${found.instanceLocation.replace(/^#/, "") || "/"}: ${found.error.replace(/\.$/, "")}`);
}

type Violation = Pick<OutputUnit, "instanceLocation" | "keyword" | "error">;

const TOO_LARGE: Violation = {
  instanceLocation: "#",
  keyword: "",
  error:
    "Is too large to be checked against this schema: give less, and shorter texts where the schema has a pattern.",
};

function errorsOf(schema: JsonObject, value: Json): Violation[] | null {
  try {
    const effort = effortOf(schema, value);
    if (effort === "large") return [TOO_LARGE];
    return effort === "unbounded" ? null : validatorOf(schema).validate(value).errors;
  } catch (error) {
    console.error("A schema cannot be checked:", error);
    return null;
  }
}

/** One validator per schema, for as long as the schema is in memory: pinned schemas are used again and again. */
const validators = new WeakMap<JsonObject, Validator>();

function validatorOf(schema: JsonObject): Validator {
  const known = validators.get(schema);
  if (known !== undefined) return known;
  // The library adds marks to the schema, hence the copy.
  // SAFETY: a JSON object. The validator rejects or ignores invalid parts.
  const validator = new Validator(structuredClone(schema) as Schema, "2020-12", false);
  validators.set(schema, validator);
  return validator;
}
