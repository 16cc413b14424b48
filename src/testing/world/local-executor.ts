/** An executor in the caller's own process, without RPC, and tool state in memory. */
import { readCalls } from "../../agents/executor/calls.ts";
import {
  type CallTaint,
  type MemoryCall,
  type MemoryPorts,
  memoryFor,
} from "../../agents/executor/memory.ts";
import { type BatchPorts, runCalls } from "../../agents/executor/run-calls.ts";
import { storedResults } from "../../agents/executor/stored-results.ts";
import { ResultKeeper } from "../../attachments/result-keeper.ts";
import type { ToolCodes } from "../../library/registry/deployed-code.ts";
import { ToolError } from "../../library/tools/tool-error.ts";
import type { Clock } from "../../ports/clock.ts";
import { callerOf } from "../../protocol/caller.ts";
import { addressKey } from "../../protocol/envelope.ts";
import type { TaskExecutor, ToolState, ToolStateEntry } from "../../protocol/executor-api.ts";
import { checkStateEntry, MAX_STATE_ENTRIES } from "../../protocol/tool-state.ts";
import type { CallContext } from "../../shared/identifiers.ts";
import type { Json } from "../../shared/json.ts";

/**
 * Returns an executor in this process. `state` keeps the tool state of each caller's actor. `deliver` sends the results
 * of a lost caller. Without it they are dropped, because a caller in this process does not die alone. Without `models`,
 * tasks cannot call a model. Without `http`, they cannot send a request.
 */
export function localExecutor(
  tools: ToolCodes,
  clock: Clock,
  state: (context: CallContext) => ToolState = statePerCaller(),
  deliver: BatchPorts["deliver"] = async () => undefined,
  defer: BatchPorts["defer"] = noHandles,
  actions: Pick<BatchPorts, "models" | "http" | "workspace" | "artifacts" | "mcp" | "remoteAgent"> = {},
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
    memory: (call: MemoryCall, taint: CallTaint) => memoryFor(memory, call, taint),
    waitUntil: () => undefined,
    http: () => noRequests,
    ...actions,
  };
  // As over RPC, which checks calls.
  return { run: async (calls, caller) => runCalls(ports, readCalls(calls), caller) };
}

/** The `results` of an executor without storage. */
export const noResults = (clock: Clock) => storedResults(new ResultKeeper(null, 0, clock), async () => false);

const NO_MEMORY: MemoryPorts = {
  agent: () => Promise.reject(new Error("This executor finds no agents.")),
  pastTurns: () => Promise.reject(new Error("This executor reads no conversations.")),
};

/** The `defer` of an executor for tools that defer no result. */
export async function noHandles(): Promise<never> {
  throw new Error("This executor gives no handles.");
}

async function noRequests(url: URL): Promise<never> {
  throw new ToolError(`This executor sends no requests, so "${url.host}" was not asked.`);
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
