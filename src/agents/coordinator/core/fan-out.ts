/**
 * Fan-outs: their branches are tokens of their run. A large fan-out is spread: its branches are divided into parts, and each part is a run
 * of its own. Pure.
 *
 * PARTS-1  A fan-out over more branches than the width of its run is spread over parts. Parts have at most that many branches, are as few
 *          as possible, and have nearly equal sizes. Narrower fan-outs stay in their run. Branches have the same indexes and paths either
 *          way.
 * PARTS-2  A run waits for at most `MAX_OPEN_PARTS` parts at once. The next part begins when one of these has ended.
 * PARTS-3  A spread fan-out that is too large is rejected before it opens. The open spread fan-outs of a run have at most `MAX_BRANCHES`
 *          branches together. All items of a fan-out have at most the length of a merge. The start of a part has at most `MAX_PART_LENGTH`.
 *          This limit is checked again when the part begins.
 * PARTREAD-1  A part gets each member of `input`, `state` and `output` that its nodes may read. If they read an area otherwise than by
 *             member, it gets the whole area.
 */
import type { PartBranches, PartStart } from "../../../protocol/run-call.ts";
import type { WorkflowDefinition } from "../../../protocol/workflow-definition.ts";
import { readsOf } from "../../../shared/expressions/reads.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { Meter } from "../../../shared/json-schema/meter.ts";
import type { Draft } from "./draft.ts";
import { areas, TokenFailure } from "./evaluation.ts";
import { childRunId } from "./operations.ts";
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
import { type Branch, type FanOut, placeOf, type ScopeKey, type Token } from "./state.ts";
import { nextShare, partsToBegin } from "./tree-share.ts";

/** Opens a fan-out of a token: one branch for each item of its transitions. Returns its number. Throws `TooLong` and `TokenFailure`. */
export function fanOut(draft: Draft, token: Token, group: string, firing: readonly Firing[]): number {
  const { scope: outer, node: origin } = token;
  const total = firing.reduce((sum, { items }) => sum + items.length, 0);
  const { path } = draft.placeOf(outer);
  const counts = countedWith(
    token.counts,
    firing.map(({ transition }) => transition),
  );
  if (isWide(draft, total)) {
    const id = openSpread(draft, token, { group, origin, outer, path, counts }, firing);
    const parts = draft.fanOut(id).branches.length;
    const data = { fanOut: id, group, total, parts };
    draft.noteOf(token, "fan_out.started", data);
    return id;
  }
  const id = draft.open({ group, origin, outer, path, counts }, total);
  draft.noteOf(token, "fan_out.started", { fanOut: id, group, total });
  createBranches(draft, id, token.counts, firing);
  return id;
}

/** Reports whether a fan-out over so many branches is spread. */
function isWide(draft: Draft, total: number): boolean {
  return total > (draft.before.record.width ?? FAN_OUT_WIDTH);
}

/** Opens a spread fan-out with parts that have not begun. Returns its number. Throws `TokenFailure`. */
function openSpread(
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
      `The fan-out "${group}" has ${total} branches, and other open fan-outs have ${open}. The maximum is ${MAX_BRANCHES} together.`,
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

function divided(firing: readonly Firing[], size: number): PartBranches[][] {
  const parts: PartBranches[][] = [];
  let left = 0;
  for (const { transition, items } of firing)
    for (let from = 0; from < items.length; ) {
      if (left === 0) {
        parts.push([]);
        left = size;
      }
      const own = items.slice(from, from + left);
      const { ref, foreach } = transition;
      parts
        .at(-1)
        ?.push(
          foreach === undefined
            ? { transition: ref, count: own.length }
            : { transition: ref, items: own.map((item) => item[foreach.itemVar] ?? null) },
        );
      from += own.length;
      left -= own.length;
    }
  return parts;
}

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
        draft.work.freeRuns < 1
      )
        return;
      if (!isToBegin(branch)) continue;
      const { first, size } = placeOf(spread, part);
      const input = { first, branches: size };
      const others = partsToBegin(draft, draft.work.openParts) - 1 + draft.tokens.size - draft.work.openRuns;
      const share = nextShare(draft.work.freeRuns, others);
      const made = { counts: {}, items: {}, fanIn: null, part: true } as const;
      const token = draft.create({ node: origin, scope: { fanOut: id, branch: part }, ...made });
      draft.change(token.id, { phase: { kind: "working", attempt: 1, input, share } });
      const runId = childRunId(draft.before.record, token.id, 1);
      draft.noteOf(token, "task.dispatched", { input, runId });
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

const AREAS = ["input", "state", "output"] as const;
type Area = (typeof AREAS)[number];

export type MemberReads = Readonly<Record<Area, ReadonlySet<string> | null>>;

const known = new WeakMap<WorkflowDefinition, Map<string, MemberReads>>();

/** Returns the members that nodes of branches read, from `starts` up to the fan-in of their group. */
function branchReads(definition: WorkflowDefinition, group: string, starts: readonly string[]): MemberReads {
  const own = known.get(definition) ?? new Map<string, MemberReads>();
  known.set(definition, own);
  const key = [group, ...starts].join(" ");
  const reads = own.get(key) ?? findReads(definition, group, starts);
  own.set(key, reads);
  return reads;
}

function findReads(
  { nodes, transitions }: WorkflowDefinition,
  group: string,
  starts: readonly string[],
): MemberReads {
  const reads: Record<Area, Set<string> | null> = {
    input: new Set(),
    state: new Set(),
    output: new Set(),
  };
  const read = (source: string) => {
    const { paths, tested } = readsOf(source);
    for (const [area = "", member] of [...paths, ...tested]) {
      const at = AREAS.find((name) => name === area);
      if (at === undefined) continue;
      if (member === undefined) reads[at] = null;
      else reads[at]?.add(member);
    }
  };
  const within = new Set(starts);
  // The loop also visits members that are added to the set during the loop.
  for (const ref of within)
    for (const { from, to, condition, foreach, synchronization } of transitions) {
      if (from !== ref) continue;
      for (const source of [condition, foreach?.collection]) if (source !== undefined) read(source);
      if (synchronization?.siblingGroup !== group) within.add(to);
    }
  for (const { ref, task, workflow, agent, inputMapping, outputMapping } of nodes) {
    if (!within.has(ref)) continue;
    const hasOwner = (task ?? workflow ?? agent) !== undefined;
    if (hasOwner && inputMapping === undefined) reads.input = null;
    for (const mapping of [inputMapping, outputMapping]) Object.values(mapping ?? {}).forEach(read);
  }
  return reads;
}

/** Returns the members of an area that are read. A value that is not an object has no members. */
function readMembers(area: Json, members: ReadonlySet<string> | null): JsonObject {
  if (!isJsonObject(area)) return {};
  if (members === null) return area;
  return Object.fromEntries(Object.entries(area).filter(([name]) => members.has(name)));
}
