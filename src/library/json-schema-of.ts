/** JSON Schemas of zod schemas. */
import { z } from "zod";
import { DramatisError } from "../shared/errors.ts";
import type { JsonObject } from "../shared/json.ts";

/**
 * Converts a zod schema to the JSON Schema of its input. Omits keywords that only repeat the type, since each costs tokens. Throws
 * `INVALID_INPUT`, in which `what` names the schema.
 */
export function inputSchemaOf(what: string, input: z.ZodType): JsonObject {
  return schemaOf(what, input, "input");
}

/**
 * Converts a zod schema that data must fit: as `inputSchemaOf`, but refuses a transformation, since what is data runs no code. Throws
 * `INVALID_INPUT`.
 */
export function dataSchemaOf(what: string, schema: z.ZodType): JsonObject {
  // A transformation has no JSON Schema of its output.
  schemaOf(what, schema, "output");
  return schemaOf(what, schema, "input");
}

function schemaOf(what: string, schema: z.ZodType, io: "input" | "output"): JsonObject {
  try {
    const { $schema: _, ...rest } = z.toJSONSchema(schema, {
      io,
      override: ({ jsonSchema }) => {
        if (jsonSchema.format !== undefined) delete jsonSchema.pattern;
        if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
        if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      },
    });
    return JSON.parse(JSON.stringify(rest));
  } catch (error) {
    throw new DramatisError(
      "INVALID_INPUT",
      `${what} cannot be written as JSON Schema: ${error instanceof Error ? error.message : error}. ` +
        "Use types that JSON has, and convert them with .transform() in a tool or an action of code.",
      { cause: error },
    );
  }
}
