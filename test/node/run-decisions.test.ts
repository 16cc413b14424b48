/** The rules of runs, one by one, as their core decides them. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { runEnvelopes } from "../../src/agents/coordinator/core/run-envelopes.ts";
import { MAX_TOKENS } from "../../src/agents/coordinator/core/run-limits.ts";
import { openGate } from "../../src/agents/coordinator/core/run-time.ts";
import type { RunSignal } from "../../src/agents/coordinator/core/signals.ts";
import { merged } from "../../src/agents/coordinator/core/values.ts";
import { waitingGates } from "../../src/agents/coordinator/reads/run-views.ts";
import type { PinnedNodeTask } from "../../src/protocol/pinned-workflow.ts";
import type { MergeStrategy } from "../../src/protocol/workflow-definition.ts";
import type { Json } from "../../src/shared/json.ts";
import { toIso } from "../../src/shared/time.ts";
import { differences } from "../support/workflows/agreement.ts";
import { PlayedRun } from "../support/workflows/play.ts";

const task = (ref: string, more: object = {}) => ({ ref, task: "task", ...more });
const STATE = { contextSchema: { type: "object", properties: { all: {}, n: { default: 0 }, got: {} } } };

/** A fan-out over `input.items`, and its fan-in. */
const fan = (synchronization: object = {}, work: object = {}) => ({
  ...STATE,
  initialNode: "start",
  nodes: [
    { ref: "start" },
    task("work", { outputMapping: { "output.v": "result.v" }, ...work }),
    task("end"),
  ],
  transitions: [
    { from: "start", to: "work", siblingGroup: "g", foreach: { collection: "input.items", itemVar: "item" } },
    {
      from: "work",
      to: "end",
      synchronization: {
        siblingGroup: "g",
        strategy: "all",
        merge: { source: "_branch.output.v", target: "state.all", strategy: "collect" },
        ...synchronization,
      },
    },
  ],
  outputMapping: { all: "state.all" },
});

const three = (synchronization: object = {}) => new PlayedRun(fan(synchronization), { items: [1, 2, 3] });

describe("F1 the transitions after a node", () => {
  const routed = (output: Json) => {
    const run = new PlayedRun({
      ...STATE,
      initialNode: "score",
      nodes: [
        task("score", { outputMapping: { "state.n": "result" } }),
        task("good"),
        task("fair"),
        task("also"),
        task("poor"),
      ],
      transitions: [
        { from: "score", to: "good", priority: 1, condition: "state.n >= 80" },
        { from: "score", to: "fair", priority: 2, condition: "state.n >= 50" },
        { from: "score", to: "also", priority: 2 },
        { from: "score", to: "poor", priority: 3 },
      ],
    });
    run.end("score", output);
    return run;
  };

  test.each([
    [80, ["good"]],
    [79, ["fair", "also"]],
    [50, ["fair", "also"]],
    [49, ["also"]],
  ])("ROUTE-1 of %i lead to %j: the first priority with any that fires, and all of it", (score, nodes) => {
    expect([...routed(score).state.tokens.values()].map(({ node }) => node)).toEqual(nodes);
  });

  test("ROUTE-1 a condition without a boolean value fails the token, with the transition's name", () => {
    const run = new PlayedRun({
      initialNode: "a",
      nodes: [{ ref: "a" }, { ref: "b" }],
      transitions: [{ from: "a", to: "b", condition: "input.missing" }],
    });
    expect(run.state).toMatchObject({
      status: "failed",
      error: { code: "INVALID_INPUT", message: expect.stringContaining('transition "a-b"') },
    });
  });

  test.each([1, 3])("ROUTE-2 a loop of %i iterations fires as often, and then ends", (maxIterations) => {
    const run = new PlayedRun({
      ...STATE,
      initialNode: "again",
      nodes: [task("again"), task("out")],
      transitions: [
        { from: "again", to: "again", loopConfig: { maxIterations } },
        { from: "again", to: "out", priority: 1 },
      ],
    });
    for (let times = 0; times < maxIterations; times++) run.end("again");
    expect(run.of("loop_limit_reached")).toEqual([]);
    run.end("again");
    expect(run.of("loop_limit_reached")).toHaveLength(1);
    expect(run.at("out")).toHaveLength(1);
    run.end("out");
    expect(run.state.status).toBe("completed");
    expect(run.of("token.completed")).toHaveLength(maxIterations + 2);
  });

  const bounds = fc.tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 3 }));
  /** Ends the work of random tokens until the run is over. Returns how often each of two loops has fired. */
  const played = (run: PlayedRun, picks: readonly number[]) => {
    for (let step = 0; run.state.status === "running"; step++) {
      const working = [...run.state.tokens.values()].filter(({ phase }) => phase.kind === "working");
      const token = working[(picks[step % picks.length] ?? 0) % working.length];
      if (token === undefined || step > 300) throw new Error("It does not end.");
      const output = { n: (picks[step % picks.length] ?? 0) % 3 };
      run.take({ type: "node.ended", token: token.id, attempt: 1, outcome: { output } });
    }
    expect(differences(run.state, run.entries)).toEqual([]);
    const fired = run.of("transition.fired").map(({ data }) => (data as { transition: string }).transition);
    return ["one", "two"].map((ref) => fired.filter((own) => own === ref).length);
  };
  const order = fc.array(fc.nat(50), { minLength: 1, maxLength: 20 });

  test("ROUTE-2 two loops that fire together both count on the path after their fan-in, in any order", () => {
    fc.assert(
      fc.property(bounds, order, ([one, two], picks) => {
        const joins = { synchronization: { siblingGroup: "g", strategy: "all", onTimeout: "fail" } };
        const run = new PlayedRun({
          ...STATE,
          initialNode: "again",
          nodes: [
            task("again", { outputMapping: { "state.n": "result.n" } }),
            ...["left", "right", "out"].map((ref) => task(ref)),
          ],
          transitions: [
            ...[
              { ref: "one", to: "left", condition: "state.n != 1", loopConfig: { maxIterations: one } },
              { ref: "two", to: "right", condition: "state.n != 2", loopConfig: { maxIterations: two } },
            ].map((loop) => ({ from: "again", siblingGroup: "g", ...loop })),
            { from: "left", to: "again", ...joins },
            { from: "right", to: "again", ...joins },
            { from: "again", to: "out", priority: 1 },
          ],
        });
        const [first = 0, second = 0] = played(run, picks);
        expect(first).toBeLessThanOrEqual(one);
        expect(second).toBeLessThanOrEqual(two);
        expect(run.state.status).toBe("completed");
      }),
      { numRuns: 50 },
    );
  });

  test("ROUTE-2 without a fan-in each token counts the transitions of its own path, in any order", () => {
    fc.assert(
      fc.property(bounds, order, ([one, two], picks) => {
        const run = new PlayedRun({
          ...STATE,
          initialNode: "again",
          nodes: [task("again"), task("out")],
          transitions: [
            { ref: "one", from: "again", to: "again", loopConfig: { maxIterations: one } },
            { ref: "two", from: "again", to: "again", loopConfig: { maxIterations: two } },
            { from: "again", to: "out", priority: 1 },
          ],
        });
        // A way is a sequence of both loops in any order, with at most `one` and `two` of each.
        const ways = (left: number, right: number): [one: number, two: number] => {
          const [a, b] = left > 0 ? ways(left - 1, right) : [-1, 0];
          const [c, d] = right > 0 ? ways(left, right - 1) : [0, -1];
          return [a + 1 + c, b + d + 1];
        };
        expect(played(run, picks)).toEqual(ways(one, two));
      }),
      { numRuns: 50 },
    );
  });

  test.each([
    [[1, 2, 3], 3],
    [[1], 1],
    [[], 0],
  ])("ROUTE-3 a `foreach` over %j makes %i tokens, each with its item", (items, count) => {
    const run = new PlayedRun(
      { ...fan(), nodes: [{ ref: "start" }, task("work", { inputMapping: { x: "item" } }), task("end")] },
      { items },
    );
    expect(run.at("work").map(({ phase }) => (phase.kind === "working" ? phase.input : null))).toEqual(
      items.map((x) => ({ x })),
    );
    expect(run.of("fan_out.started")[0]?.data).toMatchObject({ total: count });
  });

  test("ROUTE-3 a value that is not a list is an error of the token", () => {
    const run = new PlayedRun(fan(), { items: "no list" });
    expect(run.state.error).toMatchObject({
      code: "INVALID_INPUT",
      message: expect.stringContaining("a list"),
    });
  });
});

describe("F2 F7 fan-ins", () => {
  test("FANIN-1 `all` waits for each branch, and fires once", () => {
    const run = three();
    run.end("work", { v: "a" }, 2);
    run.end("work", { v: "b" }, 0);
    expect(run.at("end")).toEqual([]);
    run.end("work", { v: "c" }, 0);
    expect(run.at("end")).toHaveLength(1);
    expect(run.state.state).toMatchObject({ all: ["b", "c", "a"] });
    expect(run.state.made.tokens).toBe(8);
  });

  test("F7 FANIN-1 of two arrivals at the same time one fires `any`, and there is one token after it", () => {
    const run = three({ strategy: "any" });
    const signals = [0, 1].map((index) => run.ending("work", { output: { v: index } }, index));
    run.take(...signals);
    expect(run.of("fan_in.completed")).toHaveLength(1);
    expect(run.at("end")).toHaveLength(1);
    expect(run.state.state).toMatchObject({ all: [0] });
  });

  test.each([
    [2, 3],
    [3, 5],
    [2, 2],
    [1, 3],
  ])(
    "FANIN-1 FANIN-5 %i of %i fire as soon as they completed, and the others are cancelled",
    (mOfN, total) => {
      const items = Array.from({ length: total }, (_, n) => n);
      const run = new PlayedRun(fan({ strategy: { mOfN } }), { items });
      for (let times = 1; times < mOfN; times++) run.end("work", { v: times });
      expect(run.at("end")).toEqual([]);
      run.end("work", { v: mOfN });
      expect(run.at("end")).toHaveLength(1);
      expect(run.of("token.cancelled")).toHaveLength(total - mOfN);
      expect(run.at("work")).toEqual([]);
    },
  );

  test("F4 FANIN-2 without branches it fires at once, with an empty merge", () => {
    const run = new PlayedRun(fan(), { items: [] });
    run.end("end");
    expect(run.state).toMatchObject({ status: "completed", output: { all: [] } });
  });

  test("FANIN-3 it fails when it can no longer fire, when no branch completed, and when too many failed", () => {
    const impossible = three({ strategy: { mOfN: 2 } });
    impossible.fail("work");
    expect(impossible.state.status).toBe("running");
    impossible.fail("work");
    expect(impossible.state).toMatchObject({ status: "failed", error: { code: "SYNC_UNSATISFIABLE" } });
    const none = three();
    for (let times = 0; times < 3; times++) none.fail("work");
    expect(none.state.error?.code).toBe("SYNC_UNSATISFIABLE");
    const many = three({ maxFailures: 0 });
    many.fail("work");
    expect(many.state.error?.code).toBe("SYNC_UNSATISFIABLE");
    const onward = three({ onTimeout: "proceed_with_available" });
    for (let times = 0; times < 3; times++) onward.fail("work");
    expect(onward.at("end")).toHaveLength(1);
  });

  test("FANIN-4 a failed branch is counted, with its error, and its other tokens are cancelled", () => {
    const flow = fan();
    const both = {
      ...flow,
      nodes: [
        { ref: "start" },
        { ref: "pair" },
        task("work"),
        task("side"),
        task("end", { inputMapping: { fanIn: "fanIn" } }),
      ],
      transitions: [
        { ...flow.transitions[0], to: "pair" },
        { from: "pair", to: "work" },
        { from: "pair", to: "side" },
        { ...flow.transitions[1] },
        { ...flow.transitions[1], from: "side" },
      ],
    };
    const run = new PlayedRun(both, { items: [1, 2] });
    run.fail("side", 1);
    expect(run.at("work")).toHaveLength(1);
    run.end("work");
    run.end("side");
    expect(run.at("end")[0]?.fanIn).toEqual({
      total: 2,
      completed: 1,
      failed: [{ branchIndex: 1, error: { code: "FAILED", message: "It fails." } }],
    });
  });

  test("FANIN-4 without a fan-in around it, a failure fails the run, and earlier writes stay", () => {
    const run = new PlayedRun({
      ...STATE,
      initialNode: "one",
      nodes: [task("one", { outputMapping: { "state.got": "result" } }), task("two")],
      transitions: [{ from: "one", to: "two" }],
    });
    run.end("one", "kept");
    run.fail("two");
    expect(run.state).toMatchObject({ status: "failed", error: { code: "FAILED" }, state: { got: "kept" } });
  });

  test.each([
    ["fail", { status: "failed", error: { code: "SYNC_TIMEOUT" } }],
    ["proceed_with_available", { status: "running" }],
  ])(
    "F6 FANIN-6 its time counts from the first arrival, and is over at its end, not before: %s",
    (onTimeout, after) => {
      const run = three({ timeoutMs: 1_000, onTimeout });
      run.pass(50_000);
      run.end("work", { v: 1 });
      run.pass(999);
      expect(run.of("sync.timeout")).toEqual([]);
      run.pass(1);
      expect(run.of("sync.timeout")).toHaveLength(1);
      expect(run.state).toMatchObject(after);
      expect(run.at("work")).toEqual([]);
    },
  );

  test("F3 a fan-out in a branch, and one in a loop, fire each time", () => {
    const inner = (ref: string, group: string) => [
      { from: `${ref}-in`, to: ref, siblingGroup: group, spawnCount: 2 },
      { from: ref, to: `${ref}-out`, synchronization: { siblingGroup: group, strategy: "all" } },
    ];
    const run = new PlayedRun({
      ...STATE,
      initialNode: "start",
      nodes: [
        { ref: "start" },
        { ref: "deep-in" },
        task("deep"),
        { ref: "deep-out" },
        task("end", { outputMapping: { "state.n": "state.n + 1" } }),
        { ref: "done" },
      ],
      transitions: [
        { from: "start", to: "deep-in", siblingGroup: "outer", spawnCount: 3 },
        ...inner("deep", "inner"),
        { from: "deep-out", to: "end", synchronization: { siblingGroup: "outer", strategy: "all" } },
        { from: "end", to: "start", condition: "state.n < 2", loopConfig: { maxIterations: 5 } },
        { from: "end", to: "done", priority: 1 },
      ],
    });
    for (let round = 0; round < 2; round++) {
      expect(run.at("deep")).toHaveLength(6);
      for (let times = 0; times < 6; times++) run.end("deep");
      run.end("end");
    }
    expect(run.state.status).toBe("completed");
    expect(run.of("fan_in.completed")).toHaveLength(8);
  });
});

describe("F5 MERGE-1 merges", () => {
  const branches = [
    { index: 0, output: { v: { a: 1, b: 1 } } },
    { index: 2, output: { v: { b: 3 } } },
  ];
  test.each<[MergeStrategy, Json]>([
    ["append", [{ a: 1, b: 1 }, { b: 3 }]],
    ["collect", [{ a: 1, b: 1 }, { b: 3 }]],
    ["merge_object", { a: 1, b: 3 }],
    ["keyed_by_branch", { "0": { a: 1, b: 1 }, "2": { b: 3 } }],
    ["last_wins", { b: 3 }],
  ])("by %s", (strategy, expected) => {
    expect(merged(strategy, "_branch.output.v", branches)).toEqual(expected);
  });

  test("`append` concatenates if all are lists, and keeps members with inherited names", () => {
    const lists = [
      { index: 0, output: { v: [1] } },
      { index: 1, output: { v: [2, [3]] } },
    ];
    expect(merged("append", "_branch.output.v", lists)).toEqual([1, 2, [3]]);
    expect(merged("collect", "_branch.output.v", lists)).toEqual([[1], [2, [3]]]);
    const odd = [{ index: 0, output: JSON.parse('{"v": {"__proto__": 1}}') }];
    expect(Object.keys(merged("merge_object", "_branch.output.v", odd) as object)).toEqual(["__proto__"]);
    expect(merged("last_wins", "_branch.output.v", [])).toEqual({});
  });
});

describe("F8 branches", () => {
  test("STEPS-3 write their own output, invisible to other branches", () => {
    const flow = fan({ merge: { source: "_branch.output", target: "state.all", strategy: "collect" } });
    const run = new PlayedRun(
      { ...flow, nodes: [{ ref: "start" }, task("work"), task("end", { inputMapping: { o: "output" } })] },
      { items: [1, 2] },
    );
    run.end("work", { mine: 1 });
    expect(run.state.root.output).toEqual({});
    run.end("work", { mine: 2 });
    expect(run.state.state).toMatchObject({ all: [{ mine: 1 }, { mine: 2 }] });
    const [end] = run.at("end");
    expect(end?.phase).toMatchObject({ input: { o: {} } });
    expect(run.state.fanOuts.size).toBe(0);
  });
});

describe("the end of a run", () => {
  test("STEPS-2 too many tokens, and its writes stay", () => {
    const run = new PlayedRun({
      ...STATE,
      initialNode: "a",
      nodes: [{ ref: "a", outputMapping: { "state.n": "state.n + 1" } }, { ref: "b" }],
      transitions: [
        { from: "a", to: "a", condition: "true" },
        { from: "a", to: "b", priority: 1 },
      ],
    });
    for (let commits = 0; run.state.status === "running" && commits < 1_000; commits++)
      run.take({ type: "run.advance" });
    expect(run.state).toMatchObject({ status: "failed", error: { code: "RUN_TOO_LONG" } });
    expect(run.state.made.tokens).toBe(MAX_TOKENS);
    expect(run.state.state.n).toBe(MAX_TOKENS);
  });

  test("STEPS-1 a commit takes a bounded number of steps, and the next commit continues", () => {
    const run = new PlayedRun({
      ...STATE,
      initialNode: "a",
      nodes: [{ ref: "a", outputMapping: { "state.n": "state.n + 1" } }, { ref: "b" }],
      transitions: [
        { from: "a", to: "a", condition: "state.n < 5000", loopConfig: { maxIterations: 10_000 } },
        { from: "a", to: "b", priority: 1 },
      ],
    });
    expect(run.state.status).toBe("running");
    const first = run.state.made.tokens;
    expect(first).toBeLessThan(3_000);
    run.take({ type: "run.advance" });
    expect(run.state.made.tokens).toBeGreaterThan(first);
  });

  const once: PinnedNodeTask = { library: "lib", id: "task", effect: "once", timeoutMs: 60_000 };
  const one = { initialNode: "one", nodes: [task("one")] };

  test("RUNSIGNAL-1 A73 F9 a repeated end, an end of another attempt, or an end after the run is ignored", () => {
    const run = new PlayedRun({
      initialNode: "one",
      nodes: [task("one"), task("two")],
      transitions: [{ from: "one", to: "two" }],
    });
    const end = run.ending("one", { output: 1 });
    run.take(end);
    expect(run.take(end)).toBeNull();
    const later = run.ending("two", { output: 2 });
    expect(run.take({ ...later, attempt: 2 } as typeof later)).toBeNull();
    run.take(later);
    expect(run.state.status).toBe("completed");
    expect(run.take(later, { type: "run.cancel", by: "ada" })).toBeNull();
  });

  test("RUNSIGNAL-2 a temporary failure is retried after a pause, but not for a `once` task", () => {
    const retry = { maxAttempts: 3, backoffMs: 100 };
    const run = new PlayedRun(one, {}, { ...once, effect: "idempotent", retry });
    const failing = () => ({
      ...run.ending("one", { error: { code: "FAILED", message: "Later." } }),
      transient: true as const,
    });
    run.take(failing());
    expect(run.at("one")[0]?.phase).toMatchObject({ attempt: 2, notBefore: run.now + 100 });
    run.take(failing());
    expect(run.at("one")[0]?.phase).toMatchObject({ attempt: 3, notBefore: run.now + 200 });
    run.take(failing());
    expect(run.state).toMatchObject({ status: "failed", error: { message: "Later." } });
    const never = new PlayedRun(one, {}, { ...once, retry });
    never.take({
      ...never.ending("one", { error: { code: "FAILED", message: "No." } }),
      transient: true,
    } as never);
    expect(never.state.status).toBe("failed");
  });

  test("RUNSIGNAL-3 after a crash a run waits for the result of a `once` task, and then its outcome is unknown", () => {
    const taken = new PlayedRun(one, {}, once);
    taken.take({ type: "run.recover" });
    taken.pass(29_999);
    taken.end("one", "late");
    expect(taken.state.status).toBe("completed");
    const lost = new PlayedRun(one, {}, once);
    lost.take({ type: "run.recover" });
    lost.pass(30_000);
    expect(lost.state).toMatchObject({ status: "failed", error: { code: "OUTCOME_UNKNOWN" } });
    const again = new PlayedRun(one);
    again.take({ type: "run.recover" });
    expect(again.at("one")[0]?.phase).toEqual({ kind: "working", attempt: 1, input: {} });
  });

  test("RUNSIGNAL-4 interruptions without progress end it, and progress forgets them", () => {
    const run = new PlayedRun({
      initialNode: "one",
      nodes: [task("one"), task("two")],
      transitions: [{ from: "one", to: "two" }],
    });
    const interrupt = (times: number) => {
      for (let n = 0; n < times; n++) {
        run.take({ type: "run.recover" });
        run.pass(60_000);
      }
    };
    interrupt(10);
    run.end("one");
    interrupt(10);
    expect(run.state.status).toBe("running");
    interrupt(1);
    expect(run.state).toMatchObject({ status: "failed", error: { code: "RECOVERY_EXHAUSTED" } });
    const waiting = new PlayedRun(
      one,
      {},
      { ...once, retry: { maxAttempts: 2, backoffMs: 1_000 }, effect: "pure" },
    );
    waiting.take({
      ...waiting.ending("one", { error: { code: "F", message: "F" } }),
      transient: true,
    } as never);
    expect(waiting.take({ type: "run.recover" })).toBeNull();
  });
});

test("RUNSIGNAL-6 a burst of crashes pauses its tasks and does not fail it", () => {
  const run = new PlayedRun({ initialNode: "one", nodes: [task("one")], transitions: [] });
  for (let crash = 0; crash < 100; crash++) {
    run.take({ type: "run.recover" });
    run.pass(1_000);
  }
  const recoveries = () => run.state.recoveries;
  expect(run.state.status).toBe("running");
  expect(recoveries()).toBeLessThanOrEqual(10);
  const before = recoveries();
  run.take({ type: "run.recover" });
  expect(recoveries()).toBe(before);
  run.end("one");
  expect(run.state).toMatchObject({ status: "completed" });
});

test("HOLD-1 RUNTIME-1 a run that asks for more time waits until a person answers", () => {
  const run = new PlayedRun({ initialNode: "work", nodes: [task("work")], timeoutMs: 1_000 });
  const { record } = run.state;
  const parent = { runId: "run_0", rootRunId: "run_0", operationId: `op_${"0".repeat(26)}`, attempt: 1 };
  run.state = { ...run.state, record: { ...record, parent } };
  const reported = (signal: RunSignal) => {
    const before = run.state;
    const change = run.take(signal);
    const envelopes = change === null ? [] : runEnvelopes(before, change);
    return envelopes.map(({ type, body }) => [type, body]);
  };
  const held = (isOn: boolean) => ["run.waits", expect.objectContaining({ isHeld: isOn })];
  const answer = () => {
    const token = openGate(run.state) ?? -1;
    return reported({ type: "gate.answered", token, answer: { approved: true }, by: "ada" });
  };
  for (let asked = 0; asked < 2; asked++) {
    run.now += 1_000;
    expect(reported({ type: "run.expire" })).toEqual([held(true)]);
    expect(waitingGates(run.state)).toMatchObject([{ approval: { requestedAt: toIso(run.now) } }]);
    expect(answer()).toEqual([held(false)]);
  }
});
