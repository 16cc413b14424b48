/**
 * Sending calls of other agents on their way, each with its part of the caller's budget. Pure.
 *
 * INHERIT-1  A call gets a part of what the limits of its caller's turn, conversation and persona have left, beside what running model
 *            calls have reserved: an equal one for each call that begins with it, and one more for the caller itself. It is reserved until
 *            the call ends, so the limits hold for the whole tree of calls.
 */
import { AMOUNT, amountOf, BUDGET_LIMITS, type Budget, inUnits } from "../../../../protocol/budget.ts";
import { defined } from "../../../../shared/defined.ts";
import type { AgentDecision, PlanInput } from "../decisions.ts";
import type { ConversationState } from "../state.ts";
import { openCalls } from "../turn.ts";
import { type Limit, limitsBesideModel } from "./budget.ts";
import { USUAL_LIMITS } from "./call-guards.ts";
import { partOfCall } from "./call-tree.ts";

/** Sends the calls of one turn that may begin; `[]` if there are none. Call it after every change, until it returns none. */
export function planCalls(
  state: ConversationState,
  { now, calls: limits }: Pick<PlanInput, "now" | "calls">,
): AgentDecision[] {
  for (const turn of state.active.values()) {
    const due = openCalls(turn).filter(
      ({ status, notBefore = now }) => status === "pending" && notBefore <= now,
    );
    if (due.length === 0) continue;
    const budget = shareOf(limitsBesideModel(state, turn), due.length + 1);
    const part = { calls: partOfCall(state, limits ?? USUAL_LIMITS, due.length), ...defined({ budget }) };
    return [{ type: "DISPATCH_CALLS", turn: turn.n, calls: due.map(({ item }) => ({ item, ...part })) }];
  }
  return [];
}

/** Returns one of several equal parts of what limits have left; `undefined` where nothing is limited. */
function shareOf(limits: readonly Limit[], parts: number): Budget | undefined {
  const share: Budget = {};
  for (const limit of BUDGET_LIMITS) {
    const left = limits.flatMap(({ budget, used }) => {
      const allowed = budget[limit];
      return allowed === undefined ? [] : [amountOf(allowed, limit) - used[AMOUNT[limit]]];
    });
    if (left.length > 0) share[limit] = inUnits(Math.floor(Math.max(0, Math.min(...left)) / parts), limit);
  }
  return Object.keys(share).length === 0 ? undefined : share;
}
