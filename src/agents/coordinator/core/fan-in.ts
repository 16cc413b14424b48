/**
 * Fan-ins: which branches decide them, and the token behind them. Pure.
 *
 * FANIN-1  The fan-in of a fan-out fires once: when the first branch arrives (`any`), enough branches completed (`mOfN`), or all have
 *          finished (`all`). A branch has finished when all its tokens have arrived or ended. Each finished branch triggers a check of the
 *          fan-in.
 * FANIN-2  An empty fan-out fires its fan-in at once, with an empty merge.
 * FANIN-3  A fan-in that can no longer fire fails with `SYNC_UNSATISFIABLE`. It also fails if more than `maxFailures` branches fail. If all
 *          branches have ended without success, `all` and `any` fail too. With `onTimeout: "proceed_with_available"` they fire instead.
 * FANIN-4  A failure counts for the innermost branch with a fan-in that waits for it. The other tokens of the branch are cancelled. Outside
 *          such branches the failure ends the run.
 * FANIN-5  When a fan-in fires, the work of its other branches is cancelled. A token continues after it, in the scope around the fan-out.
 * FANIN-6  `timeoutMs` counts from the first arrival. When it expires, the fan-in fails with `SYNC_TIMEOUT`, or continues with the
 *          completed branches. Earlier failures do not stop it. In a spread fan-out the running parts have `CLOSE_MS` more to report
 *          (PARTS-5).
 */
import type { RunError } from "../../../protocol/workflow-run.ts";
import { defined } from "../../../shared/defined.ts";
import type { Json } from "../../../shared/json.ts";
import { Meter } from "../../../shared/json-schema/meter.ts";
import type { Draft } from "./draft.ts";
import { failureOf, invalid, TokenFailure } from "./evaluation.ts";
import {
  cancelParts,
  completedOf,
  excessOf,
  failedOf,
  noteArrival,
  runsParts,
  tallyOf,
} from "./part-results.ts";
import { hasCompleted, isDecided, keepResult } from "./part-run.ts";
import { CLOSE_MS, MAX_MERGED_LENGTH, MAX_TOKEN_STEPS, STEPS_OF_BRANCH } from "./run-limits.ts";
import type { PartProgress } from "./signals.ts";
import type { FanOut, Meeting, ScopeKey } from "./state.ts";
import { merged, written } from "./values.ts";

/** Fires the fan-in of a fan-out, or fails it, if its branches decide it. */
export function consider(draft: Draft, id: number): void {
  const fanOut = draft.fanOuts.get(id);
  if (fanOut === undefined) return;
  const meeting = draft.graph.meeting(fanOut.origin, fanOut.group);
  if (fanOut.part !== undefined) {
    if (isDecided(fanOut, meeting)) endPartRun(draft, fanOut, meeting);
    return;
  }
  const verdict = meeting === null ? unjoined(fanOut) : verdictOf(fanOut, meeting);
  if (verdict === "close") closeFanOut(draft, fanOut);
  else if (verdict === "fire" && meeting !== null) fireWhole(draft, fanOut, meeting, false);
  else if (typeof verdict === "object") giveUp(draft, fanOut, verdict);
  else reopen(draft, fanOut);
}

function unjoined(fanOut: FanOut): "close" | "wait" {
  return tallyOf(fanOut).open === 0 ? "close" : "wait";
}

/** Returns the decision about a fan-in. */
function verdictOf(fanOut: FanOut, { synchronization }: Meeting): "fire" | "wait" | RunError {
  const { firstArrivalAt } = fanOut;
  const { strategy, maxFailures = Number.POSITIVE_INFINITY, onTimeout } = synchronization;
  const { total, completed, failed, open } = tallyOf(fanOut);
  const excess = excessOf(fanOut);
  if (excess !== undefined) return excess;
  const { closing } = fanOut.spread ?? {};
  const waitsForParts = runsParts(fanOut);
  if (closing !== undefined && waitsForParts) return "wait";
  if (closing?.isTimeout === true) return "fire";
  if (failed > maxFailures)
    return unsatisfiable(
      fanOut,
      `${failed} of ${total} branches failed, but at most ${maxFailures} may fail.`,
    );
  if (total === 0 || (strategy === "any" && firstArrivalAt !== undefined)) return "fire";
  if (typeof strategy === "object") {
    if (completed >= strategy.mOfN) return "fire";
    const possible = completed + open;
    return possible < strategy.mOfN
      ? unsatisfiable(
          fanOut,
          `${strategy.mOfN} of ${total} branches must complete, but only ${possible} can complete.`,
        )
      : "wait";
  }
  // Progress reports of parts have no outputs. The outputs arrive when parts end.
  if (open > 0 || waitsForParts) return "wait";
  return completed > 0 || onTimeout === "proceed_with_available"
    ? "fire"
    : unsatisfiable(fanOut, "No branch completed.");
}

/** Returns the failure of a fan-in, with the first failure of its branches as the cause to fix. */
function unsatisfiable(fanOut: FanOut, problem: string): RunError {
  const [index, failure] = failedOf(fanOut)[0] ?? [];
  const first = failure && ` The first failure is from branch ${index}: ${failure.code}: ${failure.message}`;
  const message = `${problem.slice(0, -1)} at the fan-in of "${fanOut.group}".${first ?? ""}`;
  return { code: "SYNC_UNSATISFIABLE", message };
}

/** Ends a fan-in at its timeout, or at the time limit for parts that do not answer. */
export function timeOut(draft: Draft, id: number): void {
  const fanOut = draft.fanOut(id);
  if (fanOut.spread?.closing !== undefined) {
    cancelParts(draft, id);
    consider(draft, id);
    return;
  }
  const meeting = draft.graph.meeting(fanOut.origin, fanOut.group);
  if (meeting === null) return;
  draft.note({ type: "sync.timeout", node: meeting.target, data: { fanOut: id, group: fanOut.group } });
  if (meeting.synchronization.onTimeout === "proceed_with_available") fireWhole(draft, fanOut, meeting, true);
  else
    giveUp(draft, fanOut, {
      code: "SYNC_TIMEOUT",
      message: `The fan-in of "${fanOut.group}" at "${meeting.target}" waited for ${meeting.synchronization.timeoutMs} ms.`,
    });
}

/** Returns when a fan-in times out, in milliseconds since the epoch; `null` without a timeout. */
export function timeOutAt({ firstArrivalAt, spread, part }: FanOut, meeting: Meeting | null): number | null {
  if (spread?.closing !== undefined) return spread.closing.since + CLOSE_MS;
  const { timeoutMs } = meeting?.synchronization ?? {};
  if (firstArrivalAt === undefined || timeoutMs === undefined) return null;
  // The parent run enforces the timeout of its parts.
  return part === undefined ? firstArrivalAt + timeoutMs : null;
}

/** Fires a fan-in. Running parts are first asked to end with their completed branches (PARTS-5). */
function fireWhole(draft: Draft, fanOut: FanOut, meeting: Meeting, isTimeout: boolean): void {
  const { id, spread } = fanOut;
  if (spread === undefined || meeting.synchronization.strategy === "any" || !runsParts(fanOut)) {
    fire(draft, fanOut, meeting);
    return;
  }
  draft.changeFanOut(id, { spread: { ...spread, closing: { since: draft.now, isTimeout } } });
}

/** Lets new parts begin if the closed parts did not complete enough branches (PARTS-7). */
function reopen(draft: Draft, fanOut: FanOut): void {
  if (fanOut.spread?.closing === undefined || runsParts(fanOut)) return;
  const { closing: _, ...spread } = fanOut.spread;
  draft.changeFanOut(fanOut.id, { spread });
}

/** Stores the progress of a part, and checks the fan-in. The counts of a part never decrease. */
export function takeProgress(draft: Draft, { token: id, attempt, ...progress }: PartProgress): void {
  const token = draft.working(id, attempt);
  if (token?.part !== true || token.scope === null) return;
  const { fanOut, branch } = token.scope;
  draft.recoveries = 0;
  const { tally = { completed: 0, failed: 0 } } = draft.branch(fanOut, branch);
  const completed = Math.max(tally.completed, progress.completed);
  const failed = Math.max(tally.failed, progress.failed);
  draft.setBranch(fanOut, branch, { tally: { completed, failed } });
  noteArrival(draft, fanOut, progress.firstArrivalAt);
  draft.noteOf(token, "part.progress", { completed, failed });
  consider(draft, fanOut);
}

/** Ends the part of this run with its completed branches. A run that is over stays unchanged. */
export function closePart(draft: Draft): void {
  for (const fanOut of draft.fanOuts.values())
    if (fanOut.part !== undefined)
      endPartRun(draft, fanOut, draft.graph.meeting(fanOut.origin, fanOut.group));
}

function endPartRun(draft: Draft, fanOut: FanOut, meeting: Meeting | null): void {
  keepResult(draft, fanOut, meeting);
  cancelBelow(draft, fanOut.id);
  draft.close(fanOut.id);
}

/** Merges the completed branches, and continues behind the fan-in. */
function fire(draft: Draft, fanOut: FanOut, meeting: Meeting): void {
  const { id, branches, outer, group, counts, spread } = fanOut;
  const { strategy, merge } = meeting.synchronization;
  const { total } = tallyOf(fanOut);
  const completed =
    spread === undefined
      ? branches
          .map((branch, index) => ({ ...branch, index }))
          .filter((branch) => hasCompleted(branch, strategy === "any"))
      : completedOf(fanOut, strategy);
  const failed = failedOf(fanOut).map(([branchIndex, error]) => ({ branchIndex, error: { ...error } }));
  cancelBelow(draft, id);
  draft.note({
    type: "fan_in.completed",
    node: meeting.target,
    data: { fanOut: id, group, total, completed: completed.length },
  });
  if (merge !== undefined) {
    try {
      const meter = new Meter(MAX_TOKEN_STEPS);
      // Results of parts contain only the merged values (RUNPART-2).
      const source = spread === undefined ? merge.source : "_branch.output";
      const value = checkedMerge(merged(merge.strategy, source, completed), group);
      write(draft, { scope: outer, path: merge.target, value }, meter);
      draft.steps += meter.spent + completed.length * STEPS_OF_BRANCH;
    } catch (error) {
      giveUp(draft, fanOut, failureOf(error));
      return;
    }
    draft.note({ type: "branches.merged", node: meeting.target, data: { fanOut: id, target: merge.target } });
  }
  const fanIn = { total, completed: completed.length, failed };
  draft.create({ node: meeting.target, scope: outer, counts, items: {}, fanIn });
  closeFanOut(draft, fanOut);
}

function checkedMerge(value: Json, group: string): Json {
  const { length } = JSON.stringify(value);
  if (length <= MAX_MERGED_LENGTH) return value;
  throw new TokenFailure({
    code: "TOO_LARGE",
    message: `The merge of "${group}" has ${length} characters as JSON. The maximum is ${MAX_MERGED_LENGTH}: let its branches return references.`,
  });
}

/** Writes a value by its path, below `state` or `output`. Throws `TokenFailure`, `ExpressionError` and `Spent`. */
export function write(
  draft: Draft,
  { scope, path, value }: { scope: ScopeKey; path: string; value: Json },
  meter: Meter,
): void {
  const [area, ...names] = path.split(".");
  if (area === "state") {
    if (scope !== null)
      throw new TokenFailure(invalid(`"${path}" is shared. Inside a fan-out, write below "output" only.`));
    // SAFETY: the path has a name below the area, so an object stays one.
    draft.state = written(draft.state, names, value, meter) as typeof draft.state;
    return;
  }
  draft.setOutput(scope, written(draft.scope(scope).output, names, value, meter));
}

function giveUp(draft: Draft, { id, outer, group, origin }: FanOut, error: RunError): void {
  draft.note({ type: "sync.failed", node: origin, data: { fanOut: id, group, error: { ...error } } });
  cancelBelow(draft, id);
  draft.stopFanOut(id);
  draft.count(outer, -1);
  fail(draft, outer, error);
}

/** Counts the failure of an ended token for its branch or its run (FANIN-4). */
export function fail(draft: Draft, scope: ScopeKey, error: RunError): void {
  for (const key of draft.around(scope)) {
    if (key === null) break;
    const { origin, group } = draft.fanOut(key.fanOut);
    if (draft.graph.meeting(origin, group) === null) continue;
    draft.setBranch(key.fanOut, key.branch, { failure: error });
    cancelBelow(draft, key.fanOut, key.branch);
    consider(draft, key.fanOut);
    return;
  }
  draft.error ??= error;
}

/** Checks the fan-in of a branch that may have finished. */
export function release(draft: Draft, scope: ScopeKey): void {
  if (scope === null || !draft.fanOuts.has(scope.fanOut)) return;
  const { active, failure } = draft.branch(scope.fanOut, scope.branch);
  if (active === 0 && failure === undefined) consider(draft, scope.fanOut);
}

function closeFanOut(draft: Draft, { id, outer }: FanOut): void {
  draft.close(id);
  release(draft, outer);
}

/** Cancels the tokens of a branch, or of all branches, and of the fan-outs within. */
function cancelBelow(draft: Draft, id: number, branch?: number): void {
  const { branches } = draft.fanOut(id);
  const isIdle = branches.every(
    ({ active }, index) => active === 0 || (branch !== undefined && index !== branch),
  );
  if (!isIdle) {
    const tokens = [...draft.tokens.values()].filter(({ scope }) => draft.isWithin(scope, id, branch));
    const inner = [...draft.fanOuts.values()].filter(({ outer }) => draft.isWithin(outer, id, branch));
    for (const token of tokens) {
      draft.stop(token);
      draft.noteOf(token, "token.cancelled");
    }
    for (const one of inner) draft.stopFanOut(one.id);
  }
  for (const [index, { active, arrived }] of branches.entries())
    if ((branch === undefined || index === branch) && active + arrived.length > 0)
      draft.setBranch(id, index, defined({ active: 0, arrived: [] }));
}
