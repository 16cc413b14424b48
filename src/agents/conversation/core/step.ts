/** One step of a conversation: what signals change. Pure. */
import type { PlanInput } from "./decisions.ts";
import { planCycle } from "./planning/background.ts";
import { planCompactions } from "./planning/compaction.ts";
import { planQueue } from "./planning/order.ts";
import { plan } from "./planning/plan.ts";
import { reduce } from "./reducer.ts";
import type { Signal } from "./signals.ts";
import type { Transition } from "./transition.ts";

/**
 * Applies a signal, begins the queued turns that need not wait any longer, and starts the compactions that are due. Throws
 * as `plan` does.
 */
export function step(transition: Transition, signal: Signal, input: PlanInput): Transition {
  let changed = reduce(transition, plan(transition.state, signal, input), input.now);
  // Each turn that begins is told of those that have begun before it.
  for (let begins = planQueue(changed.state); begins.length > 0; begins = planQueue(changed.state)) {
    changed = reduce(changed, begins, input.now);
  }
  return reduce(changed, planCompactions(transition, changed, input), input.now);
}

/** Begins the cycles that are due after all signals of a commit: results that arrive together are in one cycle. */
export function beginCycles(transition: Transition, { now }: Pick<PlanInput, "now">): Transition {
  let changed = transition;
  for (let begins = planCycle(changed.state); begins.length > 0; begins = planCycle(changed.state)) {
    changed = reduce(changed, begins, now);
  }
  return changed;
}
