/** Examples of schemas. Pure. */
import type { oas31 } from "zod-openapi";

export type Schema = oas31.SchemaObject | oas31.ReferenceObject;
export type Schemas = Readonly<Record<string, Schema>>;

const MAX_DEPTH = 8;

/** Returns the schema's own example, or one composed of its parts. */
export function exampleOf(schema: Schema, schemas: Schemas, depth = 0): unknown {
  if ("$ref" in schema && schema.$ref !== undefined) {
    const target = schemas[nameOfReference(schema.$ref)];
    return target === undefined || depth > MAX_DEPTH ? {} : exampleOf(target, schemas, depth + 1);
  }
  // SAFETY: references, the union's other member, are handled above.
  const {
    example,
    const: only,
    enum: values,
    type,
    anyOf,
    oneOf,
    properties,
    items,
    prefixItems,
    minimum = 1,
  } = schema as oas31.SchemaObject;
  if (example !== undefined) return example;
  if (only !== undefined) return only;
  if (values?.[0] !== undefined) return values[0];
  const first = (anyOf ?? oneOf)?.[0];
  if (first !== undefined) return exampleOf(first, schemas, depth + 1);
  switch (Array.isArray(type) ? type[0] : type) {
    case "object":
      return Object.fromEntries(
        Object.entries(properties ?? {}).map(([name, member]) => [
          name,
          exampleOf(member, schemas, depth + 1),
        ]),
      );
    case "array":
      // The items of a tuple have schemas of their own, and further items are `false`.
      if (prefixItems !== undefined) return prefixItems.map((item) => exampleOf(item, schemas, depth + 1));
      return typeof items !== "object" || depth > MAX_DEPTH ? [] : [exampleOf(items, schemas, depth + 1)];
    case "integer":
    case "number":
      return Math.max(1, minimum);
    case "boolean":
      return true;
    case "null":
      return null;
    case "string":
      return "text";
    default:
      return {};
  }
}

/** Returns the last part of a reference: `Agent` for `#/components/schemas/Agent`. */
export function nameOfReference(reference: string): string {
  return reference.slice(reference.lastIndexOf("/") + 1);
}
