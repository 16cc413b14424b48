/**
 * Checks the input of a run.
 *
 * RUNINPUT-1  A run gets only input that its workflow's schema accepts, with the schema's defaults filled in. Errors have the JSON pointers
 *             of the wrong members.
 */
import type { WorkflowDefinition } from "../../protocol/workflow-definition.ts";
import { DramatisError, type InputIssue, invalid } from "../../shared/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../shared/json.ts";
import { withDefaults } from "../../shared/json-schema/defaults.ts";
import { misfits } from "../../shared/json-schema/violations.ts";
import { issueAt, issuesText } from "../../shared/validation.ts";

/**
 * Returns the input with defaults, and leaves the given value as it is. Throws `INVALID_INPUT` with the
 * JSON pointers of the invalid values. They begin with `base`.
 * @example checkedRunInput(pinned.definition, body.input, "/input");
 */
export function checkedRunInput(
  { inputSchema }: Pick<WorkflowDefinition, "inputSchema">,
  value: Json,
  base = "",
): JsonObject {
  if (!isJsonObject(value)) throw refused([{ path: base, message: "Must be an object." }]);
  const input = filledIn(inputSchema, value, base);
  const found = misfits(inputSchema, input);
  if (found === null)
    throw refused([{ path: base, message: "The workflow's `inputSchema` cannot be checked. Correct it." }]);
  if (found.length > 0)
    throw refused(found.map(({ path, message }) => issueAt(`${base}${path}`, `${message}.`)));
  // SAFETY: filling in an object gives an object.
  return input as JsonObject;
}

function filledIn(schema: JsonObject, value: JsonObject, base: string): Json {
  try {
    return withDefaults(schema, value);
  } catch (error) {
    if (!(error instanceof DramatisError)) throw error;
    throw refused([{ path: base, message: error.message }]);
  }
}

function refused(errors: InputIssue[]): DramatisError {
  return invalid(`The input of the run is not valid: ${issuesText(errors)}`, {
    errors,
  });
}
