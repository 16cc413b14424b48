/** The scenarios that a coordinator must run, each as a whole workflow on the real Worker. */
import { describe, expect, test } from "vitest";
import type { RunEntryView, RunView } from "../../src/protocol/run-schemas.ts";
import { ended, type Flow, journal, post, start, task } from "./run-helpers.ts";

const STATE = {
  contextSchema: {
    type: "object",
    properties: Object.fromEntries(["all", "deep", "first", "got", "report"].map((name) => [name, {}])),
  },
};

/** A node with a task that returns a value. Its branch keeps the value. */
const work = (ref: string, value: string, more: object = {}, mapping: object = {}) =>
  task(ref, "pure", { outputMapping: { "output.value": "result.value" }, ...more }, { value, ...mapping });

const fan = (from: string, to: string, over: string | number, siblingGroup = "g") => ({
  ...{ ref: `fan-${from}-${to}`, from, to, siblingGroup },
  ...(typeof over === "number"
    ? { spawnCount: over }
    : { foreach: { collection: over, itemVar: siblingGroup === "g" ? "item" : "row" } }),
});

const join = (from: string, to: string, more: object = {}, target = "state.all", siblingGroup = "g") => ({
  ...{ ref: `join-${from}-${to}`, from, to },
  synchronization: {
    ...{ siblingGroup, strategy: "all" },
    merge: { source: "_branch.output.value", target, strategy: "collect" },
    ...more,
  },
});

const ALL = { all: "state.all" };

async function run(flow: Flow, items: unknown[] = []): Promise<{ run: RunView; entries: RunEntryView[] }> {
  const { id } = await start({ ...STATE, ...flow }, { items });
  return { run: await ended(id), entries: await journal(id) };
}

/** Runs a workflow that must complete; returns its output. */
async function output(flow: Flow, items: unknown[] = []): Promise<unknown> {
  const { run: view } = await run(flow, items);
  expect(view).toMatchObject({ status: "completed", active: [] });
  return view.output;
}

describe("workflow scenarios", () => {
  test("scenario 01: F1 a single node", async () => {
    const one = work("one", "input.items", { outputMapping: { "state.got": "result.value" } });
    expect(
      await output({ initialNode: "one", nodes: [one], outputMapping: { got: "state.got" } }, [1, "two"]),
    ).toEqual({
      got: [1, "two"],
    });
  });

  test("scenario 02: F2 a fan-out by `spawnCount`", async () => {
    const nodes = [{ ref: "start" }, work("work", "7"), { ref: "end" }];
    const transitions = [fan("start", "work", 3), join("work", "end")];
    expect(await output({ nodes, transitions, outputMapping: ALL })).toEqual({ all: [7, 7, 7] });
  });

  test("scenario 03: F2 two fan-outs, one after the other", async () => {
    const nodes = [
      { ref: "start" },
      work("a", "item"),
      { ref: "mid" },
      work("b", "item * 10"),
      { ref: "end" },
    ];
    const transitions = [
      ...[fan("start", "a", "input.items"), join("a", "mid", {}, "state.first")],
      ...[fan("mid", "b", "state.first"), join("b", "end")],
    ];
    expect(await output({ nodes, transitions, outputMapping: ALL }, [1, 2])).toEqual({ all: [10, 20] });
  });

  test("scenarios 04 and 05: F1 state at any depth, written by one node and read by the next", async () => {
    const nodes = [
      work("one", "[1, 2]", {
        outputMapping: { "state.deep.er.list": "result.value", "state.deep.name": '"n"' },
      }),
      work("two", "state.deep.er.list.sum() + size(state.deep.name)", {
        outputMapping: { "state.got": "result.value" },
      }),
    ];
    const flow = { initialNode: "one", nodes, transitions: [{ from: "one", to: "two" }] };
    expect(await output({ ...flow, outputMapping: { got: "state.got", deep: "state.deep" } })).toEqual({
      got: 4,
      deep: { er: { list: [1, 2] }, name: "n" },
    });
  });

  test("scenario 06: F2 an explicit fan-out to different nodes", async () => {
    const nodes = [{ ref: "start" }, work("a", "'a'"), work("b", "'b'"), { ref: "end" }];
    const transitions = [
      ...[fan("start", "a", 1), fan("start", "b", 1)],
      ...[join("a", "end"), { ...join("b", "end") }],
    ];
    expect(await output({ nodes, transitions, outputMapping: ALL })).toEqual({ all: ["a", "b"] });
  });

  test.each([
    [80, "high"],
    [79, "middle"],
    [50, "middle"],
    [49, "low"],
  ])("scenario 07: F1 conditions by priority: %i is %s", async (score, path) => {
    const to = (ref: string, priority: number, condition?: string) => ({
      ...{ from: "start", to: ref, priority },
      ...(condition === undefined ? {} : { condition }),
    });
    const end = (ref: string) => work(ref, `'${ref}'`, { outputMapping: { "state.got": "result.value" } });
    const nodes = [{ ref: "start" }, end("high"), end("middle"), end("low")];
    const transitions = [
      ...[to("high", 0, "input.items[0] >= 80"), to("middle", 1, "input.items[0] >= 50")],
      to("low", 2),
    ];
    expect(await output({ nodes, transitions, outputMapping: { got: "state.got" } }, [score])).toEqual({
      got: path,
    });
  });

  test.each([3, 5, 1, 0])("scenario 08: F1 F4 `foreach` over %i items", async (count) => {
    const items = Array.from({ length: count }, (_, index) => index);
    const nodes = [{ ref: "start" }, work("work", "item + 1"), { ref: "end" }];
    const transitions = [fan("start", "work", "input.items"), join("work", "end")];
    const all = items.map((item) => item + 1);
    expect(await output({ nodes, transitions, outputMapping: ALL }, items)).toEqual({ all });
  });

  test.each([1, 3])(
    "scenario 09: F2 F7 the first of %i branches continues, and its output reaches the state",
    async (count) => {
      const nodes = [
        { ref: "start" },
        work("work", "item", {}, { wait: "item == 0 ? null : 'never'" }),
        { ref: "end" },
      ];
      const transitions = [fan("start", "work", "input.items"), join("work", "end", { strategy: "any" })];
      const items = Array.from({ length: count }, (_, index) => index);
      expect(await output({ nodes, transitions, outputMapping: ALL }, items)).toEqual({ all: [0] });
    },
  );

  test.each([
    [2, 3],
    [3, 5],
    [4, 4],
    [1, 3],
  ])("scenario 10: F2 %i of %i branches", async (m, total) => {
    const nodes = [
      { ref: "start" },
      work("work", "item", {}, { wait: `item < ${m} ? null : 'never'` }),
      { ref: "end" },
    ];
    const transitions = [fan("start", "work", "input.items"), join("work", "end", { strategy: { mOfN: m } })];
    const items = Array.from({ length: total }, (_, index) => index);
    expect(await output({ nodes, transitions, outputMapping: ALL }, items)).toEqual({
      all: items.slice(0, m),
    });
  });

  test("scenario 11: F2 a failure fails the run, and earlier writes stay", async () => {
    const nodes = [
      work("good", "1", { outputMapping: { "state.got": "result.value" } }),
      work("bad", "2", {}, { fails: "true" }),
    ];
    const { run: view } = await run({
      initialNode: "good",
      nodes,
      transitions: [{ from: "good", to: "bad" }],
    });
    expect(view).toMatchObject({ status: "failed", error: { code: "EXECUTION_FAILED" }, state: { got: 1 } });
  });

  test.each([
    ["fail", "failed", undefined],
    ["proceed_with_available", "completed", { all: [0] }],
  ])("scenario 12: F6 the time of a fan-in is over: %s", async (onTimeout, status, all) => {
    const nodes = [
      { ref: "start" },
      work("work", "item", {}, { wait: "item == 0 ? null : 'never'" }),
      { ref: "end" },
    ];
    const transitions = [
      fan("start", "work", "input.items"),
      join("work", "end", { timeoutMs: 300, onTimeout }),
    ];
    const { run: view, entries } = await run({ nodes, transitions, outputMapping: ALL }, [0, 1]);
    expect(view.status).toBe(status);
    expect(view.output).toEqual(all);
    expect(entries.filter(({ type }) => type === "sync.timeout")).toHaveLength(1);
  });

  test("scenario 13: F9 a sub-workflow", async () => {
    const inner = await post({
      ...STATE,
      initialNode: "one",
      nodes: [work("one", "input.items.sum()", { outputMapping: { "state.got": "result.value" } })],
      outputMapping: { sum: "state.got" },
    });
    const outer = {
      ...{ ref: "inner", workflow: inner },
      inputMapping: { key: "input.key", items: "input.items" },
      outputMapping: { "state.got": "result.sum" },
    };
    expect(
      await output({ initialNode: "inner", nodes: [outer], outputMapping: { got: "state.got" } }, [2, 3]),
    ).toEqual({
      got: 5,
    });
  });

  test("scenario 14: F9 a chain of ten", async () => {
    const refs = Array.from({ length: 10 }, (_, index) => `n${index}`);
    const nodes = refs.map((ref, index) =>
      work(ref, index === 0 ? "1" : "state.got + 1", { outputMapping: { "state.got": "result.value" } }),
    );
    const transitions = refs.slice(1).map((to, index) => ({ from: `n${index}`, to }));
    const flow = { initialNode: "n0", nodes, transitions, outputMapping: { got: "state.got" } };
    expect(await output(flow)).toEqual({ got: 10 });
  });

  test("planned: F3 a fan-out within a fan-out", async () => {
    const nodes = [
      ...[{ ref: "start" }, { ref: "row", outputMapping: { "output.row": "row" } }, work("cell", "item * 2")],
      ...[{ ref: "joined", outputMapping: { "output.value": "output.cells" } }, { ref: "end" }],
    ];
    const transitions = [
      ...[fan("start", "row", "input.items", "rows"), fan("row", "cell", "output.row")],
      join("cell", "joined", {}, "output.cells"),
      join("joined", "end", {}, "state.all", "rows"),
    ];
    expect(await output({ nodes, transitions, outputMapping: ALL }, [[1, 2], [3]])).toEqual({
      all: [[2, 4], [6]],
    });
  });

  test("planned: F3 a condition within a branch", async () => {
    const nodes = [
      { ref: "start" },
      { ref: "sort", outputMapping: { "output.n": "item" } },
      work("odd", "'odd'"),
      work("even", "'even'"),
      { ref: "end" },
    ];
    const transitions = [
      fan("start", "sort", "input.items"),
      { from: "sort", to: "odd", condition: "output.n % 2 == 1" },
      { from: "sort", to: "even", priority: 1 },
      ...[join("odd", "end"), join("even", "end")],
    ];
    expect(await output({ nodes, transitions, outputMapping: ALL }, [1, 2, 3])).toEqual({
      all: ["odd", "even", "odd"],
    });
  });

  test("planned: F2 a failed branch is reported, and the graph decides", async () => {
    const nodes = [
      { ref: "start" },
      work("work", "item", {}, { fails: "item == 1" }),
      { ref: "end", outputMapping: { "state.report": "fanIn.failed.map(f, f.branchIndex)" } },
      { ref: "mend", outputMapping: { "state.got": '"mended"' } },
    ];
    const transitions = [
      ...[fan("start", "work", "input.items"), join("work", "end")],
      { from: "end", to: "mend", condition: "size(state.report) > 0" },
    ];
    const outputMapping = { ...ALL, report: "state.report", got: "state.got" };
    expect(await output({ nodes, transitions, outputMapping }, [0, 1, 2])).toEqual({
      all: [0, 2],
      report: [1],
      got: "mended",
    });
  });

  test("planned: F9 a sub-workflow in each branch", async () => {
    const inner = await post({
      ...STATE,
      initialNode: "one",
      nodes: [work("one", "input.items[0] * 10", { outputMapping: { "state.got": "result.value" } })],
      outputMapping: { value: "state.got" },
    });
    const branch = {
      ...{ ref: "inner", workflow: inner, inputMapping: { key: "input.key", items: "[item]" } },
      outputMapping: { "output.value": "result.value" },
    };
    const nodes = [{ ref: "start" }, branch, { ref: "end" }];
    const transitions = [fan("start", "inner", "input.items"), join("inner", "end")];
    expect(await output({ nodes, transitions, outputMapping: ALL }, [1, 2, 3])).toEqual({
      all: [10, 20, 30],
    });
  });
});
