/**
 * The form that the older design of Wonder gives to the operations of an extraction: `{op, store, key, value}`. Pure.
 *
 * MEMFORM-1  `write` and `update` with a `value` write the text under the `key`, and `store` is the type. A value that is no text is
 *            written as JSON. `delete` and `archive` take the memory of the `key`, whatever its `store`.
 */
import { isJsonObject, type Json } from "../../../../shared/json.ts";

/** Returns an operation in our form. Returns all other content as it is. */
export function operationOf(given: Json): Json {
  if (!isJsonObject(given)) return given;
  const { op, store, value, ...rest } = given;
  if ((op === "delete" || op === "archive") && "key" in rest && value === undefined) return { ...rest, op };
  if ((op !== "write" && op !== "update") || value === undefined) return given;
  const content = typeof value === "string" ? value : JSON.stringify(value);
  return { ...rest, op: "write", content, ...(store === undefined ? {} : { type: store }) };
}
