/** The number of calls that a tree of agents has open, over any sequence of calls and ends. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { CallLimits } from "../../src/agents/conversation/core/decisions.ts";
import { callsAllowed, partOfCall } from "../../src/agents/conversation/core/planning/call-guards.ts";
import type { ConversationState } from "../../src/agents/conversation/core/state.ts";

/** A conversation, or the call that opens one. */
interface Node {
  part: number | undefined;
  dispatched: boolean;
  below: Node[];
}

/** Returns the members of a conversation that the rules read. */
function stateOf({ part, below }: Node): ConversationState {
  const operations = below.map((call) => ({
    status: call.dispatched ? "dispatched" : "pending",
    agent: { id: "helper", mode: "delegate", ...(call.dispatched ? { calls: call.part } : {}) },
  }));
  const record = part === undefined ? {} : { call: { calls: part } };
  return { record, active: new Map([[1, { operations }]]) } as unknown as ConversationState;
}

const all = (node: Node): Node[] => [node, ...node.below.flatMap(all)];

/** Calls as many agents as are allowed of `wanted`; one of them waits for a person first. */
function call(node: Node, wanted: number, limits: CallLimits): void {
  const { own } = callsAllowed(stateOf(node).record, limits);
  const count = Math.min(wanted, own - node.below.length);
  for (let n = 0; n < count; n++) node.below.push({ part: undefined, dispatched: false, below: [] });
}

/** Begins the calls of a conversation that have not begun, at most `count`. */
function begin(node: Node, count: number, limits: CallLimits): void {
  const due = node.below.filter(({ dispatched }) => !dispatched).slice(0, count);
  const part = partOfCall(stateOf(node), limits, due.length);
  for (const one of due) Object.assign(one, { part, dispatched: true });
}

const limitsOf = fc.record({
  depth: fc.constant(4),
  open: fc.integer({ min: 1, max: 40 }),
  tree: fc.integer({ min: 1, max: 300 }),
});
const acts = fc.array(
  fc.record({
    act: fc.constantFrom("call", "call", "begin", "begin", "end"),
    at: fc.nat(),
    count: fc.integer({ min: 1, max: 40 }),
  }),
  { maxLength: 120 },
);

test("CALLTREE-1 a tree never exceeds its limit of open calls, nor a conversation its own limit", () => {
  fc.assert(
    fc.property(limitsOf, acts, (limits, steps) => {
      const root: Node = { part: undefined, dispatched: true, below: [] };
      for (const { act, at, count } of steps) {
        const working = all(root).filter(({ dispatched }) => dispatched);
        const node = working[at % working.length] ?? root;
        if (act === "call") call(node, count, limits);
        else if (act === "begin") begin(node, count, limits);
        else node.below.splice(at % Math.max(1, node.below.length), 1);
        expect(all(root).length - 1).toBeLessThanOrEqual(limits.tree);
        for (const { below } of working) expect(below.length).toBeLessThanOrEqual(limits.open);
      }
    }),
    { numRuns: 2_000 },
  );
});

test("CALLTREE-1 calls that begin one after another share the rest, and ended calls return their share", () => {
  const limits = { depth: 4, open: 8, tree: 16 };
  const root: Node = { part: undefined, dispatched: true, below: [] };
  call(root, 5, limits);
  for (let n = 0; n < 5; n++) begin(root, 1, limits);
  expect(root.below.map(({ part }) => part)).toEqual([4, 2, 1, 0, 0]);
  root.below.shift();
  call(root, 1, limits);
  begin(root, 1, limits);
  expect(root.below.map(({ part }) => part)).toEqual([2, 1, 0, 0, 2]);
});

test("CALLTREE-1 with the default limits a chain of four calls, and twenty calls with calls below them, have room", () => {
  const limits = { depth: 4, open: 32, tree: 256 };
  const chain: Node = { part: undefined, dispatched: true, below: [] };
  let last = chain;
  for (let level = 0; level < 4; level++) {
    call(last, 1, limits);
    begin(last, 1, limits);
    const [next] = last.below;
    if (next === undefined) throw new Error(`Level ${level} has no call left.`);
    last = next;
  }
  const wide: Node = { part: undefined, dispatched: true, below: [] };
  call(wide, 20, limits);
  begin(wide, 20, limits);
  const owns = wide.below.map(
    ({ part }) => callsAllowed({ call: { calls: part ?? 0 } } as never, limits).own,
  );
  expect(owns).toEqual(Array.from({ length: 20 }, () => 5));
});
