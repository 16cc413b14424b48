/**
 * Checks values against JSON Schemas, and the schemas that a turn brings. A check ends when its budget is used up (EFFORT-1).
 *
 * OUTPUT-4  A turn's schema must describe an object, be small, and have only parts that can be checked in bounded time
 *           (INSCHEMA-1). The sender gets the error, before the turn starts.
 */
import { inputSchemaIssues } from "../../../../library/input-schema.ts";
import { DramatisError, type InputIssue } from "../../../../shared/errors.ts";
import { isJson, type Json, type JsonObject } from "../../../../shared/json.ts";
import { checkValue } from "../../../../shared/json-schema/check-value.ts";
import { Meter, Spent } from "../../../../shared/json-schema/meter.ts";
import { Patterns } from "../../../../shared/json-schema/pattern.ts";
import { readSchema } from "../../../../shared/json-schema/read-schema.ts";
import type { ReadSchema } from "../../../../shared/json-schema/schema.ts";
import { issuesText } from "../../../../shared/validation.ts";
import { MAX_CHECK_STEPS, MAX_OUTPUT_SCHEMA, MAX_REPLY_CHECK_STEPS } from "../limits.ts";
import type { Turn } from "../state.ts";

/** Issues reported of one turn. */
const MAX_ISSUES = 20;

/** Throws `INVALID_INPUT` with the paths of the parts that cannot be used. */
export function checkTurnSchemas({ output, tools = [] }: Pick<Turn, "output" | "tools">): void {
  const patterns = new Patterns();
  const issues = tools.flatMap(({ inputSchema }, index) =>
    inputSchemaIssues(inputSchema, `/tools/${index}/inputSchema`, patterns),
  );
  if (output !== undefined) issues.push(...outputSchemaIssues(output.schema, patterns));
  if (issues.length === 0) return;
  const errors = issues.slice(0, MAX_ISSUES);
  throw new DramatisError("INVALID_INPUT", `A schema cannot be used: ${issuesText(errors)}`, { errors });
}

function outputSchemaIssues(schema: JsonObject, patterns: Patterns): InputIssue[] {
  const path = "/output/schema";
  if (!isJson(schema)) return [{ path, message: "Must be JSON, nested at most 64 deep." }];
  const { length } = JSON.stringify(schema);
  if (length <= MAX_OUTPUT_SCHEMA) return inputSchemaIssues(schema, path, patterns);
  return [{ path, message: `Has ${length} characters; the limit is ${MAX_OUTPUT_SCHEMA}.` }];
}

const TOO_LARGE =
  "/: Is too large to be checked against this schema: give less, and shorter texts where the schema has a pattern";

/** Returns the budget of all checks of one reply. */
export function replyMeter(): Meter {
  return new Meter(MAX_REPLY_CHECK_STEPS);
}

/**
 * Returns a value's violations as `path: message`; empty where it fits, `null` where the schema cannot be checked. Takes the
 * steps of the check from `budget`.
 */
export function violations(schema: JsonObject, value: Json, budget = replyMeter()): string[] | null {
  const read = readOnce(schema);
  if (read === null) return null;
  const meter = new Meter(Math.min(MAX_CHECK_STEPS, budget.left));
  try {
    return checkValue(read, value, meter).map(({ path, message }) => `${path}: ${message}`);
  } catch (error) {
    if (error instanceof Spent) return [TOO_LARGE];
    throw error;
  } finally {
    budget.spend(meter.spent);
  }
}

/** Schemas that were read, for as long as they are in memory: pinned schemas are used again and again. */
const known = new WeakMap<JsonObject, ReadSchema | null>();

function readOnce(schema: JsonObject): ReadSchema | null {
  const found = known.get(schema);
  if (found !== undefined) return found;
  const { issues, ...read } = readSchema(schema);
  if (issues.length > 0) console.error("A schema cannot be checked:", issuesText(issues));
  const usable = issues.length > 0 ? null : read;
  known.set(schema, usable);
  return usable;
}
