/**
 * Shrinks a failing plan: removes all parts that the failure does not need, then reduces numbers.
 *
 * SHRINK-1  The result still fails, and no single step makes it smaller, unless the time ran out.
 */
import type { Fault, Plan } from "./plan.ts";

export interface Shrunk {
  plan: Plan;
  tried: number;
  /** `true` if no single step makes it smaller. */
  minimal: boolean;
}

export async function shrink(
  plan: Plan,
  fails: (plan: Plan) => Promise<boolean>,
  hasTime: () => boolean,
): Promise<Shrunk> {
  let current = plan;
  let tried = 0;
  for (;;) {
    let smaller: Plan | undefined;
    for (const candidate of reductions(current)) {
      if (!hasTime()) return { plan: current, tried, minimal: false };
      tried += 1;
      if (!(await fails(candidate))) continue;
      smaller = candidate;
      break;
    }
    if (smaller === undefined) return { plan: current, tried, minimal: true };
    current = smaller;
  }
}

/** Returns all plans that are one step smaller, the largest steps first. */
export function* reductions(plan: Plan): Generator<Plan> {
  for (let index = 0; plan.conversations.length > 1 && index < plan.conversations.length; index++) {
    yield withoutConversation(plan, index);
  }
  for (const path of pathsOf(plan, Array.isArray)) {
    const list: unknown = valueAt(plan, path);
    if (path[0] === "conversations" && path.length === 1) continue;
    if (Array.isArray(list)) yield* cuts(list, (shorter) => replaced(plan, path, shorter));
  }
  for (const path of pathsOf(plan, (_, key) => OPTIONAL.has(String(key))))
    yield replaced(plan, path, undefined);
  for (const path of pathsOf(plan, (value) => value === "answer" || value === "acknowledgement")) {
    if (path.at(-1) === "waitsFor") yield replaced(plan, path, "nothing");
  }
  for (const path of pathsOf(plan, isShrinkable)) {
    const value = Number(valueAt(plan, path));
    const least = LEAST.get(String(path.at(-1))) ?? 0;
    for (const smaller of new Set([least, Math.trunc(value / 2), value - Math.sign(value)])) {
      if (smaller >= Math.min(least, value) && Math.abs(smaller) < Math.abs(value)) {
        yield replaced(plan, path, smaller);
      }
    }
  }
}

/** Members whose absence makes a plan simpler. */
const OPTIONAL = new Set(["leaves", "order", "upon", "again", "memory", "failure", "kills"]);
/** Numbers that are not sizes stay unchanged. */
const FIXED = new Set(["seed", "conversation"]);
const LEAST: ReadonlyMap<string, number> = new Map([
  ["maxMoves", 1],
  ["contextTokens", 1_000],
  ["nth", 1],
  ["times", 1],
]);

function isShrinkable(value: unknown, key: Key): boolean {
  return typeof value === "number" && !FIXED.has(String(key));
}

function withoutConversation(plan: Plan, index: number): Plan {
  return {
    ...plan,
    conversations: plan.conversations.filter((_, other) => other !== index),
    faults: plan.faults.flatMap((fault): Fault[] => {
      if (fault.conversation === index) return [];
      return [{ ...fault, conversation: fault.conversation - (fault.conversation > index ? 1 : 0) }];
    }),
  };
}

/** Returns a list without a part: all, halves, quarters, down to single items. */
function* cuts(list: readonly unknown[], make: (shorter: unknown[]) => Plan): Generator<Plan> {
  for (let size = list.length; size >= 1; size = Math.floor(size / 2)) {
    for (let start = 0; start < list.length; start += size) {
      yield make([...list.slice(0, start), ...list.slice(start + size)]);
    }
  }
}

type Key = string | number;

function pathsOf(value: unknown, wanted: (value: unknown, key: Key) => boolean): Key[][] {
  const found: Key[][] = [];
  const visit = (node: unknown, path: Key[]) => {
    if (wanted(node, path.at(-1) ?? "")) found.push(path);
    if (typeof node !== "object" || node === null) return;
    const entries: [Key, unknown][] = Array.isArray(node) ? [...node.entries()] : Object.entries(node);
    for (const [key, member] of entries) visit(member, [...path, key]);
  };
  visit(value, []);
  return found.sort((one, other) => one.length - other.length);
}

function valueAt(root: unknown, path: readonly Key[]): unknown {
  // SAFETY: paths come from `pathsOf` of the same value.
  return path.reduce((node, key) => (node as Record<Key, unknown>)[key], root);
}

/** Returns a copy with one place changed. `undefined` removes a member. */
function replaced(plan: Plan, path: readonly Key[], value: unknown): Plan {
  const copy = structuredClone(plan);
  const last = path.at(-1);
  if (last === undefined) return copy;
  // SAFETY: as in `valueAt`.
  const parent = valueAt(copy, path.slice(0, -1)) as Record<Key, unknown>;
  if (value === undefined) delete parent[last];
  else parent[last] = value;
  return copy;
}
