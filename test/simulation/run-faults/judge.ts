/** Properties of runs under any failures: no limit is missed, no attempt counts twice, and no answer is late. */
import type { RunState } from "../../../src/agents/coordinator/core/state.ts";
import type { PinnedWorkflow } from "../../../src/protocol/pinned-workflow.ts";
import type { RunEntry } from "../../../src/protocol/workflow-run.ts";
import { isJsonObject } from "../../../src/shared/json.ts";

/** Returns the limits of a run, with their times, as the definition has them. */
export function limitsOf({ record, time, fanOuts, tokens }: RunState): [what: string, at: number][] {
  const { timeoutMs, transitions } = record.workflow.definition;
  const limits: [string, number][] = [];
  if (timeoutMs !== undefined && time?.isAsked !== true)
    limits.push(["The time of the run", (time?.since ?? record.createdAt) + timeoutMs]);
  for (const { group, firstArrivalAt } of fanOuts.values()) {
    const joins = transitions.find(({ synchronization }) => synchronization?.siblingGroup === group);
    const limit = joins?.synchronization?.timeoutMs;
    if (limit !== undefined && firstArrivalAt !== undefined)
      limits.push(["The time of a fan-in", firstArrivalAt + limit]);
  }
  for (const { phase } of tokens.values()) {
    if (phase.kind !== "working") continue;
    if (phase.deadline !== undefined) limits.push(["The time of a gate", phase.deadline]);
    if (phase.lostUntil !== undefined) limits.push(["The time of a lost result", phase.lostUntil]);
  }
  return limits;
}

/** Returns the attempts that were counted twice. */
export function retriesOf(entries: readonly RunEntry[]): string[] {
  const seen = new Map<number, number>();
  return entries.flatMap(({ type, token = -1, data }) => {
    if (type !== "task.retried" || !isJsonObject(data)) return [];
    const expected = (seen.get(token) ?? 0) + 1;
    seen.set(token, expected);
    return data.attempt === expected ? [] : [`Token ${token} repeats attempt ${data.attempt}.`];
  });
}

/** Returns the answers that were taken when the time of their gate was over. */
export function lateAnswers(
  entries: readonly RunEntry[],
  times: readonly number[],
  { tasks }: PinnedWorkflow,
): string[] {
  const opened = new Map<number, number>();
  return entries.flatMap(({ type, token, node = "" }, index) => {
    if (token === undefined) return [];
    const at = times[index] ?? 0;
    if (type === "gate.opened") opened.set(token, at);
    const [step] = tasks[node]?.task?.steps ?? [];
    const limit = step !== undefined && "timeoutMs" in step.action ? step.action.timeoutMs : undefined;
    const isLate = type === "gate.answered" && limit !== undefined && at >= (opened.get(token) ?? 0) + limit;
    return isLate ? [`The answer to token ${token} came too late.`] : [];
  });
}
