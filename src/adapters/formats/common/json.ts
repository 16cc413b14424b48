/** Reads and builds JSON of unknown shape. Pure. */
import { type Facts, isJsonObject, type JsonObject } from "../../../shared/json.ts";

/** Returns the objects in a list. Empty if the value is not a list. */
export function objects(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

/** Returns the object itself, or an empty one for any other value. */
export function membersOf(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}

/** Returns the text itself, or an empty one for any other value. */
export function stringOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/**
 * Returns the members that are not `undefined`, `null` or empty, as texts, lists and objects may be.
 * @example { name, ...filled({ description, tags: tags.filter(isShown) }) }
 */
export function filled<Members extends object>(
  members: Members,
): { [Key in keyof Members]?: NonNullable<Members[Key]> } {
  const kept: Partial<Members> = {};
  for (const key in members) if (!isEmpty(members[key])) kept[key] = members[key];
  // SAFETY: only members with a value were kept.
  return kept as { [Key in keyof Members]?: NonNullable<Members[Key]> };
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === "") return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}

export function jsonOf(facts: Facts): JsonObject {
  // SAFETY: facts are JSON wherever they come from: parsed, or validated at their boundary.
  return facts as JsonObject;
}
