/** Compiles the JSON Schemas of a definition to find their problems, and reports the place of each problem. */
import { z } from "zod";
import type { InputIssue } from "../../shared/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../shared/json.ts";
import { checkValue } from "../../shared/json-schema/check-value.ts";
import { alternativeOf, filled } from "../../shared/json-schema/defaults.ts";
import type { Schema } from "../../shared/json-schema/json-schema.ts";
import { type Meter, Spent } from "../../shared/json-schema/meter.ts";
import { Patterns } from "../../shared/json-schema/pattern.ts";
import { readSchema } from "../../shared/json-schema/read-schema.ts";
import { checkBudget } from "../../shared/json-schema/violations.ts";
import { issueAt, jsonPointer } from "../../shared/validation.ts";

/** Maximum steps for compiling the patterns of one definition. */
const MAX_COMPILE_STEPS = 100_000;

/** Steps that are charged for each schema in the search for defaults. */
const STEPS_OF_SCHEMA = 4;

export interface PlacedSchema {
  /** Its JSON pointer. */
  path: string;
  schema: JsonObject | undefined;
}

/** A JSON Schema of any value. Its keywords are checked with the other schemas of its definition, by `schemaIssues`. */
export const schemaCheck = z.record(z.string(), z.json(), "Must be a JSON Schema: an object.");

/** A JSON Schema of an object. Its keywords are checked with the other schemas of its definition, by `schemaIssues`. */
export const objectSchemaCheck = schemaCheck.refine(({ type }) => type === "object", {
  path: ["type"],
  error: 'Must be "object".',
});

/** Adds a check of keywords, with a separate budget for compiling patterns. */
export function withKeywords(check: z.ZodType<JsonObject>): z.ZodType<JsonObject> {
  return check.superRefine((schema, context) => {
    for (const { path, message } of schemaIssues([{ path: "", schema }]))
      context.addIssue({ code: "custom", path: partsOf(path), message });
  });
}

/** Returns the problems of all schemas of one definition. They share a budget for compiling patterns, and a budget for checking defaults. */
export function schemaIssues(schemas: readonly PlacedSchema[]): InputIssue[] {
  const patterns = new Patterns(MAX_COMPILE_STEPS);
  const meter = checkBudget();
  return schemas.flatMap(({ path, schema }) => {
    if (schema === undefined) return [];
    const { issues, root, hasUnevaluated } = readSchema(schema, path, patterns);
    if (issues.length > 0) return issues;
    try {
      return [...defaultIssues(schema, root, path, { hasUnevaluated, meter })];
    } catch (error) {
      if (!(error instanceof Spent)) throw error;
      return [
        { path, message: "Has too many or too long defaults to check. Give fewer or shorter defaults." },
      ];
    }
  });
}

/** Finds member defaults that do not match their schemas. Visits only places where defaults are filled in (DEFAULT-1). */
function* defaultIssues(
  schema: Json | undefined,
  node: Schema | undefined,
  path: string,
  check: { hasUnevaluated: boolean; meter: Meter },
): Generator<InputIssue> {
  if (!isJsonObject(schema) || typeof node !== "object") return;
  check.meter.spend(STEPS_OF_SCHEMA);
  const { properties, prefixItems, items, additionalProperties } = schema;
  for (const [name, member] of Object.entries(isJsonObject(properties) ? properties : {})) {
    const [place, own] = [jsonPointer([name], `${path}/properties`), node.properties?.[name]];
    if (isJsonObject(member) && member.default !== undefined && typeof own === "object") {
      const value = filled(member, member.default, check.meter);
      const { hasUnevaluated, meter } = check;
      const [found] = checkValue({ root: own, hasUnevaluated }, value, meter);
      if (found !== undefined)
        yield issueAt(`${place}/default`, `Does not fit its schema: ${found.path || "/"}: ${found.message}.`);
    }
    yield* defaultIssues(member, own, place, check);
  }
  for (const [index, item] of (Array.isArray(prefixItems) ? prefixItems : []).entries())
    yield* defaultIssues(item, node.prefixItems?.[index], `${path}/prefixItems/${index}`, check);
  yield* defaultIssues(items, node.items, `${path}/items`, check);
  yield* defaultIssues(
    additionalProperties,
    node.additionalProperties,
    `${path}/additionalProperties`,
    check,
  );
  for (const name of ["anyOf", "oneOf"] as const) {
    const only = alternativeOf(schema[name]);
    if (only !== undefined)
      yield* defaultIssues(only.schema, node[name]?.[only.index], `${path}/${name}/${only.index}`, check);
  }
}

function partsOf(pointer: string): string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}
