/** Values of a schema. */
import type { Json, JsonObject } from "../../../shared/json.ts";
import { FirstChoice } from "../../../shared/json-schema/draw.ts";
import { makeValue, NoValue } from "../../../shared/json-schema/make-value.ts";
import { Spent } from "../../../shared/json-schema/meter.ts";

/** Returns a value of a schema: the first of the choices, as short as possible (OFFLINE-4). */
export function exampleOf(schema: JsonObject): Json {
  try {
    return makeValue(schema, () => new FirstChoice("offline"));
  } catch (error) {
    if (error instanceof NoValue) return error.closest ?? {};
    if (error instanceof Spent) return {};
    throw error;
  }
}
