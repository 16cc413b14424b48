/**
 * Planning without an outcome: after a crash, when a deadline has passed, and when an outcome can never be stored.
 *
 * RECOVER-1  After a crash a model call is repeated into the same message, and `pure` and `idempotent` tools run again under the same
 *            operation id. A turn that only waits was not interrupted: for a client, for other turns (ISOLATE-2), or for its next attempt.
 *            After the clock was set back, a waiting attempt may have run and counts as interrupted.
 * RECOVER-2  A `once` tool that ran never runs again, because it may have taken effect. Its run may have outlived the actor: for
 *            `LATE_RESULT_MS` after the first wake its result is still accepted. Without one, the model is sent that the outcome is
 *            unknown.
 * RECOVER-3  An interrupted background operation blocks no turn, so its result is accepted until the time limit of its run.
 * RECOVER-4  A `once` call of a remote agent is not interrupted. Its next attempt begins after `LATE_RESULT_MS`, and sends no message (A2ATASK-3).
 */
import { LATE_RESULT_MS, MAX_RECOVERIES } from "../conversation-limits.ts";
import type { AgentDecision, PlanInput } from "../decisions.ts";
import { extractionOf } from "../hooks.ts";
import { crashesOf, delayedTurns, resumePause } from "../isolation.ts";
import { awaitsApproval, dueAt, isOnce, type Operation } from "../operation.ts";
import type { Abandon } from "../signals.ts";
import { type ConversationState, chainOf } from "../state.ts";
import { chargedForHook, reservedByOperation } from "../task-spending.ts";
import type { Turn } from "../turn.ts";
import { openOperations, runnableOperations } from "../turn-operations.ts";
import { expiredCall } from "./agent-call.ts";
import { unapproved } from "./approval.ts";
import { reservationOf } from "./budget.ts";
import { failTurn } from "./cancel.ts";
import { expiredDeferral } from "./defer.ts";
import { interruptAssembly, isAssembling, planExtraction } from "./hooks.ts";
import { chargeTask, resume } from "./results.ts";
import { expiredRun } from "./run-call.ts";
import { failure } from "./tool-call.ts";

/** Resumes the active turns after a crash. Work due at `due` may have begun. */
export function planRecovery(state: ConversationState, due: number, input: PlanInput): AgentDecision[] {
  const delayed = delayedTurns(state.active);
  return [...state.active.values()].flatMap((turn) =>
    delayed.has(turn.n) ? [] : recoverTurn(state, turn, due, input),
  );
}

function recoverTurn(state: ConversationState, turn: Turn, due: number, input: PlanInput): AgentDecision[] {
  const { now } = input;
  const { n, call, paused } = turn;
  const running = runnableOperations(turn).filter(({ notBefore = now }) => notBefore <= due);
  // The text of a paused reply was shown, and a crash takes it back, also while its call waits.
  const isAsking = call?.leasing === true;
  const isCalling = call !== null && ((call.notBefore <= due && !isAsking) || paused !== undefined);
  if (!isCalling && running.length === 0 && !isAssembling(turn, due)) return [];
  const charge: AgentDecision[] =
    call === null || call.notBefore > due || isAsking
      ? []
      : [{ type: "RECORD_CRASH", turn: n, estimate: reservationOf(state, { ...turn, call }, input) }];
  const crashes = crashesOf(turn) + 1;
  if (crashes > MAX_RECOVERIES) {
    const message = `The actor was interrupted ${crashes} times during this turn, without progress in between. Send the message again.`;
    return [...charge, failTurn(turn, { code: "RECOVERY_EXHAUSTED", message, retriable: true }, input)];
  }
  return [
    ...charge,
    { type: "RESUME_TURN", turn: n, notBefore: now + resumePause(crashes), reset: isCalling },
    ...repeatTasks(state, turn, running, due),
    ...running.filter(isOnce).map((operation): AgentDecision => {
      const { item, remote } = operation;
      if (remote !== undefined)
        return { type: "CONTINUE_TASK", turn: n, item, notBefore: now + LATE_RESULT_MS };
      return { type: "INTERRUPT_TASK", turn: n, item, deadline: lateResultBy(turn, operation, now) };
    }),
    ...interruptAssembly(state, turn, due, input),
  ];
}

/** Charges the tasks and the context hook that run again (LEDGER-5). They call their models again and need new reservations. */
function repeatTasks(
  { record }: ConversationState,
  turn: Turn,
  running: readonly Operation[],
  due: number,
): AgentDecision[] {
  const { n, agentId, assembly } = turn;
  const chain = chainOf(record, agentId);
  const hook = chain.contextAssembly;
  const isHook = assembly !== undefined && isAssembling(turn, due) && hook?.effect !== "once";
  const runs = [
    ...running
      .filter(({ effect }) => effect !== "once")
      .map((operation) => ({ item: operation.item, spent: reservedByOperation(chain, operation) })),
    ...(isHook ? [{ item: assembly.item, spent: chargedForHook(chain, hook, assembly, due) }] : []),
  ];
  return runs.flatMap(({ item, spent }): AgentDecision[] =>
    spent.modelCalls === 0
      ? []
      : [...chargeTask(turn, item, spent), { type: "RESERVE_TASK", turn: n, item, reserving: "due" }],
  );
}

/** Returns the time until which the result of an interrupted run is accepted (RECOVER-3). */
function lateResultBy({ replies }: Turn, operation: Operation, now: number): number {
  const { mode, reply, timeoutMs, notBefore = replies[reply]?.at ?? now } = operation;
  const least = now + LATE_RESULT_MS;
  return mode === "sync" ? least : Math.max(least, notBefore + timeoutMs + LATE_RESULT_MS);
}

/** Fails the operations after their deadline. */
export function planExpiry(state: ConversationState, { now }: Pick<PlanInput, "now">): AgentDecision[] {
  return [...state.active.values()].flatMap((turn) => {
    const late = openOperations(turn).filter((operation) => dueAt(operation) <= now);
    if (late.length === 0) return [];
    const { answers, results } = unapproved(turn, late.filter(awaitsApproval), "expired");
    const others = late.filter((operation) => !awaitsApproval(operation));
    const failures = others.map((operation) => ({ item: operation.item, result: expired(operation) }));
    const chain = chainOf(state.record, turn.agentId);
    const charges = others
      .filter(({ status }) => status === "interrupted")
      .flatMap((operation) => chargeTask(turn, operation.item, reservedByOperation(chain, operation)));
    return [...charges, ...answers, ...resume(state, turn, [...results, ...failures])];
  });
}

function expired(operation: Operation) {
  const { status, target, toolCallId, name, timeoutMs } = operation;
  if (target === "agent") return expiredCall(operation);
  if (target === "workflow") return expiredRun(operation);
  if (status === "deferred") return expiredDeferral(operation);
  if (operation.remote !== undefined && status === "pending") {
    const message = `The remote agent of "${name}" did not finish within ${timeoutMs} ms. Its task was cancelled.`;
    return failure(toolCallId, "TIMEOUT", message);
  }
  if (status === "interrupted") {
    const message = `Outcome unknown: the run of "${name}" was interrupted and it may have taken effect. It was not run again.`;
    return failure(toolCallId, "EXECUTION_FAILED", message);
  }
  const message = `The client gave no result of "${name}" within ${timeoutMs} ms.`;
  return failure(toolCallId, "TIMEOUT", message, true);
}

/** Fails a turn with an outcome that can never be stored. */
export function planAbandon(
  state: ConversationState,
  { turn: n, error, facts }: Abandon,
  input: PlanInput,
): AgentDecision[] {
  const turn = state.active.get(n);
  if (turn === undefined) {
    const run = extractionOf(state, n);
    const result = failure("", "INTERNAL_ERROR", error.message);
    return run === undefined ? [] : planExtraction(state, { turn: n, ...run, result, lost: true }, input);
  }
  const fail = failTurn(turn, error, input);
  if (facts === undefined) return [fail];
  return [{ type: "RECORD_ATTEMPT", turn: n, facts, category: "unknown", isLast: true }, fail];
}
