/** Checks JSON values from outside against JSON Schemas. A check ends when its budget is used up (EFFORT-1). */
import type { Json, JsonObject } from "../json.ts";
import { issuesText } from "../validation.ts";
import { checkValue, type Violation } from "./check-value.ts";
import type { ReadSchema } from "./json-schema.ts";
import { Meter, Spent } from "./meter.ts";
import { readSchema } from "./read-schema.ts";

/** Most steps of checks without a break, such as for all tool calls of one reply. They block the isolate. */
const MAX_CHECK_STEPS = 250_000;

const TOO_LARGE =
  "Is too large to be checked against this schema, together with the other checked values: give less, and shorter texts for schemas with a pattern";

/** Returns the budget of checks that run without a break. */
export function checkBudget(): Meter {
  return new Meter(MAX_CHECK_STEPS);
}

/** As `misfits`, each as `path: message`. The path of the value itself is `/`. */
export function violations(schema: JsonObject, value: Json, budget = checkBudget()): string[] | null {
  return misfits(schema, value, budget)?.map(({ path, message }) => `${path || "/"}: ${message}`) ?? null;
}

/** Returns the parts of a value that do not fit, or `null` if the schema cannot be checked. Charges the check to `budget`. */
export function misfits(schema: JsonObject, value: Json, budget = checkBudget()): Violation[] | null {
  const read = readOnce(schema);
  if (read === null) return null;
  try {
    return checkValue(read, value, budget);
  } catch (error) {
    if (error instanceof Spent) return [{ path: "", message: TOO_LARGE }];
    throw error;
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
