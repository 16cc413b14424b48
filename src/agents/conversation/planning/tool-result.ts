/** A tool's result: keep it, and ask the model again once every call of the reply has one. */
import type { AgentDecision } from "../decisions.ts";
import type { EffectSignal } from "../signals.ts";
import { type ConversationState, pendingOperations } from "../state.ts";
import { isLastMove } from "./model-reply.ts";

type Completed = Extract<EffectSignal, { type: "conversation.tool.completed" }>;

export function planToolResult(state: ConversationState, signal: Completed): AgentDecision[] {
  const turn = state.active.get(signal.turn);
  if (turn === undefined) return [];
  const pending = pendingOperations(turn);
  if (!pending.some((operation) => operation.item === signal.item)) return [];
  const decisions: AgentDecision[] = [
    { type: "RESUME_FROM_TOOL", turn: turn.n, item: signal.item, result: signal.result },
  ];
  if (pending.length === 1) {
    decisions.push({ type: "CALL_LLM", turn: turn.n, final: isLastMove(state, turn.replies.length) });
  }
  return decisions;
}
