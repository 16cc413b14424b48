/** Checks the schemas of a tool's input and of a turn's answer: JSON Schema 2020-12 of an object (INSCHEMA-1). Pure. */
import type { InputIssue } from "../../shared/errors.ts";
import type { JsonObject } from "../../shared/json.ts";
import type { Patterns } from "../../shared/json-schema/pattern.ts";
import { readSchema } from "../../shared/json-schema/read-schema.ts";
import { jsonPointer } from "../../shared/validation.ts";

/**
 * Returns the problems of a schema; an empty list if it is valid. `base` is the JSON pointer of the schema. The schemas of one request share
 * `patterns` (PATTERN-2).
 */
export function inputSchemaIssues(schema: JsonObject, base = "", patterns?: Patterns): InputIssue[] {
  const { issues } = readSchema(schema, base, patterns);
  if (issues.length > 0 || schema.type === "object") return issues;
  return [{ path: jsonPointer(["type"], base), message: 'Must be "object".' }];
}
