/** The store of a run: a wake reads the state of memory, through random commits. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { Draft } from "../../src/agents/coordinator/core/draft.ts";
import { newRun } from "../../src/agents/coordinator/core/plan.ts";
import type { RunState } from "../../src/agents/coordinator/core/state.ts";
import { RunDatabase } from "../../src/agents/coordinator/store/run-database.ts";
import { patched, patchOf } from "../../src/agents/coordinator/store/value-patch.ts";
import { INLINE_BYTES } from "../../src/memory/session/long-text.ts";
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
  fc.record({ kind: fc.constant("extend" as const), pick, name, value: json }),
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
    case "extend": {
      const members = typeof output === "object" && !Array.isArray(output) ? output : {};
      const known = members && Object.hasOwn(members, one.name) ? members[one.name] : [];
      const longer = typeof known === "string" ? `${known}+` : [known ?? null].flat().concat([one.value]);
      draft.setOutput({ fanOut, branch }, { ...members, [one.name]: longer });
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

test("RUNSTORE-3 RUNSTORE-4 a wake reads the committed state, through random commits", () => {
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

test("RUNSTORE-3 RUNSTORE-4 a wake reads a list that grew by texts too long for a row, in several commits", () => {
  const database = new NodeSqlDatabase();
  const keyValue = new NodeKeyValue(database);
  const store = new RunDatabase(database, keyValue);
  let state = database.transaction(() => store.create(begun()));
  const commit = (...acts: Act[]) => {
    const draft = new Draft(state, state.seq);
    for (const one of acts) perform(draft, one);
    draft.note({ type: "context.updated" });
    const [before, change] = [state, draft.finish()];
    if (change === null) throw new Error("The draft has no change.");
    database.transaction(() => store.commit(before, change, before.seq));
    state = change.state;
  };
  commit({ kind: "open", total: 2, pick: 0 });
  for (const letter of ["a", "b", "c"])
    for (const pick of [0, 1])
      commit({ kind: "extend", pick, name: "a", value: letter.repeat(INLINE_BYTES + 1) });
  const loaded = new RunDatabase(database, keyValue).load();
  expect([...(loaded?.fanOuts ?? [])]).toEqual([...state.fanOuts]);
  const [stored] = database.all("SELECT sum(length(text)) AS length FROM cf_agents_long_text");
  expect(Number(stored?.length)).toBeLessThan(6 * (INLINE_BYTES + 100));
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

test("RUNPATCH-1 RUNPATCH-2 a patch of a list has its elements from the first that changed, whether they are the same or copies", () => {
  const items = fc.array(json, { maxLength: 4 });
  fc.assert(
    fc.property(items, items, items, fc.boolean(), (same, before, after, copied) => {
      const [one, other] = [
        [...same, ...before],
        [...(copied ? structuredClone(same) : same), ...after],
      ];
      const patch = patchOf({ deep: one }, { deep: other });
      expect(JSON.stringify(patched({ deep: one }, patch))).toBe(JSON.stringify({ deep: other }));
      const [[, added, kept = 0] = [[], [], other.length]] = patch;
      expect(kept).toBeGreaterThanOrEqual(same.length);
      expect(added).toEqual(other.slice(kept));
      // The patch contains no unchanged item.
      const first = other.findIndex((item, index) => JSON.stringify(item) !== JSON.stringify(one[index]));
      expect(kept).toBe(first < 0 ? other.length : first);
    }),
    { numRuns: 2_000 },
  );
});

test("RUNPATCH-1 RUNPATCH-2 a patch of a text that grew has the text that was added, between the units of a character too", () => {
  const text = fc.string({ unit: "grapheme", minLength: 1 });
  fc.assert(
    fc.property(text, text, fc.nat(), (before, more, at) => {
      const after = before + more;
      const begun = after.slice(0, 1 + (at % after.length));
      for (const [one, other] of [
        [before, after],
        [begun, after],
        [after, begun],
      ] as const)
        expect(patched(one, JSON.parse(JSON.stringify(patchOf(one, other))))).toBe(other);
      expect(patchOf({ text: before }, { text: after })).toEqual([[["text"], more, before.length]]);
    }),
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
