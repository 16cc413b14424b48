/** Keywords of a JSON Schema that hold schemas, and its references. Pure. */
import { isJsonObject, type Json } from "../json.ts";

export const SCHEMAS = [
  ...["items", "additionalItems", "contains", "unevaluatedItems"],
  ...["additionalProperties", "unevaluatedProperties"],
  ...["propertyNames", "not", "if", "then", "else"],
];
export const SCHEMA_LISTS = ["allOf", "anyOf", "oneOf", "prefixItems"];
export const SCHEMA_MAPS = ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];

/** Resolves `#` or `#/…` in `root`; `undefined` if the reference leaves the document or finds no schema. */
export function referredSchema(reference: Json, root: Json): Json | undefined {
  if (typeof reference !== "string" || !/^#(?:\/|$)/.test(reference)) return undefined;
  let node: Json | undefined = root;
  for (const part of reference === "#" ? [] : reference.slice(2).split("/")) {
    const key = decoded(part);
    if (typeof node !== "object" || node === null || !Object.hasOwn(node, key)) return undefined;
    node = Array.isArray(node) ? node[Number(key)] : node[key];
  }
  return typeof node === "boolean" || isJsonObject(node) ? node : undefined;
}

/** Returns the subschemas and the referenced schema that may apply to the same value as `schema`. */
export function schemasInPlace(schema: Json, root: Json): Json[] {
  if (!isJsonObject(schema)) return [];
  const { allOf, anyOf, oneOf, not, if: condition, then: yes, else: no, dependentSchemas, $ref } = schema;
  const lists = [allOf, anyOf, oneOf].flatMap((list) => (Array.isArray(list) ? list : []));
  const dependent = isJsonObject(dependentSchemas) ? Object.values(dependentSchemas) : [];
  const referred = $ref === undefined ? undefined : referredSchema($ref, root);
  return [...lists, not, condition, yes, no, ...dependent, referred].filter((found) => found !== undefined);
}

/** Decodes one part of a JSON pointer in a URI fragment. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return part;
  }
}
