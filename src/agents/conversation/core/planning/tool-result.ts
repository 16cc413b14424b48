/** A tool's result: keep it, and ask the model again once every call of the reply has one. */

import type { ToolResult } from "../../../../protocol/executor-api.ts";
import type { AgentDecision } from "../decisions.ts";
import { MAX_ACTIVE_CONTENT, MAX_TURN_RESULTS } from "../limits.ts";
import type { EffectSignal } from "../signals.ts";
import { type ConversationState, pendingOperations, type Turn } from "../state.ts";
import { activeContent, resultLength, resultsLength } from "./content-size.ts";
import { planNext } from "./next.ts";
import { failure } from "./tool-call.ts";

type Completed = Extract<EffectSignal, { type: "conversation.tool.completed" }>;

export function planToolResult(state: ConversationState, signal: Completed): AgentDecision[] {
  const turn = state.active.get(signal.turn);
  if (turn === undefined) return [];
  const pending = pendingOperations(turn);
  if (!pending.some(({ item, client }) => item === signal.item && !client)) return [];
  const result = withinLimits(state, turn, signal.result);
  const decisions: AgentDecision[] = [{ type: "RESUME_FROM_TOOL", turn: turn.n, item: signal.item, result }];
  const left = pending.filter(({ item }) => item !== signal.item);
  return [...decisions, ...planNext(state, turn.n, left, turn.replies.length)];
}

/** Whether a turn, and all active turns together, can hold one more result. */
export function hasRoom(state: ConversationState, turn: Turn, result: ToolResult): boolean {
  const length = resultLength(result);
  return (
    resultsLength(turn) + length <= MAX_TURN_RESULTS && activeContent(state) + length <= MAX_ACTIVE_CONTENT
  );
}

/** The result, or, where the turn or all active turns hold too much already, that it cannot be kept. */
function withinLimits(state: ConversationState, turn: Turn, result: ToolResult): ToolResult {
  if (hasRoom(state, turn, result)) return result;
  const message = `The call was made, but its result is not kept: the results of one turn may have ${MAX_TURN_RESULTS} characters together. Ask for less.`;
  return failure(result.tool_call_id, "EXECUTION_FAILED", message);
}
