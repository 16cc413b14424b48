/** One step of a conversation: what signals change. Pure. */
import type { AgentDecision, PlanInput } from "./decisions.ts";
import { endExchanges } from "./exchange.ts";
import { planCallEnd } from "./planning/agent-call.ts";
import { planCycle } from "./planning/background.ts";
import { planReservation } from "./planning/budget.ts";
import { planCompactions } from "./planning/compaction.ts";
import { planCalls } from "./planning/dispatch-calls.ts";
import { planReturns } from "./planning/lease.ts";
import { planQueue } from "./planning/order.ts";
import { plan } from "./planning/plan.ts";
import { planTaskReservation } from "./planning/task-budget.ts";
import { planTitling } from "./planning/titling.ts";
import { reduce } from "./reducer.ts";
import type { Signal } from "./signals.ts";
import type { Transition } from "./transition.ts";

/**
 * Applies a signal, reserves for the calls that it leads to, begins the queued turns that need not wait any longer, and
 * starts the side calls that are due. Throws
 * as `plan` does.
 */
export function step(transition: Transition, signal: Signal, input: PlanInput): Transition {
  let changed = reduce(transition, plan(transition.state, signal, input), input.now);
  // Each turn that begins sees the turns that began before it.
  for (let next = follow(changed, input); next.length > 0; next = follow(changed, input)) {
    changed = reduce(changed, next, input.now);
  }
  changed = endExchanges(changed);
  const due = [...planCompactions(transition, changed, input), ...planTitling(transition, changed, input)];
  changed = reduce(changed, due, input.now);
  return reserved(changed, input);
}

/** Ends the conversation of a finished call, and returns the rest of leases (LEASE-7), after all signals of a commit. */
export function settle(transition: Transition, input: PlanInput): Transition {
  const ended = reduce(transition, planCallEnd(transition.state, input), input.now);
  return reduce(ended, planReturns(ended.state), input.now);
}

/** Reserves for the calls that have no reservation, or ends their turns. */
function reserved(transition: Transition, input: PlanInput): Transition {
  let changed = transition;
  for (let next = reservation(changed, input); next.length > 0; ) {
    changed = reduce(changed, next, input.now);
    next = reservation(changed, input);
  }
  return changed;
}

function follow(transition: Transition, input: PlanInput): AgentDecision[] {
  const { state } = transition;
  const reserve = reservation(transition, input);
  if (reserve.length > 0) return reserve;
  const calls = planCalls(transition, input);
  if (calls.length > 0) return calls;
  return planQueue(state, withEnded(transition, input));
}

function reservation(transition: Transition, input: PlanInput): AgentDecision[] {
  const ended = withEnded(transition, input);
  const calls = planReservation(transition.state, ended);
  return calls.length > 0 ? calls : planTaskReservation(transition.state, ended);
}

/** Adds the turns that the transition has ended. */
function withEnded({ touched }: Transition, input: PlanInput): PlanInput {
  const ended = [...touched.values()].filter(({ status }) => status !== "active");
  return ended.length === 0 ? input : { ...input, ended };
}

/** Begins the cycles that are due after all signals of a commit: results that arrive together are in one cycle. */
export function beginCycles(transition: Transition, input: PlanInput): Transition {
  let changed = transition;
  for (
    let begins = planCycle(changed.state, input);
    begins.length > 0;
    begins = planCycle(changed.state, input)
  ) {
    changed = reduce(changed, begins, input.now);
    for (let next = follow(changed, input); next.length > 0; next = follow(changed, input)) {
      changed = reduce(changed, next, input.now);
    }
  }
  return changed;
}
