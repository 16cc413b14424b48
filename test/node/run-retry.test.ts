/** Retries of failed runs, as the core decides them. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { waitsForPerson } from "../../src/agents/coordinator/core/holds.ts";
import type { RunRecord } from "../../src/agents/coordinator/core/record.ts";
import { runEnvelopes } from "../../src/agents/coordinator/core/run-envelopes.ts";
import { MAX_RETRIES } from "../../src/agents/coordinator/core/run-limits.ts";
import { mayBeRetried, repeatedEffects } from "../../src/agents/coordinator/core/run-retry.ts";
import type { NodeOutcome } from "../../src/agents/coordinator/core/state.ts";
import { runView } from "../../src/agents/coordinator/reads/run-views.ts";
import type { PinnedNodeTask } from "../../src/protocol/pinned-workflow.ts";
import type { Json } from "../../src/shared/json.ts";
import { changedInputs } from "../support/workflows/agreement.ts";
import { PlayedRun } from "../support/workflows/play.ts";

const task = (ref: string, more: object = {}) => ({ ref, task: "task", ...more });
const ONCE: PinnedNodeTask = { library: "lib", id: "task", effect: "once", timeoutMs: 60_000 };
const STATE = { contextSchema: { type: "object", properties: { all: {}, outer: {} } } };

/** A fan-out over `input.items`, with branches of two nodes, and its fan-in. */
const fan = (synchronization: object = {}, more: object = {}) => ({
  ...STATE,
  initialNode: "start",
  nodes: [
    { ref: "start" },
    task("read", { outputMapping: { "output.read": "result" } }),
    task("work", { outputMapping: { "output.v": "result" } }),
    task("end"),
  ],
  transitions: [
    { from: "start", to: "read", siblingGroup: "g", foreach: { collection: "input.items", itemVar: "item" } },
    { from: "read", to: "work" },
    {
      from: "work",
      to: "end",
      synchronization: {
        siblingGroup: "g",
        strategy: "all",
        maxFailures: 0,
        merge: { source: "_branch.output", target: "state.all", strategy: "collect" },
        ...synchronization,
      },
    },
  ],
  outputMapping: { all: "state.all" },
  ...more,
});

const one = { initialNode: "one", nodes: [task("one", { inputMapping: { n: "input.n" } })] };
const retry = { type: "run.retry", by: "ada" } as const;
const failure = (code: string): NodeOutcome => ({ error: { code, message: "No." } });

/** A run of one node that has failed with a code. */
function failed(code: string, given?: PinnedNodeTask): PlayedRun {
  const run = new PlayedRun(one, { n: 1 }, given);
  run.take(run.ending("one", failure(code)));
  expect(run.state.status).toBe("failed");
  return run;
}

function withRecord(run: PlayedRun, more: Partial<RunRecord>): PlayedRun {
  run.state = { ...run.state, record: { ...run.state.record, ...more } };
  return run;
}

/** Ends the run of `fan` from the nodes that work. */
function finish(run: PlayedRun): PlayedRun {
  while (run.at("read").length > 0) run.end("read", "again");
  while (run.at("work").length > 0) run.end("work", "done");
  run.end("end");
  return run;
}

describe("RUNRETRY-1 a retry", () => {
  test("repeats the failed and the cancelled branches of a fan-in, each from its node, and keeps completed branches", () => {
    const run = new PlayedRun(fan(), { items: [1, 2, 3] });
    run.end("read", "first");
    run.end("work", "done");
    run.end("read", "second");
    run.fail("work");
    expect(run.state).toMatchObject({ status: "failed", error: { code: "SYNC_UNSATISFIABLE" } });
    expect(run.state).toMatchObject({ tokens: new Map(), fanOuts: new Map() });
    run.take(retry);
    expect(run.state).toMatchObject({ status: "running" });
    expect(run.state.error).toBeUndefined();
    expect(run.state.stopped).toBeUndefined();
    expect(run.at("work")).toHaveLength(1);
    expect(run.at("read")).toHaveLength(1);
    finish(run);
    expect(run.state).toMatchObject({
      status: "completed",
      output: {
        all: [
          { read: "first", v: "done" },
          { read: "second", v: "done" },
          { read: "again", v: "done" },
        ],
      },
    });
    expect(run.of("workflow.retried")).toEqual([
      { type: "workflow.retried", data: { by: "ada", tokens: [3, 6], fanOuts: [0] } },
    ]);
    expect(run.of("fan_in.completed")).toHaveLength(1);
  });

  test("continues inside nested fan-outs with a failure that reached the run", () => {
    const spawn = (from: string, siblingGroup: string) => ({ siblingGroup, from, spawnCount: 2 });
    const join = (siblingGroup: string, source: string, target: string) => ({
      synchronization: {
        siblingGroup,
        strategy: "all",
        maxFailures: 0,
        merge: { source, target, strategy: "collect" },
      },
    });
    const run = new PlayedRun({
      ...STATE,
      initialNode: "a",
      nodes: [
        { ref: "a" },
        { ref: "b" },
        task("c", { outputMapping: { "output.v": "result" } }),
        { ref: "d" },
        { ref: "e" },
      ],
      transitions: [
        { ...spawn("a", "outer"), to: "b" },
        { ...spawn("b", "inner"), to: "c" },
        { from: "c", to: "d", ...join("inner", "_branch.output.v", "output.all") },
        { from: "d", to: "e", ...join("outer", "_branch.output.all", "state.all") },
      ],
      outputMapping: { all: "state.all" },
    });
    run.end("c", 0, 0);
    run.end("c", 9, 2);
    run.fail("c", 1);
    expect(run.state.status).toBe("failed");
    expect([...(run.state.stopped?.fanOuts.keys() ?? [])]).toHaveLength(3);
    run.take(retry);
    run.end("c", 1);
    run.end("c", 3);
    expect(run.state).toMatchObject({
      status: "completed",
      output: {
        all: [
          [0, 1],
          [3, 9],
        ],
      },
    });
  });

  test("does not repeat a branch of a fan-in that has fired, and a run without a failure stores no retry state", () => {
    const lenient = (after: (run: PlayedRun) => void) => {
      const run = new PlayedRun(fan({ maxFailures: 1 }), { items: [1, 2] });
      run.fail("read");
      expect(run.state.stopped?.tokens.size).toBe(1);
      after(run);
      return run;
    };
    const cancelled = lenient((run) => run.take({ type: "run.cancel", by: "ada" }));
    expect(cancelled.state.stopped).toBeUndefined();
    const run = lenient((running) => {
      running.end("read");
      running.end("work", "done");
    });
    expect(run.state.stopped).toBeUndefined();
    run.fail("end");
    run.take(retry);
    expect([...run.state.tokens.values()].map(({ node }) => node)).toEqual(["end"]);
    run.end("end");
    expect(run.state).toMatchObject({ status: "completed", output: { all: [{ read: {}, v: "done" }] } });
  });

  test("also restarts work that a failure elsewhere has cancelled, and fails again without a fix", () => {
    const run = new PlayedRun({
      initialNode: "start",
      nodes: [{ ref: "start" }, task("bad"), task("good")],
      transitions: [
        { from: "start", to: "bad" },
        { from: "start", to: "good" },
      ],
    });
    run.fail("bad");
    expect(run.of("token.cancelled").map(({ node }) => node)).toEqual(["good"]);
    run.take(retry);
    run.fail("bad");
    run.take(retry);
    run.end("good");
    run.end("bad");
    expect(run.state.status).toBe("completed");
    expect(run.of("task.completed")).toHaveLength(2);
  });

  test("stores no retry state if only a merge has failed", () => {
    const merge = { source: "_branch.output.v", target: "state.all.x", strategy: "collect" };
    const run = new PlayedRun(
      fan({ merge }, { contextSchema: { type: "object", properties: { all: { default: "text" } } } }),
      { items: [1] },
    );
    run.end("read");
    run.end("work");
    expect(run.state.status).toBe("failed");
    expect(run.state.stopped).toBeUndefined();
    expect(() => run.take(retry)).toThrow("This run has no work to repeat");
  });
});

describe("RUNRETRY-2 a retried token", () => {
  const besideAgent = {
    initialNode: "start",
    nodes: [{ ref: "start" }, task("bad"), { ref: "ask", agent: "clerk" }],
    transitions: [
      { from: "start", to: "bad" },
      { from: "start", to: "ask" },
    ],
  };

  test("has a higher attempt and the same input, and ignores results of an earlier attempt", () => {
    const run = failed("EXECUTION_FAILED");
    const input = { n: 1 };
    run.take(retry);
    const [token] = run.at("one");
    expect(token?.phase).toEqual({ kind: "working", attempt: 2, input });
    expect(run.of("task.dispatched").at(-1)?.data).toEqual({ input, attempt: 2 });
    expect(run.take({ type: "node.ended", token: 0, attempt: 1, outcome: { output: "late" } })).toBeNull();
    run.end("one");
    expect(run.state.status).toBe("completed");
  });

  test("has the input of its first attempt, also after other tokens have written, in any order", () => {
    const reads = { inputMapping: { n: "state.n" }, outputMapping: { "state.n": "result" } };
    const flow = {
      contextSchema: { type: "object", properties: { n: { default: 0 } } },
      initialNode: "start",
      nodes: [{ ref: "start" }, ...["a", "b", "c", "a2", "b2", "c2"].map((ref) => task(ref, reads))],
      transitions: ["a", "b", "c"].flatMap((ref) => [
        { from: "start", to: ref },
        { from: ref, to: `${ref}2` },
      ]),
    };
    const step = fc.record({ pick: fc.nat(5), fails: fc.boolean() });
    let changed = 0;
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 25 }), (steps) => {
        const run = new PlayedRun(flow);
        for (const [index, { pick, fails }] of steps.entries()) {
          if (run.state.status === "failed") run.take(retry);
          const working = [...run.state.tokens.values()].filter(({ phase }) => phase.kind === "working");
          const token = working[pick % working.length];
          if (token === undefined) break;
          if (token.phase.kind === "working" && token.phase.attempt > 1)
            changed += Number(
              (token.phase.input as { n: number }).n !== (run.state.state as { n: number }).n,
            );
          if (fails) run.fail(token.node);
          else run.end(token.node, index + 1);
        }
        expect(changedInputs(run.entries)).toEqual([]);
      }),
    );
    expect(changed, "retries of tokens that would read another value").toBeGreaterThan(20);
  });

  test("has all attempts of its policy once more", () => {
    const policy = { maxAttempts: 2, backoffMs: 0 };
    const run = new PlayedRun(one, { n: 1 }, { ...ONCE, effect: "pure", retry: policy });
    const breaks = () =>
      run.take({ ...run.ending("one", failure("EXECUTION_FAILED")), transient: true } as never);
    for (const status of ["running", "failed"]) {
      breaks();
      expect(run.state.status).toBe(status);
    }
    run.take(retry);
    for (const status of ["running", "failed"]) {
      breaks();
      expect(run.state.status).toBe(status);
    }
    expect(run.of("task.failed").map(({ data }) => data)).toEqual([
      expect.objectContaining({ attempt: 2 }),
      expect.objectContaining({ attempt: 4 }),
    ]);
  });

  test.each(["once", "idempotent"] as const)("of a %s task has its operation", (effect) => {
    const run = failed("EXECUTION_FAILED", { ...ONCE, effect });
    run.take({ ...retry, repeatOnce: true });
    run.take(run.ending("one", failure("EXECUTION_FAILED")));
    run.take({ ...retry, repeatOnce: true });
    expect(run.at("one")[0]?.again).toEqual({ attempts: 2, operations: effect === "once" ? 2 : 0 });
  });

  test("starts a new run and a new conversation, beside the cancelled ones", () => {
    const run = new PlayedRun(besideAgent);
    const sent = (change: () => unknown) => {
      const before = run.state;
      const taken = change();
      return runEnvelopes(before, taken as never).map(({ type, to }) => [type, to.id] as const);
    };
    const [[cancel, first] = []] = sent(() => run.take(run.ending("bad", failure("EXECUTION_FAILED"))));
    run.now += 60 * 60_000;
    const [[call, second] = []] = sent(() => run.take({ ...retry, repeatOnce: true }));
    expect([cancel, call]).toEqual(["agent.cancel", "agent.call"]);
    expect(second).not.toBe(first);
    expect(run.at("ask")[0]?.createdAt, "the time for the answer restarts").toBe(run.now);
  });

  test("HOLD-1 ignores a late message about a wait of the cancelled run or conversation", () => {
    const run = new PlayedRun(besideAgent);
    run.take(run.ending("bad", failure("EXECUTION_FAILED")));
    run.take({ ...retry, repeatOnce: true });
    const [{ id: token } = { id: -1 }] = run.at("ask");
    const held = { type: "run.waits", token, wait: { seq: 9, isHeld: true } } as const;
    expect(run.take({ ...held, attempt: 1 })).toBeNull();
    expect(waitsForPerson(run.state)).toBe(false);
    run.take({ ...held, attempt: 2 });
    expect(waitsForPerson(run.state)).toBe(true);
  });
});

describe("RUNRETRY-3 effects that may not happen twice", () => {
  test.each([
    "EXECUTION_FAILED",
    "NOT_FOUND",
    "OUTCOME_UNKNOWN",
    "TIMEOUT",
    "CANCELLED",
    "INTERNAL_ERROR",
    "TOO_LARGE",
  ])("after %s of a `once` task, a retry needs `repeatOnce`, and of a `pure` one it does not", (code) => {
    const run = failed(code, ONCE);
    const before = run.state;
    expect(runView({ state: before, endedAt: 1 }).retry).toEqual({ tokens: 1, repeatsOnce: ["one"] });
    expect(() => run.take(retry)).toThrow(expect.objectContaining({ code: "OUTCOME_UNKNOWN" }));
    expect(run.state).toBe(before);
    run.take({ ...retry, repeatOnce: true });
    expect(run.state.status).toBe("running");
    expect(repeatedEffects(failed(code).state)).toEqual([]);
  });

  test("are a cancelled `once` task, and a `once` task with an output that could not be written", () => {
    const cancelled = new PlayedRun(fan(), { items: [1, 2] }, ONCE);
    cancelled.fail("read");
    expect(repeatedEffects(cancelled.state)).toEqual(["read"]);
    const mapped = new PlayedRun(
      { ...one, ...STATE, nodes: [task("one", { outputMapping: { "state.all": "result.missing.x + 1" } })] },
      {},
      ONCE,
    );
    mapped.end("one", {});
    expect(repeatedEffects(mapped.state)).toEqual(["one"]);
  });

  test("are an agent that has begun before, and waits to begin again", () => {
    const run = new PlayedRun({ initialNode: "ask", nodes: [{ ref: "ask", agent: "clerk" }] });
    run.take(run.ending("ask", failure("NOT_FOUND")));
    const [token] = [...(run.state.stopped?.tokens.values() ?? [])];
    if (token === undefined) throw new Error("Nothing is kept.");
    const again = { ...token, phase: { kind: "ready" } as const, again: { attempts: 1, operations: 0 } };
    run.state = { ...run.state, stopped: { tokens: new Map([[0, again]]), fanOuts: new Map() } };
    expect(repeatedEffects(run.state)).toEqual(["ask"]);
  });

  test("are agents, and sub-workflows that contain such effects", () => {
    const outer = (tasks: Record<string, PinnedNodeTask>, agent?: string) => {
      const inner = { ref: "deep", ...(agent === undefined ? { task: "task" } : { agent }) };
      const definition = { inputSchema: {}, initialNode: "deep", nodes: [inner], transitions: [] };
      const sub = { library: "lib", id: "sub", version: 1, hash: "", definition, tasks, workflows: {} };
      const run = new PlayedRun({ initialNode: "inner", nodes: [{ ref: "inner", workflow: "sub" }] });
      const { workflow } = run.state.record;
      withRecord(run, { workflow: { ...workflow, workflows: { inner: sub as never } } });
      run.fail("inner");
      return repeatedEffects(run.state);
    };
    expect(outer({ deep: ONCE })).toEqual(["inner"]);
    expect(outer({ deep: { ...ONCE, effect: "idempotent" } })).toEqual([]);
    expect(outer({}, "clerk")).toEqual(["inner"]);
    const agent = new PlayedRun({ initialNode: "ask", nodes: [{ ref: "ask", agent: "clerk" }] });
    agent.fail("ask");
    expect(repeatedEffects(agent.state)).toEqual(["ask"]);
  });
});

describe("RUNRETRY-4 a retry is refused", () => {
  const refused = (run: PlayedRun, message: string | RegExp, seq?: number) => {
    const before = run.state;
    const signal = seq === undefined ? retry : { ...retry, seq };
    expect(() => run.take(signal)).toThrow(expect.objectContaining({ code: "CONFLICT" }));
    expect(() => run.take(signal)).toThrow(message);
    expect(run.state).toBe(before);
    expect(runView({ state: before, endedAt: 1 }).retry).toBeUndefined();
  };

  test("if the run has not failed", () => {
    const run = new PlayedRun(one);
    refused(run, "This run is running.");
    run.end("one");
    refused(run, "This run is completed.");
    const cancelled = new PlayedRun(one);
    cancelled.take({ type: "run.cancel", by: "ada" });
    refused(cancelled, "This run is cancelled.");
    const late = new PlayedRun({ ...one, timeoutMs: 10, onTimeout: "fail" });
    late.pass(10);
    refused(late, "This run is timed_out.");
  });

  test("the second time, and if the run has failed again since the caller saw it", () => {
    const run = failed("EXECUTION_FAILED");
    const { seq } = run.state;
    run.take({ ...retry, seq });
    refused(run, "This run is running.");
    run.fail("one");
    expect(() => run.take({ ...retry, seq })).toThrow("This run has advanced since you saw it.");
    run.take({ ...retry, seq: run.state.seq });
    expect(run.state.status).toBe("running");
  });

  test.each<[string, Partial<RunRecord>, string]>([
    [
      "the run above",
      { parent: { runId: "run_2", rootRunId: "run_2", operationId: "op_1", attempt: 1 } },
      'Retry the parent run: "run_2".',
    ],
    ["the conversation that owns the tool", { path: ["guide"] }, "Ask the agent again."],
  ])("if %s has the failure already: such a run stores no retry state", (_, record, message) => {
    const run = withRecord(new PlayedRun(one), record);
    run.fail("one");
    expect(run.state.stopped).toBeUndefined();
    refused(run, message);
  });

  test("if no work can be repeated: the output of the run failed, or it has too many tokens", () => {
    const run = new PlayedRun({ ...one, outputMapping: { x: "input.missing.y + 1" } });
    run.end("one");
    refused(run, "This run has no work to repeat");
    const { state } = failed("EXECUTION_FAILED");
    const { stopped = { tokens: new Map(), fanOuts: new Map() } } = state;
    const because = (code: string) => mayBeRetried({ before: state, stopped, error: { code, message: "" } });
    expect([because("EXECUTION_FAILED"), because("RUN_TOO_LONG")]).toEqual([true, false]);
  });

  test("if a `once` task has used all operations that its id has room for", () => {
    const run = failed("EXECUTION_FAILED", ONCE);
    const [token] = [...(run.state.stopped?.tokens.values() ?? [])];
    if (token === undefined) throw new Error("Nothing is kept.");
    const tokens = new Map([[0, { ...token, again: { attempts: MAX_RETRIES, operations: MAX_RETRIES } }]]);
    run.state = { ...run.state, stopped: { tokens, fanOuts: new Map() } };
    expect(() => run.take({ ...retry, repeatOnce: true })).toThrow(
      '"one" was retried 8191 times, which is the maximum.',
    );
  });
});

describe("RUNRETRY-4 a failed run with a wide fan-out", () => {
  test("that was spread over several runs stores no retry state, and is not retried", () => {
    const wide = new PlayedRun(fan(), { items: [1, 2, 3, 4] }, undefined, 2);
    wide.fail("start");
    expect(wide.state.status).toBe("failed");
    expect(wide.state.stopped).toBeUndefined();
    expect(() => wide.take({ ...retry, repeatOnce: true })).toThrow(
      expect.objectContaining({ code: "CONFLICT" }),
    );
  });
});

describe("RUNRETRY-5 time limits", () => {
  test("of the run count from the retry", () => {
    const run = new PlayedRun({ ...one, timeoutMs: 1_000, onTimeout: "fail" });
    run.pass(900);
    run.fail("one");
    run.now += 60_000;
    run.take(retry);
    run.pass(999);
    expect(run.state.status).toBe("running");
    run.pass(1);
    expect(run.state.status).toBe("timed_out");
  });

  test("of the run count from the retry if a person was asked, and the question is closed", () => {
    const run = new PlayedRun({ ...one, timeoutMs: 1_000 });
    run.pass(1_000);
    expect(run.of("gate.opened")).toHaveLength(1);
    run.fail("one");
    run.take(retry);
    expect(runView({ state: run.state, endedAt: undefined }).gates).toEqual([]);
    run.pass(1_000);
    expect(run.of("gate.opened")).toHaveLength(2);
  });

  test("of a fan-in that failed at its time count from the retry", () => {
    const run = new PlayedRun(fan({ timeoutMs: 500, onTimeout: "fail" }), { items: [1, 2] });
    run.end("read");
    run.end("work", "done");
    run.pass(500);
    expect(run.state).toMatchObject({ status: "failed", error: { code: "SYNC_TIMEOUT" } });
    run.take(retry);
    run.pass(499);
    expect(run.state.status).toBe("running");
    expect(finish(run).state.output).toMatchObject({ all: [{ v: "done" }, { read: "again" }] as Json });
  });
});
