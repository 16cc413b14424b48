/** The statements that readers of a run's journal cost. */
import { expect, test } from "vitest";
import { newRun, plan } from "../../src/agents/coordinator/core/plan.ts";
import type { RunSignal } from "../../src/agents/coordinator/core/signals.ts";
import { readRunTrace } from "../../src/agents/coordinator/reads/run-trace.ts";
import { journalPage } from "../../src/agents/coordinator/reads/run-views.ts";
import { RunDatabase } from "../../src/agents/coordinator/store/run-database.ts";
import { workflowSchema } from "../../src/library/workflows/workflow-schema.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { lastSeq } from "../../src/shared/journal-row.ts";
import type { JsonObject } from "../../src/shared/json.ts";
import { CostCounter, countingDatabase } from "../support/counting.ts";

/** Returns a finished run of as many tasks, one after the other, with a commit for each end, and the count of its statements. */
function finishedRun(tasks: number, output: JsonObject = {}) {
  const database = new NodeSqlDatabase();
  const counter = new CostCounter();
  const { db, kv } = countingDatabase(database, new NodeKeyValue(database), counter);
  const store = new RunDatabase(db, kv);
  const definition = workflowSchema.parse({
    inputSchema: { type: "object" },
    initialNode: "start",
    nodes: [{ ref: "start" }, { ref: "work", task: "lib/task" }, { ref: "end" }],
    transitions: [
      { from: "start", to: "work", siblingGroup: "all", spawnCount: tasks },
      { from: "work", to: "end", synchronization: { siblingGroup: "all", strategy: "all" } },
    ],
  });
  const task = { library: "lib", id: "task", effect: "pure", timeoutMs: 60_000 } as const;
  let state = store.create(
    newRun({
      ...{ id: "run_1", tenant: "local", projectId: "default", stem: "01ARZ3NDEKTSV4RRFFQ" },
      workflow: {
        library: "lib",
        id: "w",
        version: 1,
        hash: "",
        definition,
        tasks: { work: task },
        workflows: {},
      },
      ...{ input: {}, startedBy: "ada", request: "", createdAt: 1, width: 10_000 },
    }),
  );
  const commit = (signal: RunSignal): boolean => {
    const change = plan(state, [signal], 1_000);
    if (change === null) return false;
    store.commit(state, change, 1_000);
    state = change.state;
    return true;
  };
  const advance = () => {
    while (commit({ type: "run.advance" }));
  };
  commit({ type: "run.begin" });
  advance();
  for (const token of state.tokens.keys())
    commit({ type: "node.ended", token, attempt: 1, outcome: { output } });
  advance();
  return { state, journal: store.journal, counter };
}

test.each([3, 40])(
  "RUNJOURNAL-2 the trace of %i tasks and a page of their journal cost one statement each",
  (tasks) => {
    const { state, journal, counter } = finishedRun(tasks);
    expect(state.status).toBe("completed");
    counter.reset();
    // A span of the run and of each task.
    expect(readRunTrace(state, journal).spans).toHaveLength(tasks + 1);
    expect(counter.cost.statements).toBe(1);
    counter.reset();
    expect(journalPage(journal, { limit: 200 }).items.map(({ seq }) => seq)).toEqual(
      Array.from({ length: Math.min(200, state.seq) }, (_, index) => index + 1),
    );
    expect(counter.cost.statements).toBe(1);
  },
);

test("RUNJOURNAL-1 RUNJOURNAL-2 pages of a journal have each entry once, from any entry on", () => {
  const { state, journal, counter } = finishedRun(5);
  for (const limit of [1, 2, 3, 7, 200]) {
    const found: number[] = [];
    counter.reset();
    let pages = 0;
    for (let cursor: string | undefined; ; ) {
      const { items, nextCursor } = journalPage(journal, { limit, ...(cursor !== undefined && { cursor }) });
      found.push(...items.map(({ seq }) => seq));
      pages += 1;
      if (nextCursor === undefined) break;
      cursor = nextCursor;
    }
    expect(found).toEqual(Array.from({ length: state.seq }, (_, index) => index + 1));
    expect(counter.cost.statements).toBe(pages);
  }
  expect(journalPage(journal, { cursor: String(state.seq + 5) })).toEqual({ items: [] });
});

test("RUNJOURNAL-2 a slice of rows begins with the row of an entry, and is short after much text", () => {
  const { state, journal, counter } = finishedRun(5);
  const found: number[] = [];
  for (let from = 1; from <= state.seq; ) {
    counter.reset();
    const rows = journal.forward(from, 2);
    expect(rows.length).toBeLessThanOrEqual(2);
    expect(counter.cost.statements).toBe(1);
    for (const { seq, entries } of rows) found.push(...entries.map((_, index) => seq + index));
    from = (found.at(-1) ?? 0) + 1;
  }
  expect(found).toEqual(Array.from({ length: state.seq }, (_, index) => index + 1));
  const [last] = journal.forward(state.seq, 2);
  expect(journal.forward(state.seq + 5, 2)).toEqual([last]);
  const long = finishedRun(5, { text: "x".repeat(600 * 1024) });
  const lengths: number[] = [];
  for (let from = 1; from <= long.state.seq; ) {
    const rows = long.journal.forward(from, 64);
    lengths.push(JSON.stringify(rows).length);
    from = lastSeq(rows.at(-1) ?? expect.fail("no row")) + 1;
  }
  expect(lengths.length).toBeGreaterThan(4);
  expect(Math.max(...lengths)).toBeLessThan(1024 * 1024);
});
