/** The journal's entries of the hooks of a turn with an erased message. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { withoutGiven } from "../../src/agents/conversation/core/erasure.ts";
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
  "ERASE-3 of %s what the hook gave goes, and what the platform noted stays",
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

test("ERASE-3 no text, name or number that a hook gave is left, at any depth", () => {
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

test("ERASE-3 what the task of a hook recorded goes with it, and the records of other tasks stay", () => {
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
