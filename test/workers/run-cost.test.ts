/** The costs of runs (H5): rows and bytes at the ports of a run, counted on real Durable Object storage. */
import { runInDurableObject } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineLibrary } from "../../src/library/define/define.ts";
import { defineTask } from "../../src/library/define/define-task.ts";
import { defineWorkflow, node, transition } from "../../src/library/define/define-workflow.ts";
import type { JsonObject } from "../../src/shared/json.ts";
import { type CountedRun, countedRun } from "../support/counted-run.ts";

const echo = defineTask({
  id: "echo",
  input: z.object({ value: z.unknown() }),
  effect: "pure",
  execute: ({ value }) => ({ value }),
});
const fan = defineWorkflow("fan", {
  input: z.object({ items: z.array(z.unknown()) }),
  context: z.object({ all: z.array(z.unknown()) }),
  initialNode: "start",
  nodes: [
    node("start"),
    node("work", {
      task: echo,
      inputMapping: { value: "item" },
      outputMapping: { "output.value": "result.value" },
    }),
    node("end"),
  ],
  transitions: [
    transition({
      from: "start",
      to: "work",
      siblingGroup: "all",
      foreach: { collection: "input.items", itemVar: "item" },
    }),
    transition({
      from: "work",
      to: "end",
      synchronization: {
        siblingGroup: "all",
        strategy: "all",
        merge: { source: "_branch.output.value", target: "state.all", strategy: "collect" },
      },
    }),
  ],
  outputMapping: { size: "size(state.all)" },
});
const chain = defineWorkflow("chain", {
  input: z.object({}),
  initialNode: "n0",
  nodes: Array.from({ length: 50 }, (_, n) => node(`n${n}`, { task: echo, inputMapping: { value: `${n}` } })),
  transitions: Array.from({ length: 49 }, (_, n) => transition({ from: `n${n}`, to: `n${n + 1}` })),
});
/** Branches of `length` nodes in a row. Each node writes a member of its branch's output. */
const rows = (length: number) =>
  defineWorkflow(`rows_${length}`, {
    input: z.object({ items: z.array(z.unknown()) }),
    context: z.object({ all: z.array(z.unknown()) }),
    initialNode: "start",
    nodes: [
      node("start"),
      ...Array.from({ length }, (_, n) =>
        node(`n${n}`, {
          task: echo,
          inputMapping: { value: n === 0 ? "item" : `output.m${n - 1}` },
          outputMapping: { [`output.m${n}`]: "result.value" },
        }),
      ),
      node("end"),
    ],
    transitions: [
      transition({
        from: "start",
        to: "n0",
        siblingGroup: "all",
        foreach: { collection: "input.items", itemVar: "item" },
      }),
      ...Array.from({ length: length - 1 }, (_, n) => transition({ from: `n${n}`, to: `n${n + 1}` })),
      transition({
        from: `n${length - 1}`,
        to: "end",
        synchronization: {
          siblingGroup: "all",
          strategy: "all",
          merge: { source: "_branch.output", target: "state.all", strategy: "collect" },
        },
      }),
    ],
    outputMapping: { size: "size(state.all)" },
  });
/** Branches of one node that runs `rounds` times, and extends a list or a text of its branch's output each time. */
const growing = (kind: "list" | "text", rounds: number) => {
  const added = kind === "list" ? "[result.value]" : "result.value";
  return defineWorkflow(`growing_${kind}_${rounds}`, {
    input: z.object({ items: z.array(z.unknown()) }),
    context: z.object({ all: z.array(z.unknown()) }),
    initialNode: "start",
    nodes: [
      node("start"),
      node("work", {
        task: echo,
        inputMapping: { value: "input.items[0]" },
        outputMapping: { "output.own": `has(output.own) ? output.own + ${added} : ${added}` },
      }),
      node("end"),
    ],
    transitions: [
      transition({
        from: "start",
        to: "work",
        siblingGroup: "all",
        foreach: { collection: "input.items", itemVar: "item" },
      }),
      transition({ from: "work", to: "work", priority: 0, loopConfig: { maxIterations: rounds - 1 } }),
      transition({
        from: "work",
        to: "end",
        priority: 1,
        synchronization: {
          siblingGroup: "all",
          strategy: "all",
          merge: { source: "_branch.output.own", target: "state.all", strategy: "append" },
        },
      }),
    ],
    outputMapping: { size: kind === "list" ? "size(state.all)" : "size(state.all[0])" },
  });
};
const library = defineLibrary("cost", {
  tasks: [echo],
  workflows: [fan, chain, rows(1), rows(10), rows(50), growing("list", 100), growing("text", 100)],
});

/** Runs a workflow to its end in a fresh Durable Object. Returns its cost beyond its creation. */
const costOf = (workflow: string, input: JsonObject): Promise<CountedRun> =>
  runInDurableObject(exports.PortHost.getByName(crypto.randomUUID()), (_, { storage }) =>
    countedRun(storage, library, workflow, input),
  );

describe("H5 the cost of a run", () => {
  test("F2 RUNSTORE-2 a branch writes at most three rows, deletions included, however many there are", async () => {
    const of = async (count: number) => {
      const cost = await costOf("fan", { items: Array.from({ length: count }, (_, n) => n) });
      expect(cost.output).toEqual({ size: count });
      return cost;
    };
    const [few, many] = [await of(100), await of(1_000)];
    expect((many.rowsWritten - few.rowsWritten) / 900).toBeLessThanOrEqual(3);
    expect(few.rowsWritten).toBeLessThanOrEqual(3 * 100 + 40);
    expect((many.rowsRead - few.rowsRead) / 900).toBeLessThanOrEqual(4);
  });

  test("a node of a chain writes at most four rows, and reads no older rows", async () => {
    const { rowsWritten, rowsRead } = await costOf("chain", {});
    expect(rowsWritten / 50).toBeLessThanOrEqual(4);
    expect(rowsRead / 50).toBeLessThanOrEqual(4);
  });

  test.each([
    [1, 100],
    [10, 20],
    [50, 5],
  ])(
    "G4 RUNSTORE-4 the database of a run has at most 2.5 times the bytes of its content, with branches of %i nodes",
    async (nodes, branches) => {
      const item = "x".repeat(20_000);
      const items = Array.from({ length: branches }, () => item);
      const { bytes, output } = await costOf(`rows_${nodes}`, { items });
      expect(output).toEqual({ size: branches });
      // The list, the inputs and the outputs of its nodes, and the merge.
      const content = (1 + 3 * nodes) * branches * item.length;
      expect(bytes / content).toBeLessThanOrEqual(2.5);
    },
  );

  test.each([
    ["list", 2 * 100],
    ["text", 100 * 2_000],
  ])(
    "G4 RUNSTORE-4 the database of a run has at most 2.5 times the bytes of its content, with branches that extend a %s",
    async (kind, size) => {
      const [branches, rounds] = [2, 100];
      const items = Array.from({ length: branches }, () => "x".repeat(2_000));
      const { bytes, output } = await costOf(`growing_${kind}_${rounds}`, { items });
      expect(output).toEqual({ size });
      // The list, the inputs and the outputs of each round, and the merge.
      const content = (1 + 3 * rounds) * branches * 2_000;
      expect(bytes / content).toBeLessThanOrEqual(2.5);
    },
  );
});
