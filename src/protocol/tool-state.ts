/** The limits of tool state. Both sides check them. */
import { invalid } from "../shared/errors.ts";
import type { Json } from "../shared/json.ts";
import { utf8Length } from "../shared/utf8.ts";

const MAX_KEY_LENGTH = 200;
const MAX_VALUE_BYTES = 65_536;
export const MAX_STATE_ENTRIES = 1_000;

/** Throws `INVALID_INPUT` for an entry beyond the limits of `ToolState`. */
export function checkStateEntry(key: string, value: Json): void {
  if (key.length < 1 || key.length > MAX_KEY_LENGTH)
    throw invalid(`A key of tool state has 1 to ${MAX_KEY_LENGTH} characters.`);
  const bytes = utf8Length(JSON.stringify(value));
  if (bytes > MAX_VALUE_BYTES)
    throw invalid(
      `The value of "${key}" has ${bytes} bytes of JSON; the limit is ${MAX_VALUE_BYTES}. Split it over several keys.`,
    );
}
