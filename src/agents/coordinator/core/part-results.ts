/**
 * The results of the branches of fan-outs, and of the parts of spread fan-outs. Pure.
 *
 * PARTS-4  The failure of the run of a part is the failure of each of its branches.
 * PARTS-5  If an `mOfN` fan-in has enough completed branches, it asks its running parts to end. A fan-in that continues after its timeout
 *          does the same. No part begins during this wait. A part that has not answered after `CLOSE_MS` is cancelled. A fan-in of `any`
 *          waits for no part.
 * PARTS-7  After these parts have ended, their results decide `mOfN`, and their earlier progress reports do not count. The fan-in merges
 *          only as many branches as it needs. If too few branches have completed, further parts begin. If too few branches remain, the
 *          fan-in fails.
 * PARTS-6  The merged results of all parts are together no longer than a merge may be. Beyond that the fan-in fails with `TOO_LARGE`.
 */
import type { PartResult } from "../../../protocol/run-call.ts";
import type { SynchronizationStrategy } from "../../../protocol/workflow-definition.ts";
import type { RunError } from "../../../protocol/workflow-run.ts";
import type { Json } from "../../../shared/json.ts";
import type { Draft } from "./draft.ts";
import { MAX_MERGED_LENGTH } from "./run-limits.ts";
import type { PartEnded } from "./signals.ts";
import { type Branch, type FanOut, placeOf, resolved } from "./state.ts";
import type { BranchOutput } from "./values.ts";

/** The branches of a spread fan-out so far, over all parts. */
export interface Tally {
  readonly total: number;
  readonly completed: number;
  readonly failed: number;
  /** Branches that may still complete or fail. The end of a part cancels its unfinished branches, which then do not count. */
  readonly open: number;
}

/** Stores the result of a part in place of its start. The next step of its token ends it. */
export function takePart(draft: Draft, { token: id, attempt, result, tainted }: PartEnded): void {
  const token = draft.working(id, attempt);
  if (token?.part !== true || token.scope === null) return;
  const { scope, phase } = token;
  draft.recoveries = 0;
  draft.tainted ??= tainted;
  const [completed, failed] = [result.completed.length, result.failed.length];
  const length = JSON.stringify(result).length;
  // SAFETY: the result is plain data.
  const output = result as unknown as Json;
  draft.setBranch(scope.fanOut, scope.branch, { output, tally: { completed, failed, length } });
  dropUnmerged(draft, scope.fanOut);
  noteArrival(draft, scope.fanOut, result.firstArrivalAt);
  draft.change(id, { phase: resolved(phase, { output: null }) });
  draft.noteOf(token, "task.completed", { attempt, output: { completed, failed } });
}

/** Drops the results of branches that `mOfN` does not merge, which have higher indexes than the merged branches. Their order is final. */
function dropUnmerged(draft: Draft, id: number): void {
  const { branches, origin, group } = draft.fanOut(id);
  const { strategy } = draft.graph.meeting(origin, group)?.synchronization ?? {};
  if (typeof strategy !== "object") return;
  let left = strategy.mOfN;
  for (const [part, branch] of branches.entries()) {
    const { tally } = branch;
    if (tally?.length === undefined) continue;
    const result = resultOf(branch);
    const { completed, outputs } = result;
    if (completed.length > left) {
      const merged = { ...result, completed: completed.slice(0, left), outputs: outputs.slice(0, left) };
      const { length } = JSON.stringify(merged);
      // SAFETY: the result is plain data.
      draft.setBranch(id, part, { output: merged as unknown as Json, tally: { ...tally, length } });
    }
    left -= Math.min(left, completed.length);
  }
}

/** Cancels the running parts of a fan-out. Their branches do not count as completed or failed. */
export function cancelParts(draft: Draft, id: number): void {
  const parts = [...draft.tokens.values()].filter(({ scope, part }) => part === true && scope?.fanOut === id);
  for (const token of parts) {
    const { scope } = token;
    if (scope === null) continue;
    // SAFETY: the result is plain data.
    const output = NOTHING as unknown as Json;
    draft.setBranch(id, scope.branch, { output, tally: { completed: 0, failed: 0, length: 0 } });
    draft.end(token);
    draft.noteOf(token, "token.cancelled");
  }
}

export function noteArrival(draft: Draft, fanOut: number, at: number | undefined): void {
  if (at === undefined) return;
  const { firstArrivalAt = draft.now } = draft.fanOut(fanOut);
  draft.changeFanOut(fanOut, { firstArrivalAt: Math.min(firstArrivalAt, at) });
}

/** Returns the branches of a fan-out so far. */
export function tallyOf({ branches, finished, failed, spread }: FanOut): Tally {
  if (spread === undefined) {
    const total = branches.length;
    return { total, completed: finished - failed, failed, open: total - finished };
  }
  const tally = { total: spread.total, completed: 0, failed: 0, open: 0 };
  for (const [part, { failure, tally: own }] of branches.entries()) {
    const { size } = placeOf(spread, part);
    if (failure !== undefined) {
      tally.failed += size;
      continue;
    }
    const { completed, failed: lost, length } = own ?? { completed: 0, failed: 0 };
    tally.completed += completed;
    tally.failed += lost;
    if (length === undefined) tally.open += size - completed - lost;
  }
  return tally;
}

export function runsParts({ spread, branches }: FanOut): boolean {
  return spread !== undefined && branches.some(({ active }) => active > 0);
}

/** Returns the error of results that are longer than a merge may be; otherwise `undefined`. */
export function excessOf({ branches, spread, group }: FanOut): RunError | undefined {
  if (spread === undefined) return undefined;
  const length = branches.reduce((sum, { tally }) => sum + (tally?.length ?? 0), 0);
  if (length <= MAX_MERGED_LENGTH) return undefined;
  return {
    code: "TOO_LARGE",
    message: `The branches of "${group}" have more than ${length} characters as JSON. The maximum is ${MAX_MERGED_LENGTH}: let its branches return references.`,
  };
}

/** Returns the completed branches of a spread fan-out for its merge, by index. For `mOfN` it returns only as many as needed. */
export function completedOf({ branches }: FanOut, strategy: SynchronizationStrategy): BranchOutput[] {
  const all = branches.flatMap((part) => {
    const { completed, outputs } = resultOf(part);
    return completed.map((index, at) => ({ index, output: outputs[at] ?? null }));
  });
  return typeof strategy === "object" ? all.slice(0, strategy.mOfN) : all;
}

export function failedOf({ branches, spread }: FanOut): [index: number, error: RunError][] {
  return branches.flatMap((branch, index): [number, RunError][] => {
    const { failure } = branch;
    if (spread === undefined) return failure === undefined ? [] : [[index, failure]];
    if (failure === undefined) return resultOf(branch).failed;
    const { first, size } = placeOf(spread, index);
    return Array.from({ length: size }, (_, at) => [first + at, failure]);
  });
}

const NOTHING: PartResult = { completed: [], outputs: [], failed: [] };

function resultOf({ output, tally }: Branch): PartResult {
  // SAFETY: `takePart` writes the length together with the result.
  return tally?.length === undefined ? NOTHING : (output as unknown as PartResult);
}
