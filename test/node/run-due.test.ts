/** The wake-up times of a run, and the effects that a change starts and ends. Heartbeats are off here. */
import { describe, expect, test } from "vitest";
import { dueIn, effectsAfter, effectsOf, endedBy } from "../../src/agents/coordinator/core/effects.ts";
import type { PinnedNodeTask } from "../../src/protocol/pinned-workflow.ts";
import { PlayedRun } from "../support/workflows/play.ts";

const TASK: PinnedNodeTask = { library: "lib", id: "task", effect: "once", timeoutMs: 60_000 };
const ONE = { initialNode: "one", nodes: [{ ref: "one", task: "task" }] };
const retry = { maxAttempts: 3, backoffMs: 5_000 };

const failing = (run: PlayedRun) => ({
  ...run.ending("one", { error: { code: "FAILED", message: "Later." } }),
  transient: true as const,
});

describe("RUNEFFECT-1 a run wakes", () => {
  test("for heartbeats of a task: 1 s after it woke, later as its life gets older, and 60 s at most", () => {
    const { state, now } = new PlayedRun(ONE, {}, TASK);
    expect(dueIn(state, now, now)).toBe(1_000);
    expect(dueIn(state, now, now - 20_000)).toBe(20_000);
    expect(dueIn(state, now, now - 3_600_000)).toBe(60_000);
  });

  test("when the result of a lost task can no longer arrive, and not for its heartbeat", () => {
    const run = new PlayedRun(ONE, {}, TASK);
    run.take({ type: "run.recover" });
    expect(dueIn(run.state, run.now, run.now)).toBe(30_000);
    expect(effectsOf(run.state)).toEqual([]);
  });

  test("when an attempt begins, and after that for its heartbeats", () => {
    const run = new PlayedRun(ONE, {}, { ...TASK, effect: "pure", retry });
    run.take(failing(run));
    expect(dueIn(run.state, run.now, run.now)).toBe(5_000);
    expect(dueIn(run.state, run.now + 6_000, run.now + 6_000)).toBe(1_000);
  });

  test("at once if tokens can continue, which is an effect", () => {
    const run = new PlayedRun({
      initialNode: "start",
      nodes: [{ ref: "start" }, { ref: "a" }],
      transitions: ["g", "h", "i"].map((ref) => ({
        ...{ ref, from: "start", to: "a", siblingGroup: ref, spawnCount: 1_000 },
      })),
    });
    expect(run.state.tokens.size).toBeGreaterThan(0);
    expect(dueIn(run.state, run.now, run.now)).toBe(0);
    expect(effectsOf(run.state)).toEqual([{ kind: "advance", key: "advance" }]);
    expect(effectsAfter([], run.state)).toEqual([{ kind: "advance", key: "advance" }]);
  });

  test("no more once it is over", () => {
    const run = new PlayedRun(ONE, {}, TASK);
    run.end("one");
    expect(dueIn(run.state, run.now, run.now)).toBeNull();
  });
});

describe("RUNEFFECT-1 an attempt", () => {
  test("is a separate effect: the previous attempt's effect ends, and it begins", () => {
    const run = new PlayedRun(ONE, {}, { ...TASK, effect: "pure", retry });
    const before = run.state;
    const change = run.take(failing(run));
    if (change === null) throw new Error("Nothing has changed.");
    const [first] = effectsOf(before);
    const [second] = effectsAfter([change], run.state);
    expect(second?.key).not.toBe(first?.key);
    expect(endedBy([{ ...change, before }], run.state)).toEqual([first?.key]);
  });

  test("continues if a commit changes only other tokens", () => {
    const run = new PlayedRun(
      {
        initialNode: "start",
        nodes: [{ ref: "start" }, { ref: "one", task: "task" }],
        transitions: [{ from: "start", to: "one", siblingGroup: "g", spawnCount: 2 }],
      },
      {},
      TASK,
    );
    const before = run.state;
    const keys = effectsOf(before).map(({ key }) => key);
    const change = run.take(run.ending("one", { output: 1 }, 1));
    if (change === null) throw new Error("Nothing has changed.");
    expect(new Set(keys).size).toBe(2);
    expect(endedBy([{ ...change, before }], run.state)).toEqual([keys[1]]);
  });
});
