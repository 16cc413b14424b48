/**
 * JSON Schemas as the Gemini API takes them. The API refuses keywords outside its part of the language, and names of required members
 * that are not among the properties. The schema gives both to the model in a description. Pure.
 *
 * GEMINI-8  A schema that leaves has only keywords that the API takes. Arguments are checked against the schema of the tool.
 */
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { mapSchemas, withNote } from "../common/tool-schemas.ts";

/** Keywords that are sent as they are. */
const KEPT = new Set([
  "type",
  "title",
  "description",
  "enum",
  "minimum",
  "maximum",
  "minItems",
  "maxItems",
  "propertyOrdering",
]);

const NESTED = new Set(["$defs", "properties", "items", "prefixItems", "anyOf", "additionalProperties"]);

/** Keywords without a meaning for a model. */
const DROPPED = new Set(["$schema", "$id", "$anchor", "$comment"]);

const FORMATS = new Set<Json>(["date-time", "date", "time", "int32", "int64", "float", "double"]);

/** Returns a schema of an object in the API's part of the language. */
export function geminiSchema(schema: JsonObject): JsonObject {
  const made = fitted(schema);
  return made.$ref === undefined && made.anyOf === undefined ? { type: "object", ...made } : made;
}

function fitted(schema: JsonObject): JsonObject {
  // The API refuses further keywords next to a reference.
  if (typeof schema.$ref === "string") return { $ref: schema.$ref.replace(/^#\/definitions\//, "#/$defs/") };
  const made: JsonObject = {};
  const limits: string[] = [];
  for (const [keyword, value] of Object.entries(schema)) {
    const rest = put(made, keyword, value, schema);
    if (rest !== undefined) limits.push(`${keyword}: ${JSON.stringify(rest)}`);
  }
  if (limits.length > 0) made.description = withNote(made.description, `Limits: ${limits.join(", ")}`);
  return made;
}

/** Adds a keyword in the form that the API takes. Returns the part of its value that the API does not take. */
function put(made: JsonObject, keyword: string, value: Json, schema: JsonObject): Json | undefined {
  if (DROPPED.has(keyword)) return undefined;
  if (keyword === "definitions") made.$defs = mapSchemas("$defs", value, fitted);
  else if (keyword === "oneOf" && schema.anyOf === undefined) made.anyOf = mapSchemas("", value, fitted);
  else if (NESTED.has(keyword)) made[keyword] = mapSchemas(keyword, value, fitted);
  else if (KEPT.has(keyword) || (keyword === "format" && FORMATS.has(value))) made[keyword] = value;
  else if (keyword === "const" && (typeof value === "string" || typeof value === "number"))
    made.enum = [value];
  else if (keyword === "required") return putRequired(made, value, schema.properties);
  else if (keyword === "exclusiveMinimum" || keyword === "exclusiveMaximum")
    return putBound(made, keyword, value, schema);
  else return value;
  return undefined;
}

function putRequired(made: JsonObject, value: Json, properties: Json | undefined): Json | undefined {
  const names = Array.isArray(value) ? value : [];
  const isKnown = (name: Json) => isJsonObject(properties) && Object.hasOwn(properties, String(name));
  const [known, others] = [names.filter(isKnown), names.filter((name) => !isKnown(name))];
  if (known.length > 0) made.required = known;
  return others.length === 0 ? undefined : others;
}

/** Converts an exclusive bound of integers to the adjacent inclusive bound. */
function putBound(
  made: JsonObject,
  keyword: "exclusiveMinimum" | "exclusiveMaximum",
  value: Json,
  { type, minimum, maximum }: JsonObject,
): Json | undefined {
  const isMinimum = keyword === "exclusiveMinimum";
  const beside = isMinimum ? minimum : maximum;
  if (typeof value !== "number" || beside !== undefined) return value;
  const whole = isMinimum ? Math.floor(value) + 1 : Math.ceil(value) - 1;
  made[isMinimum ? "minimum" : "maximum"] = type === "integer" ? whole : value;
  return type === "integer" ? undefined : value;
}
