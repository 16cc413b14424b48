/** The store of a run: what a wake reads, beside what memory held, through random commits. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { newRun } from "../../src/agents/coordinator/core/begin.ts";
import { Draft } from "../../src/agents/coordinator/core/draft.ts";
import type { RunState } from "../../src/agents/coordinator/core/state.ts";
import { RunDatabase } from "../../src/agents/coordinator/store/run-database.ts";
import { patched, patchOf } from "../../src/agents/coordinator/store/value-patch.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import type { Json } from "../../src/shared/json.ts";

const name = fc.constantFrom("a", "b", "1", "__proto__");
const { json } = fc.letrec<{ json: Json; object: Record<string, Json> }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<Json>(null, 0, "", "text", {}, []),
    fc.array(tie("json"), { maxLength: 2 }),
    tie("object"),
  ),
  object: fc.dictionary(name, tie("json"), { maxKeys: 3, noNullPrototype: true }),
}));
const pick = fc.nat({ max: 50 });
const act = fc.oneof(
  fc.record({ kind: fc.constant("open" as const), total: fc.integer({ min: 0, max: 3 }), pick }),
  fc.record({ kind: fc.constant("arrive" as const), pick }),
  fc.record({ kind: fc.constant("clear" as const), pick }),
  fc.record({ kind: fc.constant("write" as const), pick, name, value: json }),
  fc.record({ kind: fc.constant("replace" as const), pick, value: json }),
  fc.record({ kind: fc.constant("fail" as const), pick }),
  fc.record({ kind: fc.constant("drop" as const), pick }),
);
type Act = typeof act extends fc.Arbitrary<infer Value> ? Value : never;

/** Does one thing to a branch of a draft, or to a fan-out. */
function perform(draft: Draft, one: Act): void {
  if (one.kind === "open") {
    draft.open({ group: "all", origin: "n", outer: null, path: "root", counts: {} }, one.total);
    return;
  }
  const places = [...draft.fanOuts.values()].flatMap(({ id, branches }) =>
    branches.map((_, index) => [id, index] as const),
  );
  const place = places[one.pick % Math.max(1, places.length)];
  if (place === undefined) return;
  const [fanOut, branch] = place;
  const { output } = draft.branch(fanOut, branch);
  switch (one.kind) {
    case "arrive":
      draft.arrive({ fanOut, branch });
      break;
    case "clear":
      draft.setBranch(fanOut, branch, { arrived: [] });
      break;
    case "write": {
      const members = typeof output === "object" && !Array.isArray(output) ? output : {};
      draft.setOutput({ fanOut, branch }, { ...members, [one.name]: one.value });
      break;
    }
    case "replace":
      draft.setOutput({ fanOut, branch }, one.value);
      break;
    case "fail":
      draft.setBranch(fanOut, branch, { failure: { code: "TASK_FAILED", message: "Failed." } });
      break;
    case "drop":
      draft.stopFanOut(fanOut);
      break;
  }
}

function begun(): RunState {
  const definition = { id: "w", inputSchema: {}, initialNode: "n", nodes: [{ ref: "n" }], transitions: [] };
  return newRun({
    ...{ id: "run_1", tenant: "local", projectId: "default", stem: "0123456789ABCDEFGHJ" },
    workflow: { library: "lib", id: "w", version: 1, hash: "", definition, tasks: {}, workflows: {} },
    ...{ input: {}, startedBy: "user", request: "", createdAt: 0 },
  });
}

test("RUNSTORE-3 RUNSTORE-4 what a wake reads equals what was committed, through random commits", () => {
  let loads = 0;
  fc.assert(
    fc.property(fc.array(fc.array(act, { maxLength: 6 }), { minLength: 1, maxLength: 12 }), (commits) => {
      const database = new NodeSqlDatabase();
      const keyValue = new NodeKeyValue(database);
      const store = new RunDatabase(database, keyValue);
      let state = database.transaction(() => store.create(begun()));
      for (const acts of commits) {
        const draft = new Draft(state, state.seq);
        for (const one of acts) perform(draft, one);
        draft.note({ type: "context.updated" });
        const change = draft.finish();
        if (change === null) continue;
        const before = state;
        database.transaction(() => store.commit(before, change, before.seq));
        state = change.state;
        const loaded = new RunDatabase(database, keyValue).load();
        expect([...(loaded?.fanOuts ?? [])]).toEqual([...state.fanOuts]);
        loads += 1;
      }
    }),
    { numRuns: 300 },
  );
  expect(loads).toBeGreaterThan(300);
});

test("RUNPATCH-1 a patch leads from any value to any other, with the same order of members", () => {
  fc.assert(
    fc.property(json, json, (before, after) => {
      const patch = patchOf(before, after);
      expect(JSON.stringify(patched(before, patch))).toBe(JSON.stringify(after));
      expect(patchOf(after, structuredClone(after))).toEqual([]);
    }),
    { numRuns: 2_000 },
  );
});

test("RUNPATCH-1 a patch has the members that changed, and no others", () => {
  const before = { kept: { long: "x".repeat(1_000) }, list: [1], gone: { deep: 1 } };
  expect(patchOf(before, { ...before, list: [1], gone: { deep: 2, more: null }, new: [] })).toEqual([
    [["gone", "deep"], 2],
    [["gone", "more"], null],
    [["new"], []],
  ]);
});
