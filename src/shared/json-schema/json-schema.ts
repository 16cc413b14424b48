/** A JSON Schema as it is checked: known keywords only, references resolved, patterns compiled. */
import type { Json } from "../json.ts";
import type { Pattern } from "./pattern.ts";

export type Schema = boolean | SchemaNode;

/** Schemas by the name of a member. Has no prototype. */
export type SchemaMap = Record<string, Schema>;

export const SCHEMA_KEYWORDS = [
  ...["items", "contains", "unevaluatedItems", "additionalProperties", "unevaluatedProperties"],
  ...["propertyNames", "not", "if", "then", "else"],
] as const;
export const LIST_KEYWORDS = ["allOf", "anyOf", "oneOf", "prefixItems"] as const;
/** Keywords with an object of schemas. */
export const MAP_KEYWORDS = [
  "properties",
  "dependentSchemas",
  "patternProperties",
  "$defs",
  "definitions",
] as const;

export interface SchemaNode
  extends Partial<Record<(typeof SCHEMA_KEYWORDS)[number], Schema>>,
    Partial<Record<(typeof LIST_KEYWORDS)[number], Schema[]>>,
    Partial<Record<(typeof MAP_KEYWORDS)[number], SchemaMap>> {
  $ref?: Schema;
  type?: string | string[];
  const?: Json;
  enum?: Json[];
  required?: string[];
  dependentRequired?: Record<string, string[]>;
  pattern?: Pattern;
  /** The patterns of `patternProperties`, by their text. */
  patterns?: Record<string, Pattern>;
  format?: string;
  uniqueItems?: boolean;
  multipleOf?: number;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  minProperties?: number;
  maxProperties?: number;
  minContains?: number;
  maxContains?: number;
}

/** A schema that was read, ready to be checked against. */
export interface ReadSchema {
  root: SchemaNode;
  /** Set if a part depends on the results of other parts (`unevaluatedItems`, `unevaluatedProperties`). */
  hasUnevaluated: boolean;
}

/** Returns the other schemas that a schema may apply to the same value. */
export function schemasInPlace(schema: Schema): Schema[] {
  if (typeof schema === "boolean") return [];
  const { allOf = [], anyOf = [], oneOf = [], not, if: condition, then: yes, else: no, $ref } = schema;
  const dependent = Object.values(schema.dependentSchemas ?? {});
  return [...allOf, ...anyOf, ...oneOf, ...dependent, not, condition, yes, no, $ref].filter(
    (part) => part !== undefined,
  );
}
