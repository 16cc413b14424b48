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
  const planned = reduce(transition, plan(transition.state, signal, input), input.now);
  const changed = endExchanges(repeated(planned, input, follow));
  const due = [...planCompactions(transition, changed, input), ...planTitling(transition, changed, input)];
  // Reserves for the calls that have no reservation, or ends their turns.
  return repeated(reduce(changed, due, input.now), input, reservation);
}

/** Ends the conversation of a finished call, and returns the rest of leases (LEASE-7), after all signals of a commit. */
export function settle(transition: Transition, input: PlanInput): Transition {
  const ended = reduce(transition, planCallEnd(transition.state, input), input.now);
  return reduce(ended, planReturns(ended.state), input.now);
}

/** Makes the decisions of `next` until it returns an empty list. Each turn that begins sees the turns that began before it. */
function repeated(
  transition: Transition,
  input: PlanInput,
  next: (changed: Transition, input: PlanInput) => AgentDecision[],
): Transition {
  let changed = transition;
  for (let made = next(changed, input); made.length > 0; made = next(changed, input))
    changed = reduce(changed, made, input.now);
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
    changed = repeated(reduce(changed, begins, input.now), input, follow);
  }
  return changed;
}
