/**
 * Checks the schemas that a turn brings.
 *
 * OUTPUT-4  A turn's schema must describe an object, be small, and have only parts that can be checked in bounded time
 *           (INSCHEMA-1). The sender gets the error, before the turn starts.
 */
import { inputSchemaIssues } from "../../../../library/definitions/input-schema.ts";
import { type InputIssue, invalid } from "../../../../shared/errors.ts";
import { isJson, type JsonObject } from "../../../../shared/json.ts";
import { Patterns } from "../../../../shared/json-schema/pattern.ts";
import { issuesText } from "../../../../shared/validation.ts";
import { MAX_OUTPUT_SCHEMA } from "../conversation-limits.ts";
import type { Turn } from "../turn.ts";

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
  throw invalid(`A schema cannot be used: ${issuesText(errors)}`, { errors });
}

function outputSchemaIssues(schema: JsonObject, patterns: Patterns): InputIssue[] {
  const path = "/output/schema";
  if (!isJson(schema)) return [{ path, message: "Must be JSON, nested at most 64 deep." }];
  const { length } = JSON.stringify(schema);
  if (length <= MAX_OUTPUT_SCHEMA) return inputSchemaIssues(schema, path, patterns);
  return [{ path, message: `Has ${length} characters; the limit is ${MAX_OUTPUT_SCHEMA}.` }];
}
