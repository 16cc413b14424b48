/** The work of a conversation beside its turns. */
import { runningExtractions } from "../../src/agents/conversation/core/hooks.ts";
import { runningCompactions } from "../../src/agents/conversation/core/state.ts";
import type { ConversationRuntime } from "../../src/agents/conversation/runtime.ts";

type Running = Pick<ConversationRuntime, "exists" | "state">;

/** Reports whether a session is being compacted. */
export const isCompacting = (runtime: Running) =>
  runtime.exists && runningCompactions(runtime.state).length > 0;

/** Reports whether a hook extracts memories of a turn. */
export const isExtracting = (runtime: Running) =>
  runtime.exists && runningExtractions(runtime.state).length > 0;
