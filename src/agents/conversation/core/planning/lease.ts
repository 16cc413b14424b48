/**
 * Planning with the lease of an agent's budget. A call that exceeds the lease waits for the agent's answer, or fails. Pure.
 *
 * LEASE-8  A call that waits for its agent's answer is not an effect. Its provider gets no request, and a crash has no charge. If the
 *          agent's budget is used up, the call's turn fails with `BUDGET_EXCEEDED`. If the agent cannot be reached, it fails with
 *          `UNAVAILABLE`.
 * LEASE-9  A conversation of an agent without a budget does not request or store a lease.
 */
import { type Amounts, addAmounts } from "../../../../model/spending.ts";
import type { AgentDecision } from "../decisions.ts";
import { runningExtractions } from "../hooks.ts";
import { answered, ask, holds, type LeaseRefusal, type LeaseState, returned } from "../lease.ts";
import { sideCalls } from "../side-calls.ts";
import type { BudgetLeased } from "../signals.ts";
import { type ConversationState, leaseOf } from "../state.ts";
import { openOperations } from "../turn-operations.ts";
import { callsModel } from "../waits.ts";

/** The place of a call in a lease. */
export type LeasePlace =
  /** The lease holds it. `next` is the lease after asking ahead. */
  | { type: "held"; next?: LeaseState }
  /** The call waits. `next` is the lease after asking. */
  | { type: "waits"; next?: LeaseState }
  | { type: "refused"; refusal: LeaseRefusal };

/** Returns the place of a call, in addition to the `reserved` amounts. `isWaiting`: the call has waited for an answer. */
export function placeOf(lease: LeaseState, reserved: Amounts, call: Amounts, isWaiting: boolean): LeasePlace {
  const { asked, refusal } = lease;
  if (holds(lease, reserved, call)) {
    const isShort = asked === undefined && !holds(lease, reserved, addAmounts(call, call));
    return isShort
      ? { type: "held", next: ask(lease, addAmounts(reserved, call), call, { ahead: true }) }
      : { type: "held" };
  }
  if (asked !== undefined) return { type: "waits" };
  if (isWaiting && refusal !== undefined) return { type: "refused", refusal };
  return { type: "waits", next: ask(lease, reserved, call) };
}

/** Plans after the agent's answer, or the failure to reach it. */
export function planLeased(
  state: ConversationState,
  { agentId, seq, answer }: BudgetLeased,
): AgentDecision[] {
  const lease = leaseOf(state, agentId);
  if (lease === undefined) return [];
  const given = "excess" in answer && answer.excess !== undefined ? { excess: answer.excess } : undefined;
  const next = answered(lease, seq, given ?? ("granted" in answer ? { granted: answer.granted } : answer));
  return next === lease ? [] : [{ type: "LEASED", agentId, lease: next }];
}

/** Returns the rests of the leases that no call needs. Call it after every change. */
export function planReturns(state: ConversationState): AgentDecision[] {
  return Object.entries(state.leases ?? {}).flatMap(([agentId, lease]): AgentDecision[] => {
    const next = returned(lease);
    return next === lease || callsModels(state, agentId) ? [] : [{ type: "SET_LEASE", agentId, lease: next }];
  });
}

/** Reports whether an agent calls models here, or is about to. */
function callsModels(state: ConversationState, agentId: string): boolean {
  const turns = [...state.active.values()].filter((turn) => turn.agentId === agentId);
  const runs = turns.flatMap((turn) => [...openOperations(turn), turn.assembly]);
  const extractions = runningExtractions(state).filter(([, run]) => run.agentId === agentId);
  const tasks = [...runs, ...extractions.map(([, run]) => run)];
  if (turns.some(callsModel) || tasks.some((run) => run?.reserved ?? run?.reserving)) return true;
  return sideCalls(state).some(({ session }) => session === agentId);
}
