/** JSON Schemas on their way to providers that take a part of the language only. Pure. */
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";

/** Keywords with schemas as members, by name. */
const NAMED = new Set(["properties", "$defs", "definitions", "patternProperties"]);

/** Formats of strings that every provider enforces. */
export const FORMATS: ReadonlySet<Json> = new Set([
  "date-time",
  "time",
  "date",
  "duration",
  "email",
  "hostname",
  "ipv4",
  "ipv6",
  "uuid",
]);

/** Changes each schema in the value of a keyword: alone, in a list or by name. */
export function mapSchemas(keyword: string, value: Json, change: (schema: JsonObject) => JsonObject): Json {
  if (Array.isArray(value)) return value.map((item) => mapSchemas("", item, change));
  if (!isJsonObject(value)) return value;
  return NAMED.has(keyword) ? mapMembers(value, (member) => mapSchemas("", member, change)) : change(value);
}

/** Appends a note to a description: what the provider cannot enforce, the model can read. */
export function withNote(description: Json | undefined, note: string): string {
  return typeof description === "string" ? `${description}\n\n${note}` : note;
}

function mapMembers(object: JsonObject, change: (member: Json) => Json): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([name, member]) => [name, change(member)]));
}
