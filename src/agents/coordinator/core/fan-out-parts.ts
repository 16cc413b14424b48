/**
 * Spread fan-outs: their branches are divided into parts, and each part is a run of its own. Pure.
 *
 * PARTS-1  A fan-out over more branches than the width of its run is spread over parts. Parts have at most that many branches, are as few
 *          as possible, and have nearly equal sizes. Narrower fan-outs stay in their run. Branches have the same indexes and paths either
 *          way.
 * PARTS-2  A run waits for at most `MAX_OPEN_PARTS` parts at once. The next part begins when one of these has ended.
 * PARTS-3  A spread fan-out that is too large is rejected before it opens. The open spread fan-outs of a run have at most `MAX_BRANCHES`
 *          branches together. All items of a fan-out have at most the length of a merge. The start of a part has at most `MAX_PART_LENGTH`.
 *          This limit is checked again when the part begins.
 * PARTS-4  The failure of the run of a part is the failure of each of its branches.
 * PARTS-5  If an `mOfN` fan-in has enough completed branches, it asks its running parts to end. A fan-in that continues after its timeout
 *          does the same. No part begins during this wait. A part that has not answered after `CLOSE_MS` is cancelled. A fan-in of `any`
 *          waits for no part.
 * PARTS-7  After these parts have ended, their results decide `mOfN`, and their earlier progress reports do not count. The fan-in merges
 *          only as many branches as it needs. If too few branches have completed, further parts begin. If too few branches remain, the
 *          fan-in fails.
 * PARTS-6  The merged results of all parts are together no longer than a merge may be. Beyond that the fan-in fails with `TOO_LARGE`.
 */
import type { PartBranches, PartResult, PartStart } from "../../../protocol/run-call.ts";
import type { SynchronizationStrategy } from "../../../protocol/workflow-definition.ts";
import type { RunError } from "../../../protocol/workflow-run.ts";
import type { Json, JsonObject } from "../../../shared/json.ts";
import { Meter } from "../../../shared/json-schema/meter.ts";
import type { Draft } from "./draft.ts";
import { areas, TokenFailure } from "./evaluation.ts";
import { childRunId } from "./operations.ts";
import { placeOf } from "./part-place.ts";
import { branchReads, readMembers } from "./part-reads.ts";
import { countedWith, type Firing } from "./routing.ts";
import {
  FAN_OUT_WIDTH,
  MAX_BRANCHES,
  MAX_MERGED_LENGTH,
  MAX_OPEN_CALLS,
  MAX_OPEN_PARTS,
  MAX_PART_LENGTH,
  MAX_TOKEN_STEPS,
} from "./run-limits.ts";
import { type Branch, type FanOut, type PartTally, resolved, type ScopeKey, type Token } from "./state.ts";
import { partsToBegin, shareOf } from "./tree-room.ts";
import type { BranchOutput } from "./values.ts";

/** The branches of a spread fan-out so far, over all parts. */
export interface Tally {
  readonly total: number;
  readonly completed: number;
  readonly failed: number;
  /** Branches that may still complete or fail. The end of a part cancels its unfinished branches, which then do not count. */
  readonly open: number;
}

/** Reports whether a fan-out over so many branches is spread. */
export function isWide(draft: Draft, total: number): boolean {
  return total > (draft.before.record.width ?? FAN_OUT_WIDTH);
}

/** Opens a spread fan-out with parts that have not begun. Returns its number. Throws `TokenFailure`. */
export function openSpread(
  draft: Draft,
  token: Token,
  fanOut: Pick<FanOut, "group" | "origin" | "outer" | "path" | "counts">,
  firing: readonly Firing[],
): number {
  const { group, outer } = fanOut;
  const total = firing.reduce((sum, { items }) => sum + items.length, 0);
  const open = [...draft.fanOuts.values()].reduce((sum, { spread }) => sum + (spread?.total ?? 0), 0);
  if (open + total > MAX_BRANCHES)
    throw tooLarge(
      `The fan-out "${group}" has ${total} branches, and others that are open ${open}. The maximum is ${MAX_BRANCHES} together.`,
    );
  const width = draft.before.record.width ?? FAN_OUT_WIDTH;
  const size = Math.ceil(total / Math.ceil(total / width));
  const parts = divided(firing, size);
  const lengths = parts.map((part) => JSON.stringify(part).length);
  const length = lengths.reduce((sum, own) => sum + own, 0);
  if (length > MAX_MERGED_LENGTH)
    throw tooLarge(
      `The items of the fan-out "${group}" have ${length} characters as JSON. The maximum is ${MAX_MERGED_LENGTH}: use references.`,
    );
  const start = { ...snapshot(draft, { group, outer }, parts), input: inputOf(draft, group, parts) };
  checkStart(group, JSON.stringify(start).length + Math.max(...lengths));
  const id = draft.open({ ...fanOut, spread: { total, size, base: token.counts } }, parts.length);
  for (const [index, branches] of parts.entries()) {
    // SAFETY: the branches are plain data.
    draft.setBranch(id, index, { output: branches as unknown as Json });
  }
  return id;
}

/** Divides the branches of transitions into parts of a size. */
function divided(firing: readonly Firing[], size: number): PartBranches[][] {
  const parts: PartBranches[][] = [];
  let room = 0;
  for (const { transition, items } of firing)
    for (let from = 0; from < items.length; ) {
      if (room === 0) {
        parts.push([]);
        room = size;
      }
      const own = items.slice(from, from + room);
      const { ref, foreach } = transition;
      parts
        .at(-1)
        ?.push(
          foreach === undefined
            ? { transition: ref, count: own.length }
            : { transition: ref, items: own.map((item) => item[foreach.itemVar] ?? null) },
        );
      from += own.length;
      room -= own.length;
    }
  return parts;
}

/** Creates the tokens of the branches of a fan-out. */
export function createBranches(
  draft: Draft,
  id: number,
  counts: Token["counts"],
  firing: readonly Firing[],
): void {
  let branch = 0;
  for (const { transition, items } of firing)
    for (const own of items)
      draft.create({
        node: transition.to,
        scope: { fanOut: id, branch: branch++ },
        counts: countedWith(counts, [transition]),
        items: own,
        fanIn: null,
      });
}

/** Returns the transitions of a part with the items of each of its tokens, as they were before it was divided. */
export function firingOf(draft: Draft, branches: readonly PartBranches[]): Firing[] {
  return branches.map((own) => {
    const transition = draft.graph.transition(own.transition);
    const { itemVar = "" } = transition.foreach ?? {};
    const items: JsonObject[] =
      "items" in own
        ? own.items.map((item) => ({ [itemVar]: item }))
        : Array.from({ length: own.count }, () => ({}));
    return { transition, items };
  });
}

function targetsOf(draft: Draft, parts: readonly (readonly PartBranches[])[]): string[] {
  const refs = new Set(parts.flatMap((own) => own.map(({ transition }) => transition)));
  return [...refs].map((ref) => draft.graph.transition(ref).to);
}

/** Returns the areas that the nodes of branches read. Throws `Spent` if the steps are used up. */
function snapshot(
  draft: Draft,
  { group, outer }: { group: string; outer: ScopeKey },
  parts: readonly (readonly PartBranches[])[],
): Pick<PartStart, "state" | "output"> {
  const reads = branchReads(draft.graph.definition, group, targetsOf(draft, parts));
  const { output } = areas(draft, outer, new Meter(MAX_TOKEN_STEPS));
  return { state: readMembers(draft.state, reads.state), output: readMembers(output, reads.output) };
}

function inputOf(draft: Draft, group: string, parts: readonly (readonly PartBranches[])[]): JsonObject {
  const reads = branchReads(draft.graph.definition, group, targetsOf(draft, parts));
  return readMembers(draft.before.record.input, reads.input);
}

function checkStart(group: string, length: number): void {
  if (length <= MAX_PART_LENGTH) return;
  throw tooLarge(
    `A part of the fan-out "${group}" would begin with ${length} characters as JSON: its items, and the areas that its nodes read. The maximum is ${MAX_PART_LENGTH}. Use references, or map less to its nodes.`,
  );
}

function tooLarge(message: string): TokenFailure {
  return new TokenFailure({ code: "TOO_LARGE", message });
}

/** Begins parts up to the limit of open parts. Throws `TooLong`. */
export function startParts(draft: Draft): void {
  for (const { id, spread, origin } of [...draft.fanOuts.values()]) {
    if (spread === undefined || spread.closing !== undefined) continue;
    const { branches } = draft.fanOut(id);
    for (const [part, branch] of branches.entries()) {
      if (
        draft.work.openParts >= MAX_OPEN_PARTS ||
        draft.work.openCalls >= MAX_OPEN_CALLS ||
        draft.work.freeRoom < 1
      )
        return;
      if (!isToBegin(branch)) continue;
      const { first, size } = placeOf(spread, part);
      const input = { first, branches: size };
      const others = partsToBegin(draft, draft.work.openParts) - 1 + draft.tokens.size - draft.work.openRuns;
      const room = shareOf(draft.work.freeRoom, others);
      const made = { counts: {}, items: {}, fanIn: null, part: true } as const;
      const token = draft.create({ node: origin, scope: { fanOut: id, branch: part }, ...made });
      draft.change(token.id, { phase: { kind: "working", attempt: 1, input, room } });
      const runId = childRunId(draft.before.record, token.id, 1);
      draft.note({ type: "task.dispatched", token: token.id, node: origin, data: { input, runId } });
    }
  }
}

/** Reports whether a part has not begun. */
function isToBegin({ active, tally, failure }: Branch): boolean {
  return active === 0 && tally === undefined && failure === undefined;
}

/** Returns the start of the run of a part, and its input. Throws `TokenFailure` and `Spent`. */
export function partStart(draft: Draft, { scope }: Token): { part: PartStart; input: JsonObject } {
  if (scope === null) throw new Error("A part is in a fan-out.");
  const { spread, group, origin, path, outer, branches } = draft.fanOut(scope.fanOut);
  if (spread === undefined) throw new Error(`Fan-out ${scope.fanOut} is not spread.`);
  // SAFETY: `openSpread` wrote them, and they stay until the part has ended.
  const own = branches[scope.branch]?.output as unknown as PartBranches[];
  const { first } = placeOf(spread, scope.branch);
  const place = { group, origin, path, counts: spread.base, first, total: spread.total };
  const start = {
    part: { ...place, branches: own, ...snapshot(draft, { group, outer }, [own]) },
    input: inputOf(draft, group, [own]),
  };
  checkStart(group, JSON.stringify(start).length);
  return start;
}

/** Stores the result of a part in place of its start. The caller then ends its token. */
export function takePart(draft: Draft, { id, node, scope, phase }: Token, result: PartResult): void {
  if (scope === null || phase.kind !== "working") return;
  const [completed, failed] = [result.completed.length, result.failed.length];
  const length = JSON.stringify(result).length;
  // SAFETY: the result is plain data.
  const output = result as unknown as Json;
  draft.setBranch(scope.fanOut, scope.branch, { output, tally: { completed, failed, length } });
  dropUnmerged(draft, scope.fanOut);
  noteArrival(draft, scope.fanOut, result.firstArrivalAt);
  draft.change(id, { phase: resolved(phase, { output: null }) });
  const { attempt } = phase;
  draft.note({ type: "task.completed", token: id, node, data: { attempt, output: { completed, failed } } });
}

/** Drops the results of branches that `mOfN` does not merge: those with an index behind the needed ones. Their order is final. */
function dropUnmerged(draft: Draft, id: number): void {
  const { branches, origin, group } = draft.fanOut(id);
  const { strategy } = draft.graph.meeting(origin, group)?.synchronization ?? {};
  if (typeof strategy !== "object") return;
  let room = strategy.mOfN;
  for (const [part, branch] of branches.entries()) {
    const { tally } = branch;
    if (tally?.length === undefined) continue;
    const result = resultOf(branch);
    const { completed, outputs } = result;
    if (completed.length > room) {
      const merged = { ...result, completed: completed.slice(0, room), outputs: outputs.slice(0, room) };
      const { length } = JSON.stringify(merged);
      // SAFETY: the result is plain data.
      draft.setBranch(id, part, { output: merged as unknown as Json, tally: { ...tally, length } });
    }
    room -= Math.min(room, completed.length);
  }
}

/** Cancels the running parts of a fan-out. Their branches count neither as completed nor as failed. */
export function cancelParts(draft: Draft, id: number): void {
  const parts = [...draft.tokens.values()].filter(({ scope, part }) => part === true && scope?.fanOut === id);
  for (const token of parts) {
    const { scope, node } = token;
    if (scope === null) continue;
    // SAFETY: the result is plain data.
    const output = NOTHING as unknown as Json;
    draft.setBranch(id, scope.branch, { output, tally: { completed: 0, failed: 0, length: 0 } });
    draft.end(token);
    draft.note({ type: "token.cancelled", token: token.id, node });
  }
}

/** Stores the progress of a part. Its counts never decrease. */
export function takeProgress(
  draft: Draft,
  { id, node, scope }: Token,
  progress: Pick<PartTally, "completed" | "failed"> & { firstArrivalAt?: number },
): void {
  if (scope === null) return;
  const { tally = { completed: 0, failed: 0 } } = draft.branch(scope.fanOut, scope.branch);
  const completed = Math.max(tally.completed, progress.completed);
  const failed = Math.max(tally.failed, progress.failed);
  draft.setBranch(scope.fanOut, scope.branch, { tally: { completed, failed } });
  noteArrival(draft, scope.fanOut, progress.firstArrivalAt);
  draft.note({ type: "part.progress", token: id, node, data: { completed, failed } });
}

function noteArrival(draft: Draft, fanOut: number, at: number | undefined): void {
  if (at === undefined) return;
  const { firstArrivalAt = draft.now } = draft.fanOut(fanOut);
  draft.mark(fanOut, { firstArrivalAt: Math.min(firstArrivalAt, at) });
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

/** Reports whether parts of a fan-out run. */
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

/** Returns the failed branches of a fan-out, by index. */
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
