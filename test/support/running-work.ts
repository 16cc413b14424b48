/** The work of a conversation beside its turns. */
import { runningExtractions } from "../../src/agents/conversation/core/hooks.ts";
import { sideCalls } from "../../src/agents/conversation/core/side-calls.ts";
import type { ConversationRuntime } from "../../src/agents/conversation/runtime.ts";

type Running = Pick<ConversationRuntime, "exists" | "state">;

/** Reports whether a call for a summary or for a title runs. */
export const hasSideCall = (runtime: Running) => runtime.exists && sideCalls(runtime.state).length > 0;

/** Reports whether a hook extracts memories of a turn. */
export const isExtracting = (runtime: Running) =>
  runtime.exists && runningExtractions(runtime.state).length > 0;
