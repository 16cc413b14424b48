/**
 * The use of models by a run. Pure.
 *
 * RUNUSE-1  A run has used what its tasks, its sub-workflows and its agents have reported: each attempt once, failed ones included. The report of
 *           a task for an attempt that works no more adds nothing. That of a sub-workflow or an agent counts however its token has ended.
 * RUNUSE-2  A report counts in the commit that it arrives with, even if it arrives with the end of the run. What nobody reports before that end
 *           does not count: of a task that was cancelled or lost while it ran, and of what the end of the run stops.
 */
import { type Amounts, addAmounts, NOTHING } from "../../../model/spending.ts";
import { amountsOfModels } from "../../../protocol/task-summary.ts";
import type { NodeEnded, RunSignal } from "./signals.ts";
import type { RunState } from "./state.ts";

/** Returns what signals that arrive together report (RUNUSE-1). */
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

/** Returns the signal of what a sub-workflow or an agent has used; none where that is nothing. */
export function usedSignals(spent: Amounts | undefined): RunSignal[] {
  return spent === undefined || isNothing(spent) ? [] : [{ type: "run.used", spent }];
}

/** Reports whether nothing was used. */
export function isNothing({ tokens, nanoDollars, toolCalls, modelCalls }: Amounts): boolean {
  return tokens + nanoDollars + toolCalls + modelCalls === 0;
}
