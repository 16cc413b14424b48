/**
 * Planning of deferred operations: the tool of the call has ended, and the result comes later by a handle. Pure.
 *
 * DEFER-1  A deferred operation stays open until its result or its expiry, and its turn waits for it. It calls for no effect and survives a
 *          crash.
 * DEFER-2  Only the attempt that the state calls for can defer its operation. An operation keeps an earlier result, because the handle may
 *          be used before the tool ends.
 * DEFER-3  The first result is kept. An identical result is a no-op with the same answer. A different result is a `CONFLICT`, also after
 *          the operation expired or was stopped.
 * DEFER-4  An operation without a result at its expiry fails with `TIMEOUT`. The outcome of a `once` tool is then unknown.
 * DEFER-5  If the next model call waits only for deferred results, the turn has the phase `waiting`. A stop of the answers in progress does
 *          not stop it or background work. It calls the model as soon as the last result arrives.
 */
import type { ToolResult } from "../../../../protocol/executor-api.ts";
import { MAX_DEFER_MS } from "../../../../protocol/operation-handle.ts";
import type { ToolOutcome } from "../../../../protocol/requests.ts";
import { conflict } from "../../../../shared/errors.ts";
import type { AgentDecision, PlanInput } from "../decisions.ts";
import { awaitsApproval, type Operation } from "../operation.ts";
import type { ToolDeferred } from "../signals.ts";
import type { ConversationState } from "../state.ts";
import { blockingOperations, openOperations } from "../turn-operations.ts";
import { announceWait, hasResult, refused } from "./results.ts";
import { failure } from "./tool-call.ts";

/** Keeps an operation open after its tool ended. */
export function planDeferral(
  { active }: Pick<ConversationState, "active">,
  { turn: n, item, attempt, expiresAt }: ToolDeferred,
  { now }: Pick<PlanInput, "now">,
): AgentDecision[] {
  const turn = active.get(n);
  const operation = turn && openOperations(turn).find((candidate) => candidate.item === item);
  if (
    turn === undefined ||
    operation === undefined ||
    operation.attempt !== attempt ||
    !isDeferrable(operation)
  )
    return [];
  if (operation.status === "deferred" || awaitsApproval(operation)) return [];
  const blocking = blockingOperations(turn);
  const left = blocking.map((candidate) =>
    candidate.item === item ? { ...candidate, status: "deferred" as const } : candidate,
  );
  return [
    { type: "DEFER_TASK", turn: n, item, deadline: Math.min(expiresAt, now + MAX_DEFER_MS) },
    ...announceWait(n, blocking, left),
  ];
}

/** Reports whether an operation's result may come by a handle. A `pure` call may run before it is committed, and repeat. */
export function isDeferrable({ target, effect }: Pick<Operation, "target" | "effect">): boolean {
  return target === "code" && effect !== "pure";
}

/** Reports whether an operation has this result. Throws `CONFLICT` if it has another result, or has no handle. */
export function hasOutcome(operation: Operation, outcome: ToolOutcome): boolean {
  if (!isDeferrable(operation)) throw refused("Its tool cannot defer it.");
  if (awaitsApproval(operation)) throw refused("Its call waits for approval. Approve it first.");
  return hasResult(
    operation,
    outcome,
    operation.status === "cancelled" ? "The operation was stopped." : undefined,
  );
}

/** Throws `CONFLICT` for a handle that has expired. */
export function checkExpiry({ expiresAt }: { expiresAt: number }, now: number): void {
  if (expiresAt <= now) throw conflict("The result was not accepted: its handle has expired.");
}

export function expiredDeferral({ toolCallId, name, effect }: Operation): ToolResult {
  const message =
    effect === "once"
      ? `Outcome unknown: no result of "${name}" arrived in time, and it may have taken effect.`
      : `No result of "${name}" arrived in time.`;
  return failure(toolCallId, "TIMEOUT", message, effect !== "once");
}
