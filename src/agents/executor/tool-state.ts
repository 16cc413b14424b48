/** Tool state: in the conversation by RPC, or in memory where there are no actors. */

import type { ToolState, ToolStateApi, ToolStateEntry } from "../../protocol/executor-api.ts";
import { DramatisError, unwrap } from "../../shared/errors.ts";
import type { Json } from "../../shared/json.ts";
import { utf8Length } from "../../shared/utf8.ts";

const MAX_KEY_LENGTH = 200;
const MAX_VALUE_BYTES = 65_536;
/** Entries per `list`. */
export const MAX_STATE_ENTRIES = 1_000;

/** Throws `INVALID_INPUT` for an entry beyond the limits of `ToolState`. */
export function checkStateEntry(key: string, value: Json): void {
  if (key.length < 1 || key.length > MAX_KEY_LENGTH) {
    throw new DramatisError("INVALID_INPUT", `A key of tool state has 1 to ${MAX_KEY_LENGTH} characters.`);
  }
  const bytes = utf8Length(JSON.stringify(value));
  if (bytes > MAX_VALUE_BYTES) {
    throw new DramatisError(
      "INVALID_INPUT",
      `The value of "${key}" has ${bytes} bytes of JSON; the limit is ${MAX_VALUE_BYTES}. Split it over several keys.`,
    );
  }
}

/** Returns the tool state in a `Conversation` actor. Each use calls `connect` for the actor's stub. */
export function conversationToolState(connect: () => Promise<ToolStateApi>): ToolState {
  return {
    get: async (key) => unwrap(await (await connect()).toolStateGet(key)),
    async put(key, value) {
      checkStateEntry(key, value);
      unwrap(await (await connect()).toolStatePut(key, value));
    },
    list: async (prefix) => unwrap(await (await connect()).toolStateList(prefix)),
  };
}

/** Returns tool state in memory. */
export function memoryToolState(): ToolState {
  const texts = new Map<string, string>();
  const read = (text: string | undefined): Json => (text === undefined ? null : JSON.parse(text));
  return {
    get: async (key) => read(texts.get(key)),
    async put(key, value) {
      checkStateEntry(key, value);
      if (value === null) texts.delete(key);
      else texts.set(key, JSON.stringify(value));
    },
    list: async (prefix) =>
      [...texts]
        .filter(([key]) => key.startsWith(prefix))
        .sort(([left], [right]) => (left < right ? -1 : 1))
        .slice(0, MAX_STATE_ENTRIES)
        .map(([key, text]): ToolStateEntry => ({ key, value: read(text) })),
  };
}
