/**
 * Fills in the defaults of a JSON Schema. Pure.
 *
 * DEFAULT-1  A member that is missing gets the `default` of its schema in `properties`, at any depth. Nothing else changes, and no
 *            value is changed in place. Only objects that are there get members.
 */
import { isJsonObject, type Json, type JsonObject } from "../json.ts";

/** Returns the value with the defaults of its schema. */
export function withDefaults(schema: JsonObject, value: Json): Json {
  const { properties } = schema;
  if (!isJsonObject(value) || !isJsonObject(properties)) return value;
  const members = new Map(Object.entries(value));
  for (const [name, member] of Object.entries(properties)) {
    if (!isJsonObject(member)) continue;
    const given = members.get(name);
    if (given !== undefined) members.set(name, withDefaults(member, given));
    else if (member.default !== undefined) members.set(name, structuredClone(member.default));
  }
  return Object.fromEntries(members);
}
