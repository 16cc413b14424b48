/**
 * The actor died with turns active and its effects are gone. Model calls are made again into the same message; `pure`
 * and `idempotent` tools run again under the same operation id; a `once` tool may have run, so it never runs again and
 * the model is told that its outcome is unknown. What a client runs is not ours to run again: its turn waits on, and a
 * turn that only waits has not been interrupted.
 */
import type { AgentDecision } from "../decisions.ts";
import { MAX_RECOVERIES } from "../limits.ts";
import { type ConversationState, pendingOperations, type Turn, waitsForClient } from "../state.ts";
import { planNext } from "./next.ts";
import type { PlanInput } from "./plan-input.ts";
import { failure } from "./tool-call.ts";

export function planRecovery(state: ConversationState, { now }: PlanInput): AgentDecision[] {
  return [...state.active.values()].flatMap((turn) => recoverTurn(state, turn, now));
}

function recoverTurn(state: ConversationState, turn: Turn, now: number): AgentDecision[] {
  if (waitsForClient(turn)) return [];
  if (turn.recoveries >= MAX_RECOVERIES) {
    const message = `The actor was interrupted ${MAX_RECOVERIES} times during this turn. Send the message again.`;
    return [
      { type: "FAIL_TURN", turn: turn.n, error: { code: "RECOVERY_EXHAUSTED", message, retriable: true } },
    ];
  }
  const decisions: AgentDecision[] = [{ type: "RESUME_TURN", turn: turn.n }];
  if (turn.call !== null) {
    const mayHaveStreamed = turn.call.notBefore <= now;
    if (mayHaveStreamed) decisions.push({ type: "RESET_MESSAGE", turn: turn.n, reason: "interrupted" });
    return decisions;
  }
  const pending = pendingOperations(turn);
  const unknown = pending.filter(({ effect, client }) => effect === "once" && !client);
  for (const { item, name, toolCallId } of unknown) {
    const message = `Outcome unknown: the run of "${name}" was interrupted and it may have taken effect. It was not run again.`;
    const result = failure(toolCallId, "EXECUTION_FAILED", message);
    decisions.push({ type: "RESUME_FROM_TOOL", turn: turn.n, item, result });
  }
  if (unknown.length === 0 && pending.length > 0) return decisions;
  const left = pending.filter((operation) => !unknown.includes(operation));
  return [...decisions, ...planNext(state, turn.n, left, turn.replies.length)];
}
