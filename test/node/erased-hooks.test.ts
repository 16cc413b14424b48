/** The journal's entries of the hooks of a turn with an erased message. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { PlanInput, StoredTurns } from "../../src/agents/conversation/core/decisions.ts";
import { withoutGiven } from "../../src/agents/conversation/core/erasure.ts";
import { plan } from "../../src/agents/conversation/core/planning/plan.ts";
import type { ConversationState } from "../../src/agents/conversation/core/state.ts";
import type { Turn } from "../../src/agents/conversation/core/turn.ts";
import { CREATE_JOURNAL, Journal, unpackHead } from "../../src/agents/conversation/store/journal.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import type { EntryType } from "../../src/protocol/journal.ts";
import type { Json } from "../../src/shared/json.ts";

const MEMORY = "mem_01M8E56S1E2B648DXK90000001";
const GIVEN: Json = {
  op: "write",
  type: "Ann's PIN",
  content: "Ann's PIN is 4711.",
  significance: 0.4711,
  memoryId: "the one of Ann",
  metadata: { "of Ann": 4711, name: "Ann", code: { type: "Ann" } },
};

const ENTRIES: readonly [EntryType, Json, unknown][] = [
  [
    "context_assembly.failed",
    { attempt: 1, code: "EXECUTION_FAILED", message: "Ann's PIN", final: true, runId: "run_1" },
    { attempt: 1, code: "EXECUTION_FAILED", message: "[erased]", final: true, runId: "run_1" },
  ],
  [
    "memory_extraction.completed",
    { operations: [GIVEN, { op: "delete", memoryId: MEMORY }, { op: "Ann" }, "Ann"] },
    { operations: [{ op: "write" }, { op: "delete", memoryId: MEMORY }, {}, {}] },
  ],
  [
    "memory_extraction.applied",
    {
      outcomes: [
        { status: "applied", memoryId: MEMORY, version: 2 },
        { status: "refused", code: "INVALID_INPUT", message: 'No memory "Ann".' },
      ],
    },
    {
      outcomes: [
        { status: "applied", memoryId: MEMORY, version: 2 },
        { status: "refused", code: "INVALID_INPUT", message: "[erased]" },
      ],
    },
  ],
];

test.each(ENTRIES)(
  "ERASE-3 the hook's output in %s is erased, and the platform's notes stay",
  (type, data, left) => {
    const database = new NodeSqlDatabase();
    database.run(CREATE_JOURNAL);
    const journal = new Journal(database);
    const head = unpackHead({});
    const report: Json = { agentId: "helper", failures: 3, message: "Ann's PIN" };
    const entries = [
      { type, turn: 1, item: 3, data },
      { type: "memory_extraction.failing" as const, data: report },
    ];
    journal.append({ seq: 1, at: 0, entries }, head);
    journal.append({ seq: 3, at: 0, entries: [{ type, turn: 2, item: 3, data }] }, head);
    journal.redact(1, 1, 0);
    const [of, other] = journal.forward(1, 10);
    expect(of?.entries.map((entry) => entry.data)).toEqual([
      left,
      { agentId: "helper", failures: 3, message: "[erased]" },
    ]);
    expect(other?.entries.map((entry) => entry.data)).toEqual([data]);
  },
);

test("ERASE-3 no text, name or number of a hook remains, at any depth", () => {
  const given = fc.oneof(fc.constant("Ann"), fc.constant(4711), fc.boolean());
  const value = fc.letrec<{ json: Json }>((tie) => ({
    json: fc.oneof(
      given,
      fc.array(tie("json"), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom("Ann", "type", "name", "content", "code", "memoryId"), tie("json"), {
        maxKeys: 4,
      }),
    ),
  })).json;
  fc.assert(
    fc.property(value, (json) => {
      for (const data of [json, { operations: [json] }, { outcomes: json }])
        expect(JSON.stringify(withoutGiven(data))).not.toMatch(/Ann|4711/);
    }),
  );
});

test("ERASE-3 the records of a hook's task are erased with it, and the records of other tasks stay", () => {
  const database = new NodeSqlDatabase();
  database.run(CREATE_JOURNAL);
  const journal = new Journal(database);
  const records = (item: number) => [
    { type: "task.event" as const, turn: 1, item, data: { name: "Ann", payload: { Ann: 4711 } } },
    { type: "task.metric" as const, turn: 1, item, data: { name: "Ann", value: 4711 } },
  ];
  const completed = { type: "task.completed" as const, turn: 1, item: 3, data: { task: "a/b@1", steps: 2 } };
  const hook = { type: "memory_extraction.completed" as const, turn: 1, item: 3, data: { operations: [] } };
  journal.append({ seq: 1, at: 0, entries: [hook, completed, ...records(2)] }, unpackHead({}));
  journal.append({ seq: 5, at: 0, entries: records(3) }, unpackHead({}));
  journal.redact(1, 1, 0);
  const [first, late] = journal.forward(1, 10);
  expect(first?.entries).toEqual([hook, completed, ...records(2)]);
  expect(late?.entries.map(({ data }) => data)).toEqual([{}, {}]);
});

describe("ERASE-9 the record of a task that arrives after the end of its turn", () => {
  const task = { task: { library: "l", id: "t", version: 1 }, steps: [], durationMs: 1 };
  const error = { code: "CANCELLED", message: "", retriable: false } as const;
  // SAFETY: planning reads these members only.
  const state = { active: new Map() } as unknown as ConversationState;
  const notes = (item: number, erased?: number[]) => {
    const turn = { n: 1, operations: [{ item: 2 }, { item: 3 }], erased } as unknown as Turn;
    const turns = { turn: () => turn } as unknown as StoredTurns;
    const result = { tool_call_id: "c", success: false, error };
    const signal = { type: "conversation.tool.completed", turn: 1, item, attempt: 1, result, task } as const;
    return plan(state, signal, { turns } as PlanInput).length;
  };

  test.each([
    ["of an erased call is dropped", 2, [2], 0],
    ["of another call is noted", 3, [2], 1],
    ["of a hook is dropped with any entry of the turn", 4, [2], 0],
    ["of a hook is noted without an erasure", 4, undefined, 1],
  ])("%s", (_, item, erased, count) => {
    expect(notes(item, erased)).toBe(count);
  });
});
