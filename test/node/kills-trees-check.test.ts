/** The check of the kills over trees finds each violation in a history made by hand. */
import { expect, test } from "vitest";
import { checkTrees, missingInTrees } from "../../bench/kills/trees/check.ts";
import type { RoomRecord, TreesHistory } from "../../bench/kills/trees/history.ts";
import type { JournalEntryView } from "../../src/protocol/conversation-schemas.ts";

const entry = (seq: number, type: string, operationId?: string): JournalEntryView => ({
  ...{ seq, type, time: "2026-03-01T10:00:00.000Z" },
  ...(operationId === undefined ? {} : { operationId }),
});
const spent = (tokens: number) => ({ tokens, usd: 0, toolCalls: 0, modelCalls: 1 });

const child: RoomRecord = {
  id: "child",
  status: "completed",
  operationId: "op_1",
  active: 0,
  journal: [entry(1, "turn.started"), entry(2, "turn.completed")],
  calls: [],
  once: [],
  succeeded: [],
  spent: spent(30),
  counted: 30,
};
const root: RoomRecord = {
  id: "root",
  status: "active",
  active: 0,
  journal: [
    entry(1, "tool.requested", "op_1"),
    entry(2, "tool.completed", "op_1"),
    entry(3, "turn.completed"),
  ],
  calls: [{ operationId: "op_1", conversationId: "child" }],
  once: [],
  succeeded: ["op_1"],
  spent: spent(80),
  counted: 50,
};

function history(
  change: { root?: Partial<RoomRecord>; child?: Partial<RoomRecord> },
  hits: TreesHistory["hits"] = [],
): TreesHistory {
  const rooms = [
    { ...root, ...change.root },
    { ...child, ...change.child },
  ];
  return { kills: [], trees: [{ stopped: false, rooms }], hits };
}

test("a good history has no violations", () => {
  const once = { operationId: "op_2", isOnce: true };
  const again = { operationId: "op_3", isOnce: false };
  expect(checkTrees(history({}, [once, again, again]))).toEqual([]);
});

test.each<[rule: string, change: Parameters<typeof history>[0], hits?: TreesHistory["hits"]]>([
  ["KILLTREE-1 1 turns of root are active", { root: { active: 1 } }],
  ["KILLTREE-1 child is active", { child: { status: "active" } }],
  ["KILLTREE-2 op_1 of root has 0 outcomes", { root: { journal: [entry(1, "tool.requested", "op_1")] } }],
  [
    "KILLTREE-2 op_1 of root has 2 outcomes",
    { root: { journal: [...root.journal, entry(4, "tool.failed", "op_1")] } },
  ],
  [
    "KILLTREE-3 op_2 ran 2 times",
    {},
    [
      { operationId: "op_2", isOnce: true },
      { operationId: "op_2", isOnce: true },
    ],
  ],
  ["KILLTREE-3 op_4 succeeded, and ran 0 times", { child: { succeeded: ["op_4"], once: ["op_4"] } }],
  ["KILLTREE-4 root has spent 80 tokens of its own, and 50 were counted", { root: { calls: [] } }],
  [
    "KILLTREE-4 root has spent 20 tokens of its own, and 50 were counted",
    { root: { spent: { ...spent(50), estimated: true } } },
  ],
])("%s", (violation, change, hits) => {
  expect(checkTrees(history(change, hits))).toEqual([violation]);
});

test("a run without its required events is reported", () => {
  expect(missingInTrees(history({}))).toEqual([
    "There was no tree of three levels.",
    "There was no tree that was stopped.",
    "There was no run of a `once` tool.",
  ]);
});
