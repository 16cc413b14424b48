/** Batches of calls of any actor: ends, aborts, and executors that fail. */
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { type BatchCall, CallBatch, type CallEnd } from "../../src/agents/base/calls/call-batch.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { BatchCaller, TaskExecutor, ToolInvocation } from "../../src/protocol/executor-api.ts";
import type { Json } from "../../src/shared/json.ts";
import { localExecutor } from "../../src/testing/world/local-executor.ts";
import { callOf, testTools } from "../support/tools.ts";

const NOW = 1_000_000;

function batchCall(invocation: ToolInvocation, members: Partial<BatchCall> = {}): BatchCall {
  const { operationId, attempt, toolCallId, ...rest } = invocation;
  const { id: name } = rest.tool;
  return { operationId, attempt, toolCallId, name, effect: "idempotent", invocation: () => rest, ...members };
}

/** A batch that records ends and progress. `store.isUp` is the answer to ends. */
function stage() {
  const clock = new VirtualClock(NOW);
  const store = { isUp: true };
  const ended: CallEnd[][] = [];
  const progress: [string, Json][] = [];
  const batch = new CallBatch({
    onEnds(ends) {
      ended.push(ends);
      return store.isUp;
    },
    onProgress: (id, value) => void progress.push([id, value]),
  });
  const never = new AbortController().signal;
  const start = (executor: TaskExecutor, calls: readonly BatchCall[], startAt = NOW) => {
    const followed = calls.map((call) => batch.follow(call, never));
    return Promise.all([batch.run(executor, clock, startAt), ...followed]);
  };
  return { clock, store, ended, progress, batch, start };
}

/** An executor that keeps its batches, and answers when the test does. */
function keeping() {
  const batches: { calls: ToolInvocation[]; caller: BatchCaller; end: () => void }[] = [];
  const run: TaskExecutor["run"] = (calls, caller) =>
    new Promise((end) => batches.push({ calls, caller, end }));
  return { executor: { run }, batches };
}

function silenceErrors() {
  const errors = vi.spyOn(console, "error").mockReturnValue();
  onTestFinished(() => errors.mockRestore());
}

describe("a batch of calls", () => {
  test("gives each call its end and its progress, from an executor that runs them", async () => {
    const { clock, ended, progress, start } = stage();
    const calls = [callOf("add", { a: 2 }, { attempt: 3 }), callOf("steps")];
    const all = start(
      localExecutor(testTools().registry, clock),
      calls.map((call) => batchCall(call)),
    );
    await clock.advance(1_000);
    await all;
    const [add, steps] = calls;
    expect(ended.flat()).toMatchObject([
      { operationId: add?.operationId, attempt: 3, end: { result: { success: true, result: 3 } } },
      { operationId: steps?.operationId, attempt: 1, end: { result: { success: true } } },
    ]);
    expect(new Set(progress.map(([id]) => id))).toEqual(new Set([steps?.operationId]));
    expect(clock.pending).toBe(0);
  });

  test("makes the calls when it runs, and only calls that still wait", async () => {
    const { clock, batch } = stage();
    const { executor, batches } = keeping();
    const made: string[] = [];
    const lazily = (call: ToolInvocation) => {
      const { invocation, ...members } = batchCall(call);
      const { operationId: id } = call;
      return {
        ...members,
        invocation() {
          made.push(id);
          return invocation();
        },
      };
    };
    const [gone, kept] = [callOf("add"), callOf("add")];
    const stop = new AbortController();
    const followed = batch.follow(lazily(gone), stop.signal);
    void batch.follow(lazily(kept), new AbortController().signal);
    void batch.run(executor, clock, NOW + 500);
    stop.abort();
    await followed;
    await clock.advance(499);
    expect(made).toEqual([]);
    await clock.advance(1);
    expect(made).toEqual([kept.operationId]);
    expect(batches.map(({ calls }) => calls)).toEqual([[kept]]);
  });

  test("passes on the end of a deferred call", async () => {
    const { clock, ended, start } = stage();
    const { executor, batches } = keeping();
    const { operationId, ...call } = callOf("add");
    const all = start(executor, [batchCall({ operationId, ...call })]);
    await clock.advance(0);
    const deferred = { expiresAt: NOW + 60_000 };
    expect(await batches[0]?.caller.report([{ operationId, deferred }])).toEqual([]);
    batches[0]?.end();
    await all;
    expect(ended).toEqual([[{ operationId, attempt: 1, end: { deferred } }]]);
  });

  test("BATCH-4 an end that cannot be stored is reported again, as the same object", async () => {
    const { clock, store, ended, start } = stage();
    const { executor, batches } = keeping();
    const { operationId, toolCallId, ...call } = callOf("add");
    void start(executor, [batchCall({ operationId, toolCallId, ...call })]);
    await clock.advance(0);
    const result = { tool_call_id: toolCallId, success: true, result: 1 };
    const report = () => batches[0]?.caller.report([{ operationId, result }]);
    store.isUp = false;
    expect(await report()).toEqual([operationId]);
    store.isUp = true;
    expect(await report()).toEqual([]);
    expect(await report(), "it is stored").toEqual([]);
    expect(ended).toHaveLength(2);
    expect(ended[1]?.[0]).toBe(ended[0]?.[0]);
  });

  test("BATCH-5 a call that is aborted is cancelled in the executor, and gives its late success once", async () => {
    const { clock, ended, batch } = stage();
    const { executor, batches } = keeping();
    const { operationId, toolCallId, ...call } = callOf("add");
    const stop = new AbortController();
    const followed = batch.follow(batchCall({ operationId, toolCallId, ...call }), stop.signal);
    const running = batch.run(executor, clock, NOW);
    await clock.advance(0);
    const cancelled = batches[0]?.caller.cancelled();
    stop.abort();
    await followed;
    expect(await cancelled).toEqual([operationId]);
    expect(ended).toEqual([]);
    const result = { tool_call_id: toolCallId, success: true, result: 1 };
    await batches[0]?.caller.report([{ operationId, result }]);
    await batches[0]?.caller.report([{ operationId, result }]);
    expect(ended).toEqual([[{ operationId, attempt: 1, end: { result } }]]);
    batches[0]?.end();
    await running;
  });

  test("BATCH-6 calls of an executor that ends without their results are lost: the outcome of a `once` task is unknown", async () => {
    silenceErrors();
    const { clock, ended, start } = stage();
    const { executor, batches } = keeping();
    const all = start(executor, [
      batchCall(callOf("add"), { effect: "once", name: "pay" }),
      batchCall(callOf("add"), { name: "sum" }),
    ]);
    await clock.advance(0);
    batches[0]?.end();
    await all;
    const lost = (message: string, retriable: boolean) => ({
      end: {
        result: { success: false, error: { code: "INTERNAL_ERROR", message, retriable } },
        transient: true,
      },
      lost: true,
    });
    expect(ended).toMatchObject([
      [
        lost('Outcome unknown: the connection to "pay" was lost and it may have taken effect.', false),
        lost('The run of "sum" was lost.', true),
      ],
    ]);
  });

  test.each([
    [
      "with an executor that cannot be reached",
      {
        run: () => {
          throw new Error("no such class");
        },
      },
      {},
    ],
    [
      "with a call that cannot be made",
      { run: () => expect.fail("nothing runs") },
      {
        invocation: () => {
          throw new Error("no such task");
        },
      },
    ],
  ])("BATCH-7 calls %s did not run, and are not lost", async (_, executor, members) => {
    silenceErrors();
    const { ended, start } = stage();
    await start(executor, [batchCall(callOf("add"), { effect: "once" }), batchCall(callOf("add"), members)]);
    const error = {
      code: "INTERNAL_ERROR",
      message: '"add" did not run: its executor cannot be reached.',
      retriable: true,
    };
    const notRun = { end: { result: { success: false, error }, transient: true } };
    expect(ended).toMatchObject([[notRun, notRun]]);
    expect(ended.flat().some((end) => "lost" in end)).toBe(false);
  });
});
