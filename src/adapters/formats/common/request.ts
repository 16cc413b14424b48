/** What the requests of all formats are made with. Pure. */

import { DramatisError } from "../../../shared/errors.ts";
import type { Facts, Json, JsonObject } from "../../../shared/json.ts";

/** A profile's parameters without the keys that the request itself sets; a parameter of `null` is left out. */
export function settings(parameters: JsonObject | undefined, reserved: readonly string[]): JsonObject {
  const entries = Object.entries(parameters ?? {});
  return Object.fromEntries(entries.filter(([key, value]) => value !== null && !reserved.includes(key)));
}

/** The list that a request to be continued has under `key`; throws `INVALID_INPUT` if it has none. */
export function requireList(request: JsonObject, key: string): readonly Json[] {
  const list = request[key];
  if (Array.isArray(list)) return list;
  throw new DramatisError("INVALID_INPUT", `A model request must have an array \`${key}\` to be continued.`);
}

/** `request` with `later` behind its list `key`; every other key keeps its value and its place. */
export function continued(request: JsonObject, key: string, later: readonly Json[]): JsonObject {
  return { ...request, [key]: [...requireList(request, key), ...later] };
}

/** Facts as the JSON that they are. */
export function jsonOf(facts: Facts): JsonObject {
  // SAFETY: facts are JSON wherever they come from: parsed, or validated at their boundary.
  return facts as JsonObject;
}
