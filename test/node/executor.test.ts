import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readCalls } from "../../src/agents/executor/calls.ts";
import { localExecutor, serviceExecutor } from "../../src/agents/executor/local.ts";
import { readLines, writeLines } from "../../src/agents/executor/lines.ts";
import { runCalls } from "../../src/agents/executor/run-calls.ts";
import { memoryToolState } from "../../src/agents/executor/tool-state.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { ExecutorReport, ToolInvocation, ToolResult } from "../../src/protocol/executor-api.ts";
import type { Json } from "../../src/shared/json.ts";
import { callOf, testTools } from "../support/tools.ts";

const never = new AbortController().signal;

async function all(reports: AsyncIterable<ExecutorReport>): Promise<ExecutorReport[]> {
  const found: ExecutorReport[] = [];
  for await (const report of reports) found.push(report);
  return found;
}

async function resultOf(call: ToolInvocation): Promise<ToolResult> {
  const reports = await all(localExecutor(testTools().registry, new VirtualClock()).run([call], never));
  const results = reports.flatMap((report) => ("result" in report ? [report.result] : []));
  expect(results).toHaveLength(1);
  expect(results[0]?.tool_call_id).toBe(call.toolCallId);
  return results[0] ?? expect.fail("no result");
}

async function errorOf(call: ToolInvocation): Promise<NonNullable<ToolResult["error"]>> {
  const { success, error, result } = await resultOf(call);
  expect(success).toBe(false);
  expect(result).toBeUndefined();
  return error ?? expect.fail("no error");
}

describe("one call", () => {
  test("returns the tool's output for the input as its schema parses it", async () => {
    expect(await resultOf(callOf("add", { a: 2 }))).toMatchObject({ success: true, result: 3 });
  });

  test("gives the tool its operation, its context and the time", async () => {
    const call = callOf("context", { x: 1 });
    const clock = new VirtualClock(1_000);
    const [report] = await all(localExecutor(testTools().registry, clock).run([call], never));
    expect(report).toMatchObject({
      operationId: call.operationId,
      result: { result: { input: { x: 1 }, where: call.context, operationId: call.operationId, now: 1_000 } },
    });
  });

  test("A7 TASK-1 input that does not match is INVALID_INPUT, and the tool is never executed", async () => {
    const { registry, trace } = testTools();
    const executor = localExecutor(registry, new VirtualClock());
    const good = callOf("add", { a: 1 });
    const reports = await all(executor.run([callOf("add", { a: "two" }), good], never));
    expect(reports).toContainEqual(
      expect.objectContaining({
        result: expect.objectContaining({
          error: {
            code: "INVALID_INPUT",
            message: expect.stringMatching(/"add".*\/a:.*number/),
            retriable: false,
          },
        }),
      }),
    );
    expect(trace.executed).toEqual([good.operationId]);
  });

  test("A9 a tool that is not deployed is NOT_FOUND, with its name", async () => {
    expect(await errorOf(callOf("gone"))).toMatchObject({
      code: "NOT_FOUND",
      message: expect.stringContaining("test/gone"),
    });
  });

  test("TASK-2 a call of a tool that ignores its signal ends when its time is up", async () => {
    const { registry, trace } = testTools();
    const clock = new VirtualClock();
    const call = callOf("stubborn", {}, { timeoutMs: 5_000 });
    const reports = all(localExecutor(registry, clock).run([call], never));
    await clock.advance(4_999);
    expect(trace.aborted).toEqual([]);
    await clock.advance(1);
    expect(await reports).toEqual([
      {
        operationId: call.operationId,
        result: {
          tool_call_id: call.toolCallId,
          success: false,
          error: { code: "TIMEOUT", message: "The tool did not answer within 5000 ms.", retriable: true },
        },
      },
    ]);
    expect(trace.aborted).toEqual([call.operationId]);
  });

  test("a finished call leaves no timer", async () => {
    const clock = new VirtualClock();
    await all(localExecutor(testTools().registry, clock).run([callOf("add", { a: 1 })], never));
    expect(clock.pending).toBe(0);
  });

  test.each(["before it starts", "while it runs"])(
    "a call that is cancelled %s has an error that states this",
    async (when) => {
      const { registry, trace } = testTools();
      const clock = new VirtualClock();
      const abort = new AbortController();
      if (when === "before it starts") abort.abort();
      const call = callOf("stubborn");
      const reports = all(localExecutor(registry, clock).run([call], abort.signal));
      await clock.advance(10);
      abort.abort();
      const error = {
        code: "EXECUTION_FAILED",
        message: expect.stringContaining("cancelled"),
        retriable: false,
      };
      expect(await reports).toMatchObject([{ result: { success: false, error } }]);
      expect(trace.aborted).toEqual(when === "before it starts" ? [] : [call.operationId]);
    },
  );

  test.each([
    ["tool-error", { code: "EXECUTION_FAILED", message: "the shelf is empty", retriable: false }],
    ["coded", { code: "AGENT_DECLINED", message: "ask somebody else", retriable: true }],
    ["dramatis", { code: "PERMISSION_DENIED", message: "you may not", retriable: false }],
    ["plain", { code: "EXECUTION_FAILED", message: "shelf.take is not a function", retriable: false }],
    ["text", { code: "EXECUTION_FAILED", message: "just text", retriable: false }],
    [
      "nothing",
      { code: "EXECUTION_FAILED", message: "The tool failed without a message.", retriable: false },
    ],
    ["long", { code: "EXECUTION_FAILED", message: "x".repeat(4_000), retriable: false }],
  ])("TASK-3 what a tool throws (%s) is an error without a stack", async (how, error) => {
    expect(await errorOf(callOf("failing", { how }))).toEqual(error);
  });

  test.each([
    ["nothing", null],
    ["absent", { kept: 1 }],
    ["date", { at: "1970-01-01T00:00:00.000Z" }],
    ["largest", "x".repeat(1_048_574)],
  ])("OUT-1 output %s is JSON", async (what, result) => {
    expect(await resultOf(callOf("giving", { what }))).toMatchObject({ success: true, result });
  });

  test.each([
    ["bigint", /"big" is a bigint/],
    ["nan", /NaN/],
    ["map", /"map" is a Map/],
    ["set", /a Set/],
    ["promise", /not awaited/],
    ["function", /a function/],
    ["bytes", /binary data/],
    ["circle", /circular/i],
    ["huge", /1200002 bytes.*limit is 1048576/],
  ])("OUT-2 output %s is refused, saying why", async (what, message) => {
    expect(await errorOf(callOf("giving", { what }))).toEqual({
      code: "EXECUTION_FAILED",
      message: expect.stringMatching(message),
      retriable: false,
    });
  });
});

describe("a batch of calls", () => {
  test("BATCH-2 a slow tool does not delay others", async () => {
    const { registry } = testTools();
    const clock = new VirtualClock();
    const slow = callOf("stubborn");
    const quick = callOf("add", { a: 1 });
    const reports = localExecutor(registry, clock).run([slow, quick], never)[Symbol.asyncIterator]();
    expect((await reports.next()).value).toMatchObject({ operationId: quick.operationId });
    const last = reports.next();
    await clock.advance(60_000);
    expect((await last).value).toMatchObject({
      operationId: slow.operationId,
      result: { error: { code: "TIMEOUT" } },
    });
    expect((await reports.next()).done).toBe(true);
  });

  test("A15 BATCH-1 every call has one result, after all of its progress", async () => {
    const { registry, trace } = testTools();
    const clock = new VirtualClock();
    const ids = ["steps", "add", "gone", "stubborn", "steps", "add"];
    const batch = ids.map((id) => callOf(id, { a: 1 }));
    const reading = all(localExecutor(registry, clock).run(batch, never));
    await trace.late;
    await clock.advance(60_000);
    const reports = await reading;
    for (const { operationId, tool } of batch) {
      const own = reports.filter((report) => report.operationId === operationId);
      const progress = own
        .slice(0, -1)
        .map((report) => ("progress" in report ? report.progress : "a result"));
      expect(progress).toEqual(tool.id === "steps" ? [{ step: 1 }, { step: 2 }, { step: 3 }] : []);
      expect(own.at(-1)).toHaveProperty("result");
    }
  });

  test("an empty batch ends at once", async () => {
    expect(await all(localExecutor(testTools().registry, new VirtualClock()).run([], never))).toEqual([]);
  });

  test("leaving the iteration aborts running calls", async () => {
    const { registry, trace } = testTools();
    const slow = callOf("stubborn");
    for await (const report of localExecutor(registry, new VirtualClock()).run(
      [slow, callOf("steps")],
      never,
    )) {
      expect(report).toHaveProperty("progress");
      break;
    }
    await new Promise((resolve) => setImmediate(resolve));
    expect(trace.aborted).toEqual([slow.operationId]);
  });
});

describe("readCalls", () => {
  test("an invalid call gets an error result and does not stop others", () => {
    const good = callOf("add", { a: 1 });
    const { calls, refused } = readCalls([{ ...good, operationId: "op_bad", timeoutMs: -1 }, good]);
    expect(calls).toEqual([good]);
    expect(refused).toEqual([
      {
        operationId: "op_bad",
        result: {
          tool_call_id: good.toolCallId,
          success: false,
          error: { code: "INVALID_INPUT", message: expect.stringContaining("/timeoutMs"), retriable: false },
        },
      },
    ]);
  });

  test.each([[null], ["calls"], [[1]], [[{ toolCallId: "x" }]]])("%j is not a batch", (batch) => {
    expect(() => readCalls(batch)).toThrow(expect.objectContaining({ code: "INVALID_INPUT" }));
  });
});

describe("reports as lines", () => {
  const json = fc.jsonValue().map((value): Json => JSON.parse(JSON.stringify(value)));
  const operationId = fc.string({ minLength: 1, unit: "binary" });
  const report: fc.Arbitrary<ExecutorReport> = fc.oneof(
    fc.record({ operationId, progress: json }),
    fc.record({
      operationId,
      result: fc.record({ tool_call_id: fc.string(), success: fc.constant(true), result: json }),
    }),
  );

  test("LINES-1 reports are read unchanged, wherever their bytes are cut", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(report),
        fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1 }),
        async (sent, cuts) => {
          expect(
            await all(
              readLines(
                recut(
                  writeLines(() => iterate(sent)),
                  cuts,
                ),
              ),
            ),
          ).toEqual(sent);
        },
      ),
      { numRuns: 200 },
    );
  });

  test.each(["nonsense\n", "{}\n", '{"operationId":"op","progress":1,"more":2}\n'])(
    "%j is not a report",
    async (text) => {
      await expect(all(readLines(bytes(text)))).rejects.toMatchObject({ code: "INTERNAL_ERROR" });
    },
  );

  test("an answer that ends within a line is UNAVAILABLE", async () => {
    await expect(all(readLines(bytes('{"operationId":"op","prog')))).rejects.toMatchObject({
      code: "UNAVAILABLE",
    });
  });
});

describe("an executor behind a service", () => {
  const host = () => {
    const { registry, trace } = testTools();
    const state = memoryToolState();
    const served = { tools: registry, clock: new VirtualClock(), state: () => state };
    return {
      trace,
      run: async (calls: ToolInvocation[], signal: AbortSignal) =>
        writeLines((cancelled) => runCalls(served, calls, AbortSignal.any([signal, cancelled]))),
    };
  };

  test("has the same reports as a local one", async () => {
    const batch = [callOf("add", { a: 1 }), callOf("steps"), callOf("failing", { how: "coded" })];
    const local = await all(localExecutor(testTools().registry, new VirtualClock()).run(batch, never));
    expect(await all(serviceExecutor(host()).run(batch, never))).toEqual(local);
  });

  test("leaving the iteration cancels the calls in the service", async () => {
    const service = host();
    const slow = callOf("stubborn");
    for await (const _ of serviceExecutor(service).run([slow, callOf("steps")], never)) break;
    await new Promise((resolve) => setImmediate(resolve));
    expect(service.trace.aborted).toEqual([slow.operationId]);
  });

  test("the service's signal aborts at the end and when the iteration is left, so that RPC releases it", async () => {
    const service = host();
    const signals: AbortSignal[] = [];
    const executor = serviceExecutor({
      run(calls, signal) {
        signals.push(signal);
        return service.run(calls, signal);
      },
    });
    for await (const _ of executor.run([callOf("steps")], never)) break;
    await all(executor.run([callOf("steps")], never));
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
  });

  test("cancelling the stream while it waits aborts the calls", async () => {
    const service = host();
    const slow = callOf("stubborn");
    const reader = (await service.run([slow], never)).getReader();
    const reading = reader.read();
    await new Promise((resolve) => setImmediate(resolve));
    await reader.cancel();
    expect((await reading).done).toBe(true);
    await new Promise((resolve) => setImmediate(resolve));
    expect(service.trace.aborted).toEqual([slow.operationId]);
  });

  test.each([
    ["ends early", async () => bytes("")],
    ["breaks", async () => broken()],
    ["cannot be reached", () => Promise.reject(new Error("gone"))],
  ])("one that %s is UNAVAILABLE and names the calls without a result", async (_, run) => {
    const call = callOf("add", { a: 1 });
    await expect(all(serviceExecutor({ run }).run([call], never))).rejects.toMatchObject({
      code: "UNAVAILABLE",
      retriable: true,
      message: expect.stringContaining(call.operationId),
    });
  });
});

describe("tool state", () => {
  test("belongs to one conversation of one tenant", async () => {
    const executor = localExecutor(testTools().registry, new VirtualClock());
    const { context } = callOf("keeping");
    const keep = (change: object) =>
      all(
        executor.run(
          [callOf("keeping", { key: "k", value: 1 }, { context: { ...context, ...change } })],
          never,
        ),
      );
    const foundNothing = [{ result: { result: { before: null } } }];
    expect(await keep({})).toMatchObject(foundNothing);
    expect(await keep({ conversationId: "conv_2" })).toMatchObject(foundNothing);
    expect(await keep({ tenant: "other" })).toMatchObject(foundNothing);
    expect(await keep({ turnId: "turn_2" })).toMatchObject([{ result: { result: { before: 1 } } }]);
  });

  test("STATE-2 lists by prefix in order, and putting null deletes", async () => {
    const state = memoryToolState();
    for (const key of ["b/2", "a/1", "b/1", "c"]) await state.put(key, { key });
    await state.put("b/2", null);
    await state.put("b/3", [1]);
    expect(await state.get("b/2")).toBeNull();
    expect(await state.list("b/")).toEqual([
      { key: "b/1", value: { key: "b/1" } },
      { key: "b/3", value: [1] },
    ]);
  });

  test.each([
    ["key that is empty", "", 1],
    ["key that is too long", "k".repeat(201), 1],
    ["value that is too large", "k", "é".repeat(32_768)],
  ])("refuses a %s", async (_, key, value) => {
    await expect(memoryToolState().put(key, value)).rejects.toMatchObject({ code: "INVALID_INPUT" });
  });
});

async function* iterate(reports: ExecutorReport[]): AsyncGenerator<ExecutorReport, void> {
  yield* reports;
}

function bytes(text: string): ReadableStream<Uint8Array> {
  return new Blob([text]).stream();
}

function broken(): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      controller.error(new Error("connection lost"));
    },
  });
}

/** The same bytes in chunks of other sizes. */
function recut(stream: ReadableStream<Uint8Array>, sizes: number[]): ReadableStream<Uint8Array> {
  let turn = 0;
  return stream.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        for (let at = 0; at < chunk.length; ) {
          const size = sizes[turn++ % sizes.length] ?? 1;
          controller.enqueue(chunk.slice(at, at + size));
          at += size;
        }
      },
    }),
  );
}
