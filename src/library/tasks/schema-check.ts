/** JSON Schemas within definitions: each is read as it will be checked, so a problem is found where it is written. */
import { z } from "zod";
import type { InputIssue } from "../../shared/errors.ts";
import type { JsonObject } from "../../shared/json.ts";
import { Patterns } from "../../shared/json-schema/pattern.ts";
import { readSchema } from "../../shared/json-schema/read-schema.ts";

/** Steps of compiling the patterns of one definition. */
const MAX_COMPILE_STEPS = 100_000;

/** A schema of a definition; `undefined` where it has none. */
export interface PlacedSchema {
  /** Its JSON pointer. */
  path: string;
  schema: JsonObject | undefined;
}

/** A JSON Schema of any value. Its keywords are checked with the other schemas of its definition, by `schemaIssues`. */
export const schemaCheck: z.ZodType<JsonObject> = z.record(
  z.string(),
  z.json(),
  "Must be a JSON Schema: an object.",
);

/** A JSON Schema of an object. Its keywords are checked with the other schemas of its definition, by `schemaIssues`. */
export const objectSchemaCheck = schemaCheck.refine(({ type }) => type === "object", {
  path: ["type"],
  error: 'Must be "object".',
});

/** Returns the schema with a check of keywords, which has a budget of its own for compiling patterns. */
export function withKeywords(check: z.ZodType<JsonObject>): z.ZodType<JsonObject> {
  return check.superRefine((schema, context) => {
    for (const { path, message } of schemaIssues([{ path: "", schema }]))
      context.addIssue({ code: "custom", path: partsOf(path), message });
  });
}

/** Returns the problems of all schemas of one definition, which share one budget for compiling patterns. */
export function schemaIssues(schemas: readonly PlacedSchema[]): InputIssue[] {
  const patterns = new Patterns(MAX_COMPILE_STEPS);
  return schemas.flatMap(({ path, schema }) =>
    schema === undefined ? [] : readSchema(schema, path, patterns).issues,
  );
}

/** Returns the names of a JSON pointer. */
function partsOf(pointer: string): string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}
