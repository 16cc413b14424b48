/** JSON Schemas within definitions: each is read as it will be checked, so a problem is found where it is written. */
import { z } from "zod";
import type { JsonObject } from "../../shared/json.ts";
import { Patterns } from "../../shared/json-schema/pattern.ts";
import { readSchema } from "../../shared/json-schema/read-schema.ts";

/** Steps of compiling the patterns of one schema. */
const MAX_COMPILE_STEPS = 100_000;

/** A JSON Schema of any value. */
export const schemaCheck: z.ZodType<JsonObject> = z
  .record(z.string(), z.json(), "Must be a JSON Schema: an object.")
  .superRefine((schema, context) => {
    for (const { path, message } of readSchema(schema, "", new Patterns(MAX_COMPILE_STEPS)).issues) {
      const parts = path
        .split("/")
        .slice(1)
        .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
      context.addIssue({ code: "custom", path: parts, message });
    }
  });

/** A JSON Schema of an object. */
export const objectSchemaCheck = schemaCheck.refine(({ type }) => type === "object", {
  path: ["type"],
  error: 'Must be "object".',
});
