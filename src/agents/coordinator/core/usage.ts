/**
 * The use of models by a run. Pure.
 *
 * RUNUSE-1  The use of a run is the sum of the reports of its tasks, sub-workflows and agents. Each attempt counts once, including failed
 *           attempts. A report of a task counts only for its current attempt. A report of a sub-workflow or an agent always counts.
 * RUNUSE-2  A report counts in its own commit, even if this commit ends the run. Ignored are reports after the end of the run, reports of
 *           cancelled tasks, and reports of lost tasks that have failed (RUNSIGNAL-3).
 */
import { type Amounts, addAmounts, NOTHING } from "../../../model/spending.ts";
import { amountsOfModels } from "../../../protocol/task-summary.ts";
import type { NodeEnded, RunSignal } from "./signals.ts";
import type { RunState } from "./state.ts";

/** Returns the use that simultaneous signals report (RUNUSE-1). */
export function reportedBy({ tokens }: Pick<RunState, "tokens">, signals: readonly RunSignal[]): Amounts {
  const ended = new Set<number>();
  let sum = NOTHING;
  for (const signal of signals) {
    if (signal.type === "run.used") sum = addAmounts(sum, signal.spent);
    if (signal.type !== "node.ended" || signal.task?.models === undefined) continue;
    if (ended.has(signal.token) || !isExpected(tokens, signal)) continue;
    ended.add(signal.token);
    sum = addAmounts(sum, amountsOfModels(signal.task.models));
  }
  return sum;
}

function isExpected(tokens: RunState["tokens"], { token, attempt }: NodeEnded): boolean {
  const phase = tokens.get(token)?.phase;
  return phase?.kind === "working" && phase.attempt === attempt;
}

/** Returns the signal for the use of a sub-workflow or an agent; an empty list for zero use. */
export function usedSignals(spent: Amounts | undefined): RunSignal[] {
  return spent === undefined || isNothing(spent) ? [] : [{ type: "run.used", spent }];
}

export function isNothing({ tokens, nanoDollars, toolCalls, modelCalls }: Amounts): boolean {
  return tokens + nanoDollars + toolCalls + modelCalls === 0;
}
