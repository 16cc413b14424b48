/** Workflows within workflows: in code, posted, and pinned. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { checkedWorkflow } from "../../src/library/authoring/author-workflows.ts";
import { defineLibrary } from "../../src/library/define/define.ts";
import { defineWorkflow, node, transition, type Workflow } from "../../src/library/define/define-workflow.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { pinWorkflow } from "../../src/library/registry/pin.ts";
import type { Registry } from "../../src/library/registry/registry.ts";
import { MAX_LEVELS } from "../../src/library/workflows/workflow-limits.ts";
import type { ModelProfile } from "../../src/model/profile.ts";
import type { PinnedWorkflow } from "../../src/protocol/pinned-workflow.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import { library, taskOf, workflow } from "../support/authored-library.ts";

const defaultProfile: ModelProfile = { provider: "offline", modelId: "default" };
const pin = (registry: Registry, reference: string) => pinWorkflow(registry, reference, { defaultProfile });

/** A workflow by number, with the numbers of the workflows that it runs. */
type Graph = readonly (readonly number[])[];

/** Mostly chains, with ways beside them, and seldom a way back. */
const graphs: fc.Arbitrary<Graph> = fc.integer({ min: 1, max: 13 }).chain((size) => {
  const often = (percent: number) => fc.nat(99).map((chance) => chance < percent);
  const flow = (index: number) =>
    fc.tuple(often(95), often(30), often(3), fc.nat(index)).map(([next, beside, back, to]) => {
      const ahead = [...(next ? [index + 1] : []), ...(beside ? [index + 2] : [])];
      return [...ahead.filter((inner) => inner < size), ...(back ? [to] : [])];
    });
  return fc.tuple(...Array.from({ length: size }, (_, index) => flow(index)));
});

/** Returns the verdict on one workflow, by all ways down from it. */
function verdict(graph: Graph, root: number, above: readonly number[] = []): "fine" | "loop" | "deep" {
  if (above.includes(root)) return "loop";
  if (above.length === MAX_LEVELS) return "deep";
  for (const inner of graph[root] ?? []) {
    const found = verdict(graph, inner, [...above, root]);
    if (found !== "fine") return found;
  }
  return "fine";
}

const LOOP = /A workflow contains itself: /;
const DEEP = /Workflows may nest 10 levels deep: /;

async function verdictOf(work: () => unknown): Promise<"fine" | "loop" | "deep"> {
  try {
    await work();
    return "fine";
  } catch (error) {
    if (!(error instanceof DramatisError) || error.code !== "INVALID_INPUT") throw error;
    if (LOOP.test(error.message)) return "loop";
    if (DEEP.test(error.message)) return "deep";
    throw error;
  }
}

const flowIn = (id: string, inner: readonly string[]): Workflow =>
  defineWorkflow(id, {
    input: z.object({}),
    initialNode: "n0",
    nodes: ["", ...inner].map((one, index) => node(`n${index}`, one === "" ? {} : { workflow: one })),
    transitions: inner.map((_, index) => transition({ from: `n${index}`, to: `n${index + 1}` })),
  });

/** Returns the pinned workflows as nested ids. */
type Tree = { id: string; below: Tree[] };
const treeOf = ({ id, workflows }: PinnedWorkflow): Tree => ({
  id,
  below: Object.values(workflows).map(treeOf),
});
const expectedTree = (graph: Graph, root: number): Tree => ({
  id: `w${root}`,
  below: (graph[root] ?? []).map((inner) => expectedTree(graph, inner)),
});

describe("workflows within workflows", () => {
  test("NEST-1 NEST-2 NEST-3 have one verdict as code, when posted, and when pinned", async () => {
    const seen = { fine: 0, loop: 0, deep: 0 };
    await fc.assert(
      fc.asyncProperty(graphs, async (graph) => {
        const flows = graph.map((inner, n) =>
          flowIn(
            `w${n}`,
            inner.map((one) => `w${one}`),
          ),
        );
        const own = library();
        for (const { id, definition } of flows) await own.add("workflow", id, definition);
        const registry = own.registry();
        const expected = verdict(graph, 0);
        seen[expected] += 1;
        const ports = { registry, mayReach: () => true, mayReceiveKey: () => true };
        const [root] = flows;
        if (root === undefined) return;
        const pinned = () => pin(registry, "own/w0");
        const posted = () => checkedWorkflow(ports, { library: "own", id: "w0" }, root.definition);
        // A workflow may be both: which problem is found first depends on the way.
        const isFine = expected === "fine";
        expect((await verdictOf(pinned)) === "fine").toBe(isFine);
        expect((await verdictOf(posted)) === "fine").toBe(isFine);
        const areFine = graph.every((_, n) => verdict(graph, n) === "fine");
        const deployed = await verdictOf(() => defineLibrary("lib", { workflows: flows }));
        expect(deployed === "fine").toBe(areFine);
        if (!isFine) return;
        const whole = await pinned();
        expect(treeOf(whole)).toEqual(expectedTree(graph, 0));
        const byId = new Map<string, PinnedWorkflow>();
        const visit = (each: PinnedWorkflow) => {
          expect(byId.get(each.id) ?? each).toBe(each);
          byId.set(each.id, each);
          for (const inner of Object.values(each.workflows)) visit(inner);
        };
        visit(whole);
      }),
      { numRuns: 150 },
    );
    expect(Math.min(...Object.values(seen))).toBeGreaterThan(5);
  });

  test("NEST-1 a version of itself is refused, whichever path is checked first", async () => {
    for (const order of [
      ["k", "a"],
      ["a", "k"],
    ]) {
      const own = library();
      await own.add("workflow", "a", workflow([{}]));
      await own.add("workflow", "a", workflow([{ workflow: "k" }]));
      await own.add("workflow", "k", workflow([{ workflow: "a@1" }]));
      await own.add("workflow", "top", workflow(order.map((id) => ({ workflow: id }))));
      await expect(pin(own.registry(), "own/top")).rejects.toThrow(
        'Workflow "own/k", /nodes/0/workflow: A workflow contains itself: own/a > own/k > own/a. Remove one',
      );
    }
  });

  test("NEST-3 loops and depth over several deployed libraries stop the start", () => {
    const one = defineLibrary("one", { workflows: [flowIn("a", ["two/b"])] });
    const loop = defineLibrary("two", { workflows: [flowIn("b", ["one/a"])] });
    expect(() => new DeployedCode([one, loop])).toThrow(
      'Workflow "two/b", /nodes/1/workflow: A workflow contains itself: one/a > two/b > one/a.',
    );
    const chain = (length: number) =>
      defineLibrary("two", {
        workflows: [
          flowIn("b", ["w0"]),
          ...Array.from({ length }, (_, n) => flowIn(`w${n}`, n + 1 < length ? [`w${n + 1}`] : [])),
        ],
      });
    expect(() => new DeployedCode([one, chain(9)])).toThrow(DEEP);
    expect(new DeployedCode([one, chain(8)]).libraryIds).toEqual(["one", "two"]);
  });

  test("NEST-3 a reference that is unknown at the start is checked when it is pinned", async () => {
    const own = library([defineLibrary("lib", { workflows: [flowIn("a", ["own/b"])] })]);
    await own.add("workflow", "b", workflow([{ workflow: "lib/a" }]));
    await expect(pin(own.registry(), "lib/a")).rejects.toThrow(
      'Workflow "own/b", /nodes/0/workflow: A workflow contains itself: lib/a > own/b > lib/a.',
    );
  });

  test("NEST-2 the tasks of sub-workflows count, when posted, in code and when pinned", async () => {
    const own = library();
    await own.add("task", "t", taskOf({ kind: "llm", template: "Hello" }));
    // Different references to one task. Each reference counts as a part.
    for (let n = 0; n < 201; n++) await own.add("task", `t${n}`, taskOf({ kind: "llm", template: "Hello" }));
    const tasks = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, n) => ({ task: `t${from + n}` }));
    await own.add("workflow", "inner", workflow(tasks(0, 100)));
    const registry = own.registry();
    const ports = { registry, mayReach: () => true, mayReceiveKey: () => true };
    const top = (count: number) => workflow([{ workflow: "inner" }, ...tasks(100, 99 + count)]);
    const posting = (count: number) => checkedWorkflow(ports, { library: "own", id: "top" }, top(count));
    expect(await posting(100)).toEqual(top(100));
    const tooMany = "A workflow may name 200 tasks and workflows, including its sub-workflows";
    await expect(posting(101)).rejects.toThrow(tooMany);
    await own.add("workflow", "top", top(100));
    expect(Object.keys((await pin(own.registry(), "own/top")).tasks)).toHaveLength(99);
    await own.add("workflow", "top", top(101));
    await expect(pin(own.registry(), "own/top")).rejects.toThrow(
      `Workflow "own/top", /nodes/100/task: ${tooMany}`,
    );
    const inCode = (count: number) =>
      defineWorkflow("top", {
        input: z.object({}),
        initialNode: "n0",
        nodes: Array.from({ length: count }, (_, n) => node(`n${n}`, { task: `other/t${n}` })),
        transitions: Array.from({ length: count - 1 }, (_, n) =>
          transition({ from: `n${n}`, to: `n${n + 1}` }),
        ),
      });
    expect(() => defineLibrary("lib", { workflows: [inCode(200)] })).not.toThrow();
    expect(() => defineLibrary("lib", { workflows: [inCode(201)] })).toThrow(
      `Workflow "lib/top", /nodes/200/task: ${tooMany}`,
    );
  });
});
