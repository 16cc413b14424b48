/** A tool's result: keep it, and ask the model again once every call of the reply has one. */

import type { ToolResult } from "../../executor/types.ts";
import type { AgentDecision } from "../decisions.ts";
import { MAX_ACTIVE_CONTENT, MAX_TURN_RESULTS } from "../limits.ts";
import type { EffectSignal } from "../signals.ts";
import { type ConversationState, pendingOperations, type Turn } from "../state.ts";
import { activeContent, resultLength, resultsLength } from "./content-size.ts";
import { isLastMove } from "./model-reply.ts";
import { failure } from "./tool-call.ts";

type Completed = Extract<EffectSignal, { type: "conversation.tool.completed" }>;

export function planToolResult(state: ConversationState, signal: Completed): AgentDecision[] {
  const turn = state.active.get(signal.turn);
  if (turn === undefined) return [];
  const pending = pendingOperations(turn);
  if (!pending.some((operation) => operation.item === signal.item)) return [];
  const result = withinLimits(state, turn, signal.result);
  const decisions: AgentDecision[] = [{ type: "RESUME_FROM_TOOL", turn: turn.n, item: signal.item, result }];
  if (pending.length === 1) {
    decisions.push({ type: "CALL_LLM", turn: turn.n, final: isLastMove(state, turn.replies.length) });
  }
  return decisions;
}

/** The result, or, where the turn or all active turns hold too much already, that it cannot be kept. */
function withinLimits(state: ConversationState, turn: Turn, result: ToolResult): ToolResult {
  const length = resultLength(result);
  const isKept =
    resultsLength(turn) + length <= MAX_TURN_RESULTS && activeContent(state) + length <= MAX_ACTIVE_CONTENT;
  if (isKept) return result;
  const message = `The call was made, but its result is not kept: the results of one turn may have ${MAX_TURN_RESULTS} characters together. Ask for less.`;
  return failure(result.tool_call_id, "EXECUTION_FAILED", message);
}
