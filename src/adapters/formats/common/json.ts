/** Reads JSON that may have any shape. Pure. */
import { type Facts, isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";

/** Parses JSON text; returns `undefined` for text that is not JSON. */
export function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the objects in a list; none if the value is not a list. */
export function objects(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

/** Returns facts as JSON. */
export function jsonOf(facts: Facts): JsonObject {
  // SAFETY: facts are JSON wherever they come from: parsed, or validated at their boundary.
  return facts as JsonObject;
}
