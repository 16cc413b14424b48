/** An executor in the caller's own process, without RPC, and tool state in memory. */
import { readCalls } from "../../src/agents/executor/calls.ts";
import { type MemoryCall, type MemoryPorts, memoryFor } from "../../src/agents/executor/memory.ts";
import { type BatchPorts, runCalls } from "../../src/agents/executor/run-calls.ts";
import { storedResults } from "../../src/agents/executor/stored-results.ts";
import type { ToolCodes } from "../../src/library/registry/deployed-code.ts";
import type { Clock } from "../../src/ports/clock.ts";
import { callerOf } from "../../src/protocol/caller.ts";
import { addressKey } from "../../src/protocol/envelope.ts";
import type { TaskExecutor, ToolState, ToolStateEntry } from "../../src/protocol/executor-api.ts";
import type { ToolMemory } from "../../src/protocol/tool-memory.ts";
import { checkStateEntry, MAX_STATE_ENTRIES } from "../../src/protocol/tool-state.ts";
import { defined } from "../../src/shared/defined.ts";
import type { CallContext } from "../../src/shared/identifiers.ts";
import type { Json } from "../../src/shared/json.ts";

/**
 * Returns an executor in this process. `state` keeps the tool state of each caller's actor. `deliver` sends the results of a
 * caller that is lost; without it they are dropped, for a caller in this process does not die alone. Without `models`, tasks ask none.
 */
export function localExecutor(
  tools: ToolCodes,
  clock: Clock,
  state: (context: CallContext) => ToolState = statePerCaller(),
  deliver: BatchPorts["deliver"] = async () => undefined,
  defer: BatchPorts["defer"] = noHandles,
  models?: BatchPorts["models"],
  memory: MemoryPorts = NO_MEMORY,
): TaskExecutor {
  const ports = {
    tools,
    clock,
    state,
    deliver,
    defer,
    results: noResults(clock),
    baseUrl: "https://agents.test",
    mayReach: () => true,
    vectors: new Map(),
    memory: (call: MemoryCall, onTainted: () => void) => memoryFor(memory, call, onTainted),
    waitUntil: () => undefined,
    ...defined({ models }),
  };
  // As over RPC, where calls are checked.
  return { run: async (calls, caller) => runCalls(ports, readCalls(calls), caller) };
}

/** The `results` of an executor that stores nothing. */
export const noResults = (clock: Clock) =>
  storedResults({ store: null, maxBytes: 0, clock }, async () => false);

/** The actors of an executor whose agents have no memory. */
const NO_MEMORY: MemoryPorts = {
  agent: () => Promise.reject(new Error("This executor finds no agents.")),
  pastTurns: () => Promise.reject(new Error("This executor reads no conversations.")),
};

/** The `memory` of an executor whose agents have none. */
export function noMemory(call: MemoryCall): ToolMemory {
  return memoryFor(NO_MEMORY, call);
}

/** The `defer` of an executor whose tools defer nothing. */
export async function noHandles(): Promise<never> {
  throw new Error("This executor gives no handles.");
}

function statePerCaller(): (context: CallContext) => ToolState {
  const states = new Map<string, ToolState>();
  return (context) => {
    const name = addressKey(callerOf(context));
    const state = states.get(name) ?? memoryToolState();
    states.set(name, state);
    return state;
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
