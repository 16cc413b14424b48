/** An executor in the caller's own process, without RPC. */
import type { ToolCodes } from "../../library/deployed-code.ts";
import type { Clock } from "../../ports/clock.ts";
import type { TaskExecutor, ToolState } from "../../protocol/executor-api.ts";
import type { CallContext } from "../../shared/identifiers.ts";
import { type BatchPorts, runCalls } from "./run-calls.ts";
import { memoryToolState } from "./tool-state.ts";

/**
 * Returns an executor in this process. `state` keeps the tool state of each conversation. `deliver` sends the results of a
 * caller that is lost; without it they are dropped, for a caller in this process does not die alone.
 */
export function localExecutor(
  tools: ToolCodes,
  clock: Clock,
  state: (context: CallContext) => ToolState = statePerConversation(),
  deliver: BatchPorts["deliver"] = async () => undefined,
): TaskExecutor {
  return { run: (calls, caller) => runCalls({ tools, clock, state, deliver }, { calls }, caller) };
}

function statePerConversation(): (context: CallContext) => ToolState {
  const states = new Map<string, ToolState>();
  return ({ tenant, conversationId }) => {
    const name = `${tenant}:${conversationId}`;
    const state = states.get(name) ?? memoryToolState();
    states.set(name, state);
    return state;
  };
}
