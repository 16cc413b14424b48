/**
 * The part of a fan-out of the parent run, in the run that works on it. Pure.
 *
 * RUNPART-1  A run with a part begins with its branches. It completes when they have finished or decide the fan-in alone. These are
 *            deciding events: the first arrival of `any`, enough completed branches for `mOfN`, more failures than `maxFailures`.
 * RUNPART-2  Its result has each branch that completed or failed. For completed branches it has only the values that the fan-in merges.
 * RUNPART-3  The parent run enforces the timeouts of the fan-in and of the workflow.
 */
import type { PartResult, PartStart } from "../../../protocol/run-call.ts";
import { defined } from "../../../shared/defined.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { cut } from "../../../shared/text.ts";
import type { Draft } from "./draft.ts";
import { createBranches, firingOf } from "./fan-out.ts";
import { MAX_BRANCH_MESSAGE, MAX_PART_RESULT_LENGTH } from "./run-limits.ts";
import type { Branch, FanOut, Meeting } from "./state.ts";
import { valueAt } from "./values.ts";

export function beginPart(
  draft: Draft,
  { group, origin, path, counts, first, total, branches }: PartStart,
): void {
  const firing = firingOf(draft, branches);
  const size = firing.reduce((sum, { items }) => sum + items.length, 0);
  const id = draft.open({ group, origin, outer: null, path, counts, part: { first, total } }, size);
  draft.note({ type: "fan_out.started", node: origin, data: { fanOut: id, group, total: size, first } });
  createBranches(draft, id, counts, firing);
}

export function isDecided(
  { branches, finished, failed, firstArrivalAt }: FanOut,
  meeting: Meeting | null,
): boolean {
  if (finished === branches.length) return true;
  if (meeting === null) return false;
  const { strategy, maxFailures = Number.POSITIVE_INFINITY } = meeting.synchronization;
  if (failed > maxFailures || (strategy === "any" && firstArrivalAt !== undefined)) return true;
  return typeof strategy === "object" && finished - failed >= strategy.mOfN;
}

/** Reports whether a branch counts as completed when its fan-in fires. */
export function hasCompleted({ active, failure, arrived }: Branch, isAny: boolean): boolean {
  return failure === undefined && (active === 0 || (isAny && arrived.length > 0));
}

/** Sets the result of a part from the current branches. A result that is too long fails the run. */
export function keepResult(draft: Draft, fanOut: FanOut, meeting: Meeting | null): void {
  const result = resultOf(fanOut, meeting);
  const { length } = JSON.stringify(result);
  if (length > MAX_PART_RESULT_LENGTH)
    draft.error ??= {
      code: "TOO_LARGE",
      message: `The outputs of ${fanOut.branches.length} branches have ${length} characters as JSON. The maximum is ${MAX_PART_RESULT_LENGTH}: let them return references.`,
    };
  // SAFETY: the result is plain data.
  else draft.output = result as unknown as JsonObject;
}

function resultOf({ branches, part, firstArrivalAt }: FanOut, meeting: Meeting | null): PartResult {
  const { strategy, merge } = meeting?.synchronization ?? {};
  const [, , ...names] = merge?.source.split(".") ?? [];
  const first = part?.first ?? 0;
  const completed = branches.flatMap((branch, index) =>
    hasCompleted(branch, strategy === "any") ? [{ index: first + index, output: branch.output }] : [],
  );
  return {
    completed: completed.map(({ index }) => index),
    outputs: merge === undefined ? [] : completed.map(({ output }) => valueAt(output, names)),
    failed: branches.flatMap(({ failure }, index): PartResult["failed"] => {
      if (failure === undefined) return [];
      const { code, message } = failure;
      return [[first + index, { code, message: cut(message, MAX_BRANCH_MESSAGE) }]];
    }),
    ...defined({ firstArrivalAt }),
  };
}

/** Returns the progress that the parent run needs before the end of a part; `undefined` if it is unchanged. */
export function progressOf(
  before: FanOut | undefined,
  now: FanOut | undefined,
  meeting: Meeting | null,
): { completed: number; failed: number; firstArrivalAt?: number } | undefined {
  if (now === undefined || meeting === null) return undefined;
  const { strategy, maxFailures, timeoutMs } = meeting.synchronization;
  // A fan-out without tokens yet counts all of its branches as finished.
  const [finished, failed] = before === undefined ? [0, 0] : [before.finished, before.failed];
  const isCounted =
    (typeof strategy === "object" && now.finished !== finished) ||
    (maxFailures !== undefined && now.failed !== failed);
  const hasArrived = now.firstArrivalAt !== before?.firstArrivalAt && timeoutMs !== undefined;
  if (!hasArrived && !isCounted) return undefined;
  return {
    completed: now.finished - now.failed,
    failed: now.failed,
    ...defined({ firstArrivalAt: now.firstArrivalAt }),
  };
}
