/**
 * The schemas that a turn brings, checked before it starts.
 *
 * OUTPUT-4  A schema is taken only if it is one of an object, small, and made of parts that can be checked in bounded time
 *           (INSCHEMA-1): a defect is told to whoever sent it, not to the model.
 */

import { inputSchemaIssues } from "../../../../library/input-schema.ts";
import type { OutputSpec, ToolSpec } from "../../../../model/context.ts";
import { DramatisError, type InputIssue } from "../../../../shared/errors.ts";
import { isJson } from "../../../../shared/json.ts";
import { issuesText } from "../../../../shared/validation.ts";
import { MAX_OUTPUT_SCHEMA } from "../limits.ts";

/** Throws `INVALID_INPUT` with the place of what is wrong. */
export function checkTurnSchemas({
  output,
  tools = [],
}: {
  output?: OutputSpec;
  tools?: readonly ToolSpec[];
}): void {
  const issues = tools.flatMap(({ inputSchema }, index) =>
    inputSchemaIssues(inputSchema, `/tools/${index}/inputSchema`),
  );
  if (output !== undefined) issues.push(...outputIssues(output));
  if (issues.length === 0) return;
  const errors = issues.slice(0, MAX_ISSUES);
  throw new DramatisError("INVALID_INPUT", `A schema cannot be used: ${issuesText(errors)}`, { errors });
}

/** At most this many issues are reported of one turn. */
const MAX_ISSUES = 20;

function outputIssues({ schema }: OutputSpec): InputIssue[] {
  const path = "/output/schema";
  if (!isJson(schema)) return [{ path, message: "Must be JSON, nested at most 64 deep." }];
  const { length } = JSON.stringify(schema);
  if (length <= MAX_OUTPUT_SCHEMA) return inputSchemaIssues(schema, path);
  return [{ path, message: `Has ${length} characters; the limit is ${MAX_OUTPUT_SCHEMA}.` }];
}
