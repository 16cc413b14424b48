/**
 * Planning without an outcome: after a crash, when a client's time is up, and when an outcome can never be stored.
 *
 * After a crash a model call is repeated into the same message. `pure` and `idempotent` tools run again under the same
 * operation id. A `once` tool never runs again, because it may have run: the model is sent that its outcome is unknown. A
 * turn that only waits for its client was not interrupted.
 */
import type { AgentDecision, PlanInput } from "../decisions.ts";
import { MAX_RECOVERIES } from "../limits.ts";
import type { Abandon } from "../signals.ts";
import {
  type ConversationState,
  deadlineOf,
  pendingOperations,
  type Turn,
  waitsForClient,
} from "../state.ts";
import { resume } from "./results.ts";
import { failure } from "./tool-call.ts";

/** Resumes the active turns after a crash. */
export function planRecovery(state: ConversationState, { now }: PlanInput): AgentDecision[] {
  return [...state.active.values()].flatMap((turn) => recoverTurn(state, turn, now));
}

function recoverTurn(state: ConversationState, turn: Turn, now: number): AgentDecision[] {
  const { n, call, recoveries } = turn;
  if (waitsForClient(turn)) return [];
  if (recoveries >= MAX_RECOVERIES) {
    const message = `The actor was interrupted ${MAX_RECOVERIES} times during this turn. Send the message again.`;
    return [{ type: "FAIL_TURN", turn: n, error: { code: "RECOVERY_EXHAUSTED", message, retriable: true } }];
  }
  const mayHaveStreamed = call !== null && call.notBefore <= now;
  const resumed: AgentDecision = { type: "RESUME_TURN", turn: n, reset: mayHaveStreamed };
  if (call !== null) return [resumed];
  const unknown = pendingOperations(turn).filter(({ effect, client }) => effect === "once" && !client);
  const results = unknown.map(({ item, name, toolCallId }) => {
    const message = `Outcome unknown: the run of "${name}" was interrupted and it may have taken effect. It was not run again.`;
    return { item, result: failure(toolCallId, "EXECUTION_FAILED", message) };
  });
  return [resumed, ...resume(state, turn, results)];
}

/** Fails the calls that a client has not answered in time. */
export function planExpiry(state: ConversationState, { now }: Pick<PlanInput, "now">): AgentDecision[] {
  return [...state.active.values()].flatMap((turn) => {
    const late = pendingOperations(turn).filter(
      (operation) => operation.client && deadlineOf(turn, operation) <= now,
    );
    const results = late.map(({ item, toolCallId, name, timeoutMs }) => {
      const message = `The client gave no result of "${name}" within ${timeoutMs} ms.`;
      return { item, result: failure(toolCallId, "TIMEOUT", message, true) };
    });
    return results.length === 0 ? [] : resume(state, turn, results);
  });
}

/** Fails a turn whose outcome can never be stored. */
export function planAbandon(state: ConversationState, { turn, error, facts }: Abandon): AgentDecision[] {
  if (!state.active.has(turn)) return [];
  const fail: AgentDecision = { type: "FAIL_TURN", turn, error };
  if (facts === undefined) return [fail];
  return [{ type: "RECORD_ATTEMPT", turn, facts, category: "unknown", isLast: true }, fail];
}
