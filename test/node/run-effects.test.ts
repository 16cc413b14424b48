/** The effects of a run: its batches for the Executor, and their times. */
import { expect, test } from "vitest";
import { effectsOf } from "../../src/agents/coordinator/core/effects.ts";
import type { RunSignal } from "../../src/agents/coordinator/core/signals.ts";
import { RunEffectRunner } from "../../src/agents/coordinator/effects/effect-runner.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { BatchCaller, ToolInvocation } from "../../src/protocol/executor-api.ts";
import { PlayedRun } from "../support/workflows/play.ts";

/** A run of as many branches, each with a text as its input. */
function wide(branches: number, text: string): PlayedRun {
  const run = new PlayedRun(
    {
      initialNode: "start",
      nodes: [{ ref: "start" }, { ref: "work", task: "task", inputMapping: { text: "input.text" } }],
      transitions: [{ from: "start", to: "work", siblingGroup: "g", spawnCount: branches }],
    },
    { text },
  );
  while (run.at("work").some(({ phase }) => phase.kind !== "working")) run.take({ type: "run.advance" });
  return run;
}

function started(run: PlayedRun) {
  const batches: { calls: ToolInvocation[]; caller: BatchCaller }[] = [];
  const reports: RunSignal[][] = [];
  let stores = true;
  const runner = new RunEffectRunner({
    clock: new VirtualClock(),
    executor: {
      run(calls, caller) {
        batches.push({ calls, caller });
        return new Promise(() => undefined);
      },
    },
    turn: async () => undefined,
    runtime: run,
    report(signals) {
      reports.push([...signals]);
      return stores;
    },
  });
  const start = () => runner.start(effectsOf(run.state));
  start();
  return { batches, reports, start, refuse: () => (stores = false), runner };
}

test("RUNEFFECT-1 RUNBATCH-1 tasks go to the Executor in batches, each once at a time", async () => {
  const { batches, start } = started(wide(250, "x"));
  await Promise.resolve();
  expect(batches.map(({ calls }) => calls.length)).toEqual([100, 100, 50]);
  start();
  await Promise.resolve();
  expect(batches).toHaveLength(3);
  const ids = batches.flatMap(({ calls }) => calls.map(({ operationId }) => operationId));
  expect(new Set(ids).size).toBe(250);
  expect(batches[0]?.calls[0]).toMatchObject({
    attempt: 1,
    tool: { library: "lib", id: "task", version: 0 },
    context: { tenant: "local", runId: "run_1", node: "work" },
  });
});

test("RUNBATCH-1 large inputs make smaller batches", async () => {
  const { batches } = started(wide(10, "x".repeat(900_000)));
  await Promise.resolve();
  expect(batches.map(({ calls }) => calls.length)).toEqual([4, 4, 2]);
});

test("simultaneous results are committed together, and a result that is not stored is repeated as the same signal", async () => {
  const { batches, reports, refuse } = started(wide(3, "x"));
  await Promise.resolve();
  const [{ calls, caller } = { calls: [], caller: undefined }] = batches;
  const ends = calls.map(({ operationId }, n) => ({
    operationId,
    result: { tool_call_id: "", success: true, result: n },
  }));
  await caller?.report(ends.slice(0, 2));
  expect(reports).toEqual([
    [0, 1].map((n) => expect.objectContaining({ type: "node.ended", attempt: 1, outcome: { output: n } })),
  ]);
  refuse();
  const last = ends.slice(2);
  expect(await caller?.report(last)).toEqual(last.map(({ operationId }) => operationId));
  await caller?.report(last);
  expect(reports[2]?.[0]).toBe(reports[1]?.[0]);
});

test("RUNEFFECT-2 if a commit leaves tokens that can continue, another commit follows, without a wake-up", async () => {
  const { spawned, reports, clock } = looping();
  spawned.start([{ kind: "advance", key: "advance" }]);
  for (let turn = 0; turn < 10 && clock.nextDue !== undefined; turn++) {
    await clock.runNext();
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(reports).toEqual(Array.from({ length: 3 }, () => [{ type: "run.advance" }]));
});

/** A runner with tokens that can continue after its first two commits. */
function looping() {
  const clock = new VirtualClock();
  const reports: RunSignal[][] = [];
  const spawned: RunEffectRunner = new RunEffectRunner({
    clock,
    executor: { run: () => new Promise(() => undefined) },
    turn: async () => undefined,
    runtime: wide(1, ""),
    report(signals) {
      reports.push([...signals]);
      if (reports.length < 3) spawned.start([{ kind: "advance", key: "advance" }]);
      return true;
    },
  });
  return { spawned, reports, clock };
}
