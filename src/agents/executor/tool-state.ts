/** Tool state: in the conversation by RPC, or in memory where there are no actors. */

import type { ToolState, ToolStateApi, ToolStateEntry } from "../../protocol/executor-api.ts";
import { checkStateEntry, MAX_STATE_ENTRIES } from "../../protocol/tool-state.ts";
import { unwrap } from "../../shared/errors.ts";
import type { Json } from "../../shared/json.ts";

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
