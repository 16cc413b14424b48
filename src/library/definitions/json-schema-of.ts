/** Converts zod schemas to JSON Schemas. */
import { z } from "zod";
import { invalid } from "../../shared/errors.ts";
import type { JsonObject } from "../../shared/json.ts";
import { invalidAt } from "../../shared/validation.ts";

export function isZodSchema(value: unknown): value is z.ZodType {
  return typeof value === "object" && value !== null && "_zod" in value;
}

/**
 * Converts a zod schema to the JSON Schema of its input, for code that parses the input with zod. It accepts each type that `z.coerce` takes.
 * Omits keywords that only repeat the type, because each keyword costs tokens. Throws `INVALID_INPUT`. `what` names the schema in the message.
 */
export function inputSchemaOf(what: string, input: z.ZodType): JsonObject {
  return schemaOf(what, input, "input", true);
}

/** Like `inputSchemaOf`, for input that zod does not parse. `z.coerce` does not convert such input. */
export function valueSchemaOf(what: string, input: z.ZodType): JsonObject {
  return schemaOf(what, input, "input");
}

/**
 * Converts a zod schema that data must fit. Like `inputSchemaOf`, but rejects transformations, because data runs no code. Throws
 * `INVALID_INPUT`.
 */
export function dataSchemaOf(what: string, schema: z.ZodType): JsonObject {
  // A transformation has no JSON Schema of its output.
  schemaOf(what, schema, "output");
  return schemaOf(what, schema, "input");
}

/** Returns the JSON Schema of the option `input`. Throws `INVALID_INPUT` unless its `type` is `object`. `what` names the definition. */
export function objectSchema(what: string, schema: JsonObject): JsonObject {
  if (schema.type === "object") return schema;
  const message = "Must describe an object. Wrap it in z.object({…}).";
  throw invalidAt("/input", message, `${what} is not valid: /input: ${message}`);
}

function schemaOf(what: string, schema: z.ZodType, io: "input" | "output", isParsed = false): JsonObject {
  try {
    const { $schema: _, ...rest } = z.toJSONSchema(schema, {
      io,
      unrepresentable: ({ zodSchema }) => (isParsed ? coercedType(zodSchema) : undefined),
      override: ({ zodSchema, jsonSchema }) => {
        if (jsonSchema.format !== undefined) delete jsonSchema.pattern;
        if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
        if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
        if (isParsed) widen(zodSchema, jsonSchema);
      },
    });
    return JSON.parse(JSON.stringify(rest));
  } catch (error) {
    throw invalid(
      `${what} cannot be written as JSON Schema: ${error instanceof Error ? error.message : error}. ` +
        "Use types that JSON has, and convert them with .transform() in a tool or an action of code.",
      { cause: error },
    );
  }
}

type JsonSchema = z.core.JSONSchema.BaseSchema;

/** Returns the input schema of a coerced type that JSON lacks; `undefined` for other types. */
function coercedType({ _zod: { def } }: z.core.$ZodTypes): JsonSchema | undefined {
  if (!("coerce" in def) || def.coerce !== true) return undefined;
  if (def.type === "date")
    return {
      anyOf: [
        { type: "string", description: "A date in ISO 8601." },
        { type: "integer", description: "Milliseconds since the epoch." },
      ],
    };
  return def.type === "bigint" ? { anyOf: [{ type: "integer" }, { type: "string" }] } : undefined;
}

/** Additional types that a coerced type accepts. Booleans reject text, because zod turns every non-empty text into `true`. */
const ALSO = {
  number: ["string"],
  string: ["number", "boolean"],
  boolean: ["number"],
} as const satisfies Record<string, readonly ("string" | "number" | "boolean")[]>;

/** Adds these types to the JSON Schema of a coerced type. */
function widen({ _zod: { def } }: z.core.$ZodTypes, schema: JsonSchema): void {
  if (!("coerce" in def) || def.coerce !== true || !Object.hasOwn(ALSO, def.type)) return;
  const { description: _, title: __, default: ___, ...own } = schema;
  for (const key of Object.keys(own)) delete schema[key];
  // SAFETY: the type is a key of `ALSO`.
  schema.anyOf = [own, ...ALSO[def.type as keyof typeof ALSO].map((type) => ({ type }))];
}
