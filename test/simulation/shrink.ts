/** The plans that are one step smaller than a plan: without a part, or with a smaller number. */
import { cuts } from "../../src/testing/shrink.ts";
import type { Fault, Plan } from "./plan.ts";

/** Returns all plans that are one step smaller, the largest steps first. */
export function* reductions(plan: Plan): Generator<Plan> {
  for (let index = 0; plan.conversations.length > 1 && index < plan.conversations.length; index++) {
    yield withoutConversation(plan, index);
  }
  for (const path of pathsOf(plan, Array.isArray)) {
    const list: unknown = valueAt(plan, path);
    if (path[0] === "conversations" && path.length === 1) continue;
    if (Array.isArray(list)) for (const shorter of cuts(list)) yield replaced(plan, path, shorter);
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

/** Members that can be removed to make a plan simpler. */
const OPTIONAL = new Set([
  "leaves",
  "order",
  "upon",
  "again",
  "memory",
  "titles",
  "failure",
  "kills",
  "message",
  "erases",
  "forks",
]);
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
