/**
 * The members of the areas that the branches of a fan-out may read. Pure.
 *
 * PARTREAD-1  A part gets each member of `input`, `state` and `output` that its nodes may read. If they read an area otherwise than by
 *             member, it gets the whole area.
 */
import type { WorkflowDefinition } from "../../../protocol/workflow-definition.ts";
import { readsOf } from "../../../shared/expressions/reads.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";

const AREAS = ["input", "state", "output"] as const;
type Area = (typeof AREAS)[number];

/** The members of each area; `null` for all of them. */
export type MemberReads = Readonly<Record<Area, ReadonlySet<string> | null>>;

const known = new WeakMap<WorkflowDefinition, Map<string, MemberReads>>();

/** Returns the members that nodes of branches read, from `starts` up to the fan-in of their group. */
export function branchReads(
  definition: WorkflowDefinition,
  group: string,
  starts: readonly string[],
): MemberReads {
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
export function readMembers(area: Json, members: ReadonlySet<string> | null): JsonObject {
  if (!isJsonObject(area)) return {};
  if (members === null) return area;
  return Object.fromEntries(Object.entries(area).filter(([name]) => members.has(name)));
}
