/** Runs of workflows that are killed at every boundary. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { RunRecord } from "../../src/agents/coordinator/core/record.ts";
import { defineLibrary } from "../../src/library/define/define.ts";
import { defineTask } from "../../src/library/define/define-task.ts";
import { defineWorkflow, node, transition } from "../../src/library/define/define-workflow.ts";
import type { ToolEffect } from "../../src/protocol/definition-parts.ts";
import { RunWorld } from "../simulation/run-faults/world.ts";
import { Crossings } from "../support/crossings.ts";
import { runWorkflow } from "../support/run-world.ts";

const PAUSE_MS = 60_000;

/** A workflow that reads documents, three pages each, in a loop of two rounds. */
function world(effect: ToolEffect) {
  const ran = new Map<string, number>();
  const read = defineTask({
    id: "read",
    input: z.object({ page: z.number(), round: z.number() }),
    output: z.object({ text: z.string() }),
    effect,
    execute({ page, round }, context) {
      ran.set(context.operationId, (ran.get(context.operationId) ?? 0) + 1);
      return { text: `${round}:${page}` };
    },
  });
  const sum = defineTask({
    id: "sum",
    input: z.object({ texts: z.array(z.string()), round: z.number() }),
    output: z.object({ round: z.number(), all: z.string() }),
    effect: "idempotent",
    execute({ texts, round }) {
      return { round: round + 1, all: texts.join(" ") };
    },
  });
  const workflow = defineWorkflow("pages", {
    input: z.object({ pages: z.array(z.number()) }),
    context: z.object({ texts: z.array(z.string()), round: z.number().default(0), all: z.string() }),
    initialNode: "start",
    nodes: [
      node("start"),
      node("read", {
        task: read,
        inputMapping: { page: "page", round: "state.round" },
        outputMapping: { "output.text": "result.text" },
      }),
      node("sum", {
        task: sum,
        inputMapping: { texts: "state.texts", round: "state.round" },
        outputMapping: { "state.round": "result.round", "state.all": "result.all" },
      }),
      node("end"),
    ],
    transitions: [
      transition({
        from: "start",
        to: "read",
        siblingGroup: "pages",
        foreach: { collection: "input.pages", itemVar: "page" },
      }),
      transition({
        from: "read",
        to: "sum",
        synchronization: {
          siblingGroup: "pages",
          strategy: "all",
          onTimeout: "proceed_with_available",
          merge: { source: "_branch.output.text", target: "state.texts", strategy: "collect" },
        },
      }),
      transition({
        from: "sum",
        to: "start",
        condition: "state.round < 2",
        loopConfig: { maxIterations: 5 },
      }),
      transition({ from: "sum", to: "end", priority: 1 }),
    ],
    outputMapping: { all: "state.all", round: "state.round" },
  });
  const library = defineLibrary("lib", { tasks: [read, sum], workflows: [workflow] });
  const record: Omit<RunRecord, "createdAt"> = {
    id: "run_01",
    tenant: "local",
    projectId: "default",
    stem: "01ARZ3NDEKTSV4RRFFQ",
    workflow: {
      library: "lib",
      id: "pages",
      version: 1,
      hash: "",
      definition: workflow.definition,
      workflows: {},
      tasks: {
        read: { library: "lib", id: "read", effect, timeoutMs: 60_000 },
        sum: { library: "lib", id: "sum", effect: "idempotent", timeoutMs: 60_000 },
      },
    },
    input: { pages: [1, 2, 3] },
    startedBy: "ada",
    request: "",
  };
  return { library, record, ran };
}

describe("H1 A72 F3 F8 a crash at any boundary of a run", () => {
  test.each<ToolEffect>(["pure", "idempotent"])(
    "of %s tasks: it completes as without a crash",
    async (effect) => {
      const { library, record } = world(effect);
      const golden = new Crossings();
      const { state, entries } = await runWorkflow(library, record, golden);
      expect(state.output).toEqual({ all: "1:1 1:2 1:3", round: 2 });
      expect(entries.filter(({ type }) => type === "fan_in.completed")).toHaveLength(2);
      for (let point = 0; point < golden.count; point++) {
        const run = world(effect);
        const crashed = await runWorkflow(run.library, run.record, new Crossings([point]));
        const at = `crash at point ${point}, ${golden.names[Math.floor(point / 2)]}`;
        expect(crashed.lives, at).toBe(2);
        expect(crashed.state.output, at).toEqual(state.output);
        expect(crashed.state.made, at).toEqual(state.made);
      }
    },
    60_000,
  );

  test("of `once` tasks: each runs at most once, and lost work has an unknown outcome", async () => {
    const { library, record } = world("once");
    const golden = new Crossings();
    await runWorkflow(library, record, golden);
    let unknown = 0;
    for (let point = 0; point < golden.count; point++) {
      const run = world("once");
      const { state, entries } = await runWorkflow(run.library, run.record, new Crossings([point]));
      const at = `crash at point ${point}, ${golden.names[Math.floor(point / 2)]}`;
      expect(state.status, at).toBe("completed");
      expect(run.ran.size, at).toBeGreaterThan(2);
      for (const times of run.ran.values()) expect(times, at).toBe(1);
      const failed = entries.filter(({ type }) => type === "task.failed");
      unknown += failed.length;
      for (const { data } of failed) expect(data, at).toMatchObject({ error: { code: "OUTCOME_UNKNOWN" } });
    }
    expect(unknown).toBeGreaterThan(0);
  }, 180_000);
});

test("H1 STOREDTIME-2 RUNSIGNAL-2 the pause before an attempt survives a crash, and a crash after the pause counts, if the clock was set back by less than the pause", async () => {
  const begun: number[] = [];
  const work = defineTask({
    id: "work",
    input: z.object({}),
    output: z.object({}),
    effect: "idempotent",
    execute() {
      begun.push(faulty.clock.elapsed);
      if (begun.length === 1) throw new Error("It breaks, once.");
      return begun.length === 2 ? new Promise<never>(() => undefined) : {};
    },
  });
  const { definition } = defineWorkflow("once-more", {
    input: z.object({}),
    initialNode: "work",
    nodes: [node("work", { task: work })],
  });
  const task = { library: "lib", id: "work", effect: "idempotent", timeoutMs: 600_000 } as const;
  const retry = { maxAttempts: 3, backoffMs: PAUSE_MS };
  const faulty = new RunWorld(defineLibrary("lib", { tasks: [work] }), new Crossings(), () => undefined);
  const { record } = world("pure");
  const tasks = { work: { ...task, retry } };
  await faulty.start({ ...record, input: {}, workflow: { ...record.workflow, definition, tasks } });
  const entries = () =>
    faulty.call(({ store }) => store.journal.forward(1, 100).flatMap((row) => row.entries));
  const recoveries = async () => (await entries()).filter(({ type }) => type === "workflow.recovered").length;
  while (!(await entries()).some(({ type }) => type === "task.retried")) await faulty.clock.runNext();
  faulty.kill();
  expect(await recoveries()).toBe(0);
  while (begun.length < 2) await faulty.clock.runNext();
  const [first = 0, second = 0] = begun;
  expect(second - first).toBeGreaterThanOrEqual(PAUSE_MS);
  faulty.kill();
  faulty.setClock(-PAUSE_MS / 2);
  expect(await recoveries()).toBe(1);
  while (!faulty.isOver) await faulty.clock.runNext();
  expect(await faulty.call(({ state }) => state.status)).toBe("completed");
  expect([begun.length, faulty.violations]).toEqual([3, []]);
});
