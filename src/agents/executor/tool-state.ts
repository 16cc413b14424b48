/** Accesses the tool state in the caller's actor. */
import type { ToolState, ToolStateApi } from "../../protocol/executor-api.ts";
import { checkStateEntry } from "../../protocol/tool-state.ts";
import { unwrap } from "../../shared/errors.ts";

/** Returns the tool state in the caller's actor. Each use calls `connect` for the actor's stub. */
export function callerToolState(connect: () => Promise<ToolStateApi>): ToolState {
  return {
    get: async (key) => unwrap(await (await connect()).toolStateGet(key)),
    async put(key, value) {
      checkStateEntry(key, value);
      unwrap(await (await connect()).toolStatePut(key, value));
    },
    list: async (prefix) => unwrap(await (await connect()).toolStateList(prefix)),
  };
}
