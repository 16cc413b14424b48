import { describe, expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { LATE_RESULT_MS } from "../../src/agents/conversation/core/conversation-limits.ts";
import { readCalls } from "../../src/agents/executor/calls.ts";
import { deliverResult } from "../../src/agents/executor/deliver.ts";
import { toJson } from "../../src/agents/executor/output.ts";
import { ReportQueue } from "../../src/agents/executor/report-queue.ts";
import { runCalls } from "../../src/agents/executor/run-calls.ts";
import { defineLibrary, defineTool } from "../../src/library/define/define.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { Continued } from "../../src/library/tools/continued.ts";
import { ToolError } from "../../src/library/tools/tool-error.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import {
  type BatchCaller,
  type ExecutorReport,
  MAX_OUTPUT_DEPTH,
  reportsSchema,
  type TaskExecutor,
  type TaskResult,
  type ToolInvocation,
  type ToolResult,
  taskResultSchema,
} from "../../src/protocol/executor-api.ts";
import type { Result } from "../../src/shared/errors.ts";
import type { CallContext } from "../../src/shared/identifiers.ts";
import type { Json } from "../../src/shared/json.ts";
import {
  localExecutor,
  memoryToolState,
  noHandles,
  noResults,
} from "../../src/testing/world/local-executor.ts";
import { noMemory } from "../support/no-memory.ts";
import { callOf, ofRun, testTools } from "../support/tools.ts";

/** Runs a batch to its end and returns all reports. */
async function all(
  executor: TaskExecutor,
  calls: ToolInvocation[],
  cancelled: BatchCaller["cancelled"] = never,
): Promise<ExecutorReport[]> {
  const found: ExecutorReport[] = [];
  const report = async (reports: ExecutorReport[]) => {
    found.push(...reports);
    return [];
  };
  await executor.run(calls, { report, cancelled });
  return found;
}

const never = () => new Promise<never>(() => undefined);

async function resultOf(call: ToolInvocation): Promise<ToolResult> {
  const reports = await all(localExecutor(testTools().registry, new VirtualClock()), [call]);
  const results = reports.flatMap((report) => ("result" in report ? [report.result] : []));
  expect(results).toHaveLength(1);
  expect(results[0]?.tool_call_id).toBe(call.toolCallId);
  return results[0] ?? expect.fail("no result");
}

const NO_MESSAGE = "The tool failed without a message.";

const withMembers = (members: object) => Object.assign(new Error("empty"), members);

function isToolError(thrown: unknown): boolean {
  try {
    return thrown instanceof ToolError;
  } catch {
    return false;
  }
}

function revoked(): unknown {
  const { proxy, revoke } = Proxy.revocable(new Error("empty"), {});
  revoke();
  return proxy;
}

/** Records error logs until the test ends, instead of printing them. */
function silenceErrors(level: "error" | "warn" = "error") {
  const errors = vi.spyOn(console, level).mockImplementation(() => undefined);
  onTestFinished(() => errors.mockRestore());
  return errors.mock.calls;
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
    const [report] = await all(localExecutor(testTools().registry, clock), [call]);
    expect(report).toMatchObject({
      operationId: call.operationId,
      result: { result: { input: { x: 1 }, where: call.context, operationId: call.operationId, now: 1_000 } },
    });
  });

  test("LIB-1 A7 TASK-1 input that does not match is INVALID_INPUT, and the tool is never executed", async () => {
    const { registry, trace } = testTools();
    const executor = localExecutor(registry, new VirtualClock());
    const good = callOf("add", { a: 1 });
    const reports = await all(executor, [callOf("add", { a: "two" }), good]);
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
    const reports = all(localExecutor(registry, clock), [call]);
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
        transient: true,
      },
    ]);
    expect(trace.aborted).toEqual([call.operationId]);
  });

  test("a finished call leaves no timer", async () => {
    const clock = new VirtualClock();
    await all(localExecutor(testTools().registry, clock), [callOf("add", { a: 1 })]);
    expect(clock.pending).toBe(0);
  });

  test("BATCH-3 a call that is cancelled has an error that states this, within a second", async () => {
    const { registry, trace } = testTools();
    const clock = new VirtualClock();
    const [call, other] = [callOf("stubborn"), callOf("stubborn", {}, { timeoutMs: 5_000 })];
    const questions: ((ids: string[]) => void)[] = [];
    const cancelled = () => new Promise<string[]>((resolve) => questions.push(resolve));
    const reports = all(localExecutor(registry, clock), [call, other], cancelled);
    await clock.advance(1_000);
    expect(questions, "one question is open").toHaveLength(1);
    questions[0]?.([call.operationId]);
    await clock.advance(0);
    expect(trace.aborted).toEqual([call.operationId]);
    expect(questions, "the batch asks on").toHaveLength(2);
    await clock.advance(5_000);
    expect(await reports).toMatchObject([
      {
        operationId: call.operationId,
        result: {
          success: false,
          error: {
            code: "CANCELLED",
            message: expect.stringContaining("cancelled"),
            retriable: false,
          },
        },
      },
      { operationId: other.operationId, result: { error: { code: "TIMEOUT" } } },
    ]);
  });

  test("TASK-5 BATCH-3 a tool's result after its cancellation is sent to its conversation by name, within its time limit", async () => {
    const [clock, delivered, late] = [new VirtualClock(), [] as ToolResult[], [] as Promise<unknown>[]];
    const ends = new Map<string, (value: unknown) => void>();
    const send = defineTool({
      name: "send",
      description: "Ignores its signal.",
      effect: "once",
      input: z.object({}),
      execute: (_input, { operationId }) => new Promise((resolve) => ends.set(operationId, resolve)),
    });
    const library = defineLibrary("test", { tools: [send] });
    const call = () => callOf("send", {}, { timeoutMs: 5_000 });
    const [soon, never, elsewhere] = [call(), call(), call()];
    const reported: ExecutorReport[] = [];
    const questions = [[soon.operationId, never.operationId, elsewhere.operationId]];
    await Promise.all([
      runCalls(
        {
          tools: new DeployedCode([library]),
          clock,
          defer: noHandles,
          results: noResults(clock),
          baseUrl: undefined,
          mayReach: () => true,
          vectors: new Map(),
          memory: noMemory,
          state: () => memoryToolState(),
          deliver: async (_call, ended) => {
            if ("result" in ended) delivered.push(ended.result);
          },
          waitUntil: (work) => late.push(work),
        },
        { calls: [soon, never, elsewhere] },
        {
          report: async (reports) => {
            reported.push(...reports);
            return [];
          },
          cancelled: async () => questions.shift() ?? [],
        },
      ),
      clock.advance(1_000),
    ]);
    expect(reported.map((report) => "result" in report && report.result.success)).toEqual([
      false,
      false,
      false,
    ]);
    ends.get(soon.operationId)?.("Sent.");
    // The work of this call continues elsewhere, so it has no result.
    ends.get(elsewhere.operationId)?.(new Continued(1));
    await clock.advance(5_000);
    await Promise.all(late);
    expect(delivered).toEqual([{ tool_call_id: soon.toolCallId, success: true, result: "Sent." }]);
  });

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
  ])("TASK-3 an exception of a tool (%s) is an error without a stack", async (how, error) => {
    expect(await errorOf(callOf("failing", { how }))).toEqual(error);
  });

  test("TASK-3 the log of an unexpected error names the tool and the operation, without the message", async () => {
    const logged = silenceErrors();
    const call = callOf("failing", { how: "plain" });
    await errorOf(call);
    const { library, id } = call.tool;
    expect(logged[0]?.[0]).toBe(`A tool failed (${library}/${id}, ${call.operationId}):`);
    expect(JSON.stringify(logged)).not.toContain("shelf.take");
  });

  test.each<[string, () => unknown, object]>([
    [
      "a message that is an object",
      () => withMembers({ message: { toString: () => "quota" } }),
      { message: "quota" },
    ],
    ["no message", () => withMembers({ message: undefined }), { message: NO_MESSAGE }],
    [
      "a message that is no text at all",
      () => withMembers({ message: Object.create(null) }),
      { message: NO_MESSAGE },
    ],
    ["a stack that is a number", () => withMembers({ stack: 42 }), { message: "empty" }],
    ["a value that cannot be read", revoked, { message: NO_MESSAGE }],
    [
      "an unknown code",
      () => new ToolError("declined", { code: "RATE_LIMITED" as never }),
      { message: "declined" },
    ],
    [
      "members of other types",
      () => new ToolError(42 as never, { code: "TIMEOUT", retriable: "yes" as never }),
      { code: "TIMEOUT", message: "42", retriable: true },
    ],
  ])(
    "TASK-4 BATCH-2 a tool that throws %s gives a valid error, and its neighbour runs on",
    async (_, thrown, error) => {
      silenceErrors();
      const clock = new VirtualClock();
      const throwing = defineTool({
        name: "throwing",
        description: "Throws.",
        input: z.object({}),
        execute() {
          throw thrown();
        },
      });
      const slow = defineTool({
        name: "slow",
        description: "Answers after five seconds.",
        input: z.object({}),
        execute: () => clock.sleep(5_000),
      });
      const code = new DeployedCode([defineLibrary("test", { tools: [throwing, slow] })]);
      const [first, second] = [callOf("throwing"), callOf("slow")];
      const reading = all(localExecutor(code, clock), [first, second]);
      await clock.advance(5_000);
      const reports = await reading;
      const mayPass = !isToolError(thrown()) || "retriable" in error;
      expect(reports).toEqual([
        {
          operationId: first.operationId,
          result: {
            tool_call_id: first.toolCallId,
            success: false,
            error: { code: "EXECUTION_FAILED", retriable: false, ...error },
          },
          ...(mayPass ? { transient: true } : {}),
        },
        {
          operationId: second.operationId,
          result: { tool_call_id: second.toolCallId, success: true, result: null },
        },
      ]);
      expect(reportsSchema.parse(reports)).toEqual(reports);
    },
  );

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
    ["response", /^The tool ran, but its output .*"0" is a Response\. .*await response\.json\(\)/],
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
    const found: ExecutorReport[] = [];
    const report = async (reports: ExecutorReport[]) => {
      found.push(...reports);
      return [];
    };
    const over = localExecutor(registry, clock).run([slow, quick], { report, cancelled: never });
    await clock.advance(0);
    expect(found).toMatchObject([{ operationId: quick.operationId }]);
    await clock.advance(60_000);
    await over;
    expect(found.slice(1)).toMatchObject([
      { operationId: slow.operationId, result: { error: { code: "TIMEOUT" } } },
    ]);
  });

  test("A15 BATCH-1 every call has one result, after all of its progress", async () => {
    const { registry, trace } = testTools();
    const clock = new VirtualClock();
    const ids = ["steps", "add", "gone", "stubborn", "steps", "add"];
    const batch = ids.map((id) => callOf(id, { a: 1 }));
    const reading = all(localExecutor(registry, clock), batch);
    await trace.late;
    await clock.advance(60_000);
    const reports = await reading;
    for (const { operationId, tool } of batch) {
      const own = reports.filter((report) => report.operationId === operationId);
      const progress = own
        .slice(0, -1)
        .map((report) => ("progress" in report ? report.progress : "a result"));
      expect(progress).toEqual(tool.id === "steps" ? [{ step: 3 }] : []);
      expect(own.at(-1)).toHaveProperty("result");
    }
  });

  test("an empty batch ends at once", async () => {
    expect(await all(localExecutor(testTools().registry, new VirtualClock()), [])).toEqual([]);
  });

  test("a short batch requests no cancellations, and leaves no timer", async () => {
    const clock = new VirtualClock();
    const asked = vi.fn(never);
    await all(localExecutor(testTools().registry, clock), [callOf("add", { a: 1 })], asked);
    expect(asked).not.toHaveBeenCalled();
    expect(clock.pending).toBe(0);
  });

  test("a caller that has no further cancellations is not asked again", async () => {
    const clock = new VirtualClock();
    const asked = vi.fn(async () => []);
    const over = all(localExecutor(testTools().registry, clock), [callOf("stubborn")], asked);
    await clock.advance(60_000);
    await over;
    expect(asked).toHaveBeenCalledTimes(1);
  });
});

describe("BATCH-4 a caller that is lost", () => {
  /** Runs a batch. Its caller takes reports while `takes` returns `true` for the number of the attempt, from 0. */
  async function lose(
    calls: ToolInvocation[],
    takes: (attempt: number) => boolean,
    unsaved: (attempt: number) => boolean = () => false,
  ) {
    const logged = silenceErrors("warn");
    const { registry, trace } = testTools();
    const clock = new VirtualClock();
    const state = memoryToolState();
    const delivered: [string, number, ToolResult][] = [];
    const sent: ExecutorReport[][] = [];
    let attempts = 0;
    const over = runCalls(
      {
        tools: registry,
        clock,
        defer: noHandles,
        results: noResults(clock),
        baseUrl: undefined,
        mayReach: () => true,
        vectors: new Map(),
        memory: noMemory,
        state: () => state,
        waitUntil: () => undefined,
        deliver: async ({ operationId, attempt }, ended) => {
          if ("result" in ended) delivered.push([operationId, attempt, ended.result]);
        },
      },
      { calls },
      {
        async report(reports) {
          if (!takes(attempts++)) throw new Error("The actor was reset.");
          sent.push(reports);
          return unsaved(attempts) ? reports.map(({ operationId }) => operationId) : [];
        },
        cancelled: () => Promise.reject(new Error("The actor was reset.")),
      },
    );
    await clock.advance(60_000);
    await over;
    return { delivered, sent, trace, attempts, logged };
  }

  test("stops no call: each result is sent to its conversation, with the operation and the attempt", async () => {
    const calls = [callOf("add", { a: 1 }, { attempt: 2 }), callOf("stubborn", {}, { timeoutMs: 1_000 })];
    const { delivered, trace, logged } = await lose(calls, () => false);
    expect(delivered).toMatchObject([
      [calls[0]?.operationId, 2, { success: true, result: 2 }],
      [calls[1]?.operationId, 1, { success: false, error: { code: "TIMEOUT" } }],
    ]);
    expect(trace.aborted).toEqual([calls[1]?.operationId]);
    const line = "The caller of a batch of tools is lost. Its results go to the caller's actor by name.";
    expect(logged, "one line, without a stack").toEqual([[`${line} Error: The actor was reset.`]]);
  });

  test("is a caller that fails a report twice: after one failure the same reports are repeated, and reach it", async () => {
    const calls = [callOf("add", { a: 1 }), callOf("stubborn", {}, { timeoutMs: 1_000 })];
    const { delivered, sent, logged } = await lose(calls, (attempt) => attempt % 2 === 1);
    expect(sent.map((reports) => reports.map(({ operationId }) => operationId))).toEqual(
      calls.map(({ operationId }) => [operationId]),
    );
    expect(delivered).toEqual([]);
    expect(logged).toEqual([]);
  });

  test("is not a caller that cannot store a result: that result is reported again, then delivered, and later results are reported", async () => {
    const calls = [1, 2, 3].map((seconds) => callOf("stubborn", {}, { timeoutMs: seconds * 1_000 }));
    const ids = calls.map(({ operationId }) => operationId);
    const { delivered, sent, logged } = await lose(
      calls,
      () => true,
      (attempt) => attempt <= 2 || attempt === 3,
    );
    expect(delivered.map(([id]) => id)).toEqual([ids[0]]);
    expect(sent.map((reports) => reports[0]?.operationId)).toEqual([ids[0], ids[0], ids[1], ids[1], ids[2]]);
    expect(logged).toEqual([]);
  });

  test("stays lost, even if it would take reports again: every later result is delivered", async () => {
    const calls = [1, 2, 3].map((seconds) => callOf("stubborn", {}, { timeoutMs: seconds * 1_000 }));
    const { delivered, sent, attempts } = await lose(calls, (attempt) => attempt >= 2);
    expect(delivered.map(([id]) => id)).toEqual(calls.map(({ operationId }) => operationId));
    expect(sent).toEqual([]);
    expect(attempts).toBe(2);
  });

  test("gets no result twice: only results that it did not take are delivered", async () => {
    const calls = [callOf("add", { a: 1 }), callOf("stubborn", {}, { timeoutMs: 1_000 })];
    const { delivered, sent } = await lose(calls, (attempt) => attempt === 0);
    expect(sent).toMatchObject([[{ operationId: calls[0]?.operationId }]]);
    expect(delivered.map(([id]) => id)).toEqual([calls[1]?.operationId]);
  });

  test("is also a caller that takes no report for 10 seconds", async () => {
    silenceErrors();
    const clock = new VirtualClock();
    const delivered: string[] = [];
    const call = callOf("add", { a: 1 });
    const over = runCalls(
      {
        tools: testTools().registry,
        clock,
        defer: noHandles,
        results: noResults(clock),
        baseUrl: undefined,
        mayReach: () => true,
        vectors: new Map(),
        memory: noMemory,
        state: () => memoryToolState(),
        waitUntil: () => undefined,
        deliver: async ({ operationId }) => void delivered.push(operationId),
      },
      { calls: [call] },
      { report: never, cancelled: never },
    );
    await clock.advance(9_999);
    expect(delivered).toEqual([]);
    await clock.advance(1);
    await over;
    expect(delivered).toEqual([call.operationId]);
    expect(clock.pending).toBe(0);
  });

  test("loses progress only", async () => {
    const call = callOf("steps");
    const { delivered } = await lose([call], () => false);
    expect(delivered).toMatchObject([[call.operationId, 1, { result: "done" }]]);
  });
});

describe("delivery of a result by name", () => {
  const result: TaskResult = {
    operationId: "op_1",
    attempt: 1,
    result: { tool_call_id: "call_1", success: true, result: 1 },
  };

  async function deliver(answers: (Result<null> | Error | "silence")[]) {
    const clock = new VirtualClock();
    const start = clock.now();
    const attempts: number[] = [];
    const over = deliverResult(
      clock,
      async () => ({
        async handleTaskResult(sent) {
          expect(sent).toEqual(result);
          const answer = answers[attempts.push(clock.now() - start) - 1] ?? new Error("away");
          if (answer === "silence") return never();
          if (answer instanceof Error) throw answer;
          return answer;
        },
      }),
      result,
    );
    await clock.advance(60_000);
    await over;
    return attempts;
  }

  test("is tried again while the actor is away, for less time than the actor waits", async () => {
    const logged = silenceErrors();
    const attempts = await deliver([]);
    expect(attempts).toEqual([0, 250, 750, 1_750, 3_750, 7_750, 15_750]);
    expect(attempts.at(-1)).toBeLessThan(LATE_RESULT_MS);
    expect(logged).toHaveLength(1);
  });

  test("is tried again when the actor does not answer within three seconds", async () => {
    expect(await deliver(["silence", "silence", { ok: true, value: null }])).toEqual([0, 3_250, 6_750]);
  });

  test("ends when the actor has taken the result, and when it refuses it permanently; only an invalid result is logged", async () => {
    const logged = silenceErrors();
    const refusal = (code: string, retriable = false): Result<null> => ({
      ok: false,
      error: { code, message: "Refused.", retriable },
    });
    expect(await deliver([new Error("reset"), { ok: true, value: null }])).toHaveLength(2);
    expect(await deliver([refusal("UNAVAILABLE", true), refusal("NOT_FOUND")])).toHaveLength(2);
    expect(logged).toEqual([]);
    expect(await deliver([refusal("INVALID_INPUT")])).toHaveLength(1);
    expect(logged).toMatchObject([[{ code: "INVALID_INPUT" }]]);
  });
});

describe("reports in transit", () => {
  /** A queue with deliveries that the test ends. */
  function queue() {
    const clock = new VirtualClock();
    const sent: { at: number; reports: ExecutorReport[] }[] = [];
    const waiting: (() => void)[] = [];
    const start = clock.now();
    const reports = new ReportQueue(clock, (batch) => {
      sent.push({ at: clock.now() - start, reports: batch });
      return new Promise((resolve) => waiting.push(resolve));
    });
    const arrive = async () => {
      waiting.shift()?.();
      await clock.advance(0);
    };
    return { clock, reports, sent, arrive };
  }
  const resultOf = (operationId: string, value: Json = 1): ExecutorReport => ({
    operationId,
    result: { tool_call_id: operationId, success: true, result: value },
  });

  test("REPORT-1 REPORT-2 results of the same moment are sent together, and results during the request are sent together after it", async () => {
    const { clock, reports, sent, arrive } = queue();
    for (const id of ["a", "b"]) reports.add(resultOf(id));
    await clock.advance(0);
    for (const id of ["c", "d", "e"]) reports.add(resultOf(id));
    await clock.advance(1_000);
    const ids = () => sent.map((one) => one.reports.map(({ operationId }) => operationId));
    expect(ids()).toEqual([["a", "b"]]);
    await arrive();
    expect(ids()).toEqual([
      ["a", "b"],
      ["c", "d", "e"],
    ]);
  });

  test("REPORT-2 a tool that reports a thousand times a second for 15 minutes makes a few hundred requests, each with its newest progress", async () => {
    const { clock, reports, sent, arrive } = queue();
    let count = 0;
    const newest: number[] = [];
    for (let time = 0; time < 15 * 60_000; time += 50) {
      for (let step = 0; step < 50; step += 10) reports.add({ operationId: "a", progress: count++ });
      await clock.advance(50);
      if (sent.length > newest.length) newest.push(count - 1);
      await arrive();
    }
    expect(sent.length).toBeGreaterThan(50);
    expect(sent.length).toBeLessThan(500);
    const seen = sent.flatMap((one) => one.reports.map((report) => "progress" in report && report.progress));
    expect(seen).toEqual(newest);
  });

  test("REPORT-2 of each operation only the newest progress waits, before its result and beside the others'", async () => {
    const { clock, reports, sent, arrive } = queue();
    reports.add({ operationId: "a", progress: 0 });
    await clock.advance(0);
    for (let step = 1; step < 1_000; step++) {
      for (const operationId of ["a", "b"]) reports.add({ operationId, progress: step });
    }
    reports.add(resultOf("a"));
    await arrive();
    expect(sent.map((one) => one.reports)).toEqual([
      [{ operationId: "a", progress: 0 }],
      [{ operationId: "a", progress: 999 }, { operationId: "b", progress: 999 }, resultOf("a")],
    ]);
  });

  test("REPORT-3 many large results are split into several requests, all far below the platform's limit", async () => {
    const { reports, sent, arrive, clock } = queue();
    for (let index = 0; index < 64; index++) reports.add(resultOf(`op_${index}`, "x".repeat(1_000_000)));
    const over = reports.end();
    for (let step = 0; step < 64; step++) await arrive();
    await over;
    expect(sent.flatMap((one) => one.reports)).toHaveLength(64);
    for (const one of sent) expect(JSON.stringify(one.reports).length).toBeLessThan(9 * 1024 * 1024);
    expect(clock.pending).toBe(0);
  });

  test("an invalid report is refused at its arrival", () => {
    const more = { operationId: "op", progress: 1, more: 2 };
    for (const report of ["nonsense", {}, more, { operationId: "op", result: { success: true } }]) {
      expect(reportsSchema.safeParse([report]).success).toBe(false);
    }
    const own: Json = JSON.parse('{"__proto__": {"a": 1}}');
    expect(reportsSchema.parse([resultOf("op", own)])).toEqual([resultOf("op", own)]);
  });

  test.each<[string, unknown]>([
    ["a function", () => 1],
    ["a Map", new Map([[1, 2]])],
    ["a Date", new Date(0)],
    ["a BigInt", 1n],
    ["NaN", Number.NaN],
    ["undefined", undefined],
    ["bytes", new Uint8Array(1)],
    ["too deep", nested(MAX_OUTPUT_DEPTH + 1)],
  ])("REPORT-4 %s is refused, as a result, as progress and within either", (_, value) => {
    for (const one of [value, { a: [value] }]) {
      const result = { tool_call_id: "t", success: true, result: one };
      for (const report of [
        { operationId: "op", result },
        { operationId: "op", progress: one },
      ]) {
        expect(reportsSchema.safeParse([report]).success).toBe(false);
      }
      expect(taskResultSchema.safeParse({ operationId: "op", attempt: 1, result }).success).toBe(false);
    }
  });

  test("REPORT-4 a result has only the members of its outcome", () => {
    const error = { code: "TIMEOUT", message: "Late.", retriable: true };
    const isValid = (result: object) =>
      reportsSchema.safeParse([{ operationId: "op", result: { tool_call_id: "t", ...result } }]).success;
    expect(isValid({ success: true, result: null })).toBe(true);
    expect(isValid({ success: false, error })).toBe(true);
    for (const result of [
      { success: true },
      { success: false },
      { success: true, error },
      { success: false, result: 1 },
      { success: true, result: 1, error },
      { success: false, result: 1, error },
      { result: 1 },
    ]) {
      expect(isValid(result), JSON.stringify(result)).toBe(false);
    }
  });

  test("OUT-3 REPORT-4 the deepest output that an executor sends arrives, and a deeper one is an error of the tool", () => {
    const deepest = toJson(nested(MAX_OUTPUT_DEPTH), "The output", 10_000);
    expect(reportsSchema.safeParse([resultOf("op", deepest)]).success).toBe(true);
    expect(() => toJson(nested(MAX_OUTPUT_DEPTH + 1), "The output", 10_000)).toThrow(
      new ToolError("The output nests deeper than 1000 levels. Return less."),
    );
  });
});

/** Returns a value of this many levels of nesting. */
function nested(depth: number): Json {
  let value: Json = 1;
  for (let level = 0; level < depth; level++) value = level % 2 === 0 ? [value] : { a: value };
  return value;
}

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

  test("a call has a turn or a run as its caller", () => {
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const given = [
      callOf("add", {}, { context: { ...callOf("add").context, correlationId: "c", traceparent } }),
      callOf("add", {}, { context: { ...ofRun(), traceparent } }),
    ];
    const { calls, refused } = readCalls(given);
    expect(refused).toEqual([]);
    expect(calls).toEqual(given);
  });

  const [turn, run] = [callOf("add").context, ofRun()];
  const { tenant, projectId } = turn;
  test.each([
    ["both", { ...turn, ...run }],
    ["a conversation and a run", { tenant, projectId, conversationId: "conv_1", runId: "run_1" }],
    ["a run, and the conversation of another call", { ...run, conversationId: "conv_1" }],
    ["a turn, and the run of another call", { ...turn, runId: "run_1" }],
    ["neither", { tenant, projectId }],
    ["a run without a node", { tenant, projectId, runId: "run_1" }],
    ["a conversation without a turn", { tenant, projectId, conversationId: "conv_1", agentId: "agent" }],
  ])("a call that names %s is refused, with the fix", (_, context) => {
    const call = callOf("add");
    const { calls, refused } = readCalls([{ ...call, context }]);
    expect(calls).toEqual([]);
    const message =
      "The call is not valid: /context: Must have either `agentId`, `conversationId` and `turnId`, or `runId` and `node`.";
    expect(refused).toMatchObject([{ operationId: call.operationId, result: { error: { message } } }]);
  });

  test("a call without a tenant is refused for that", () => {
    const { refused } = readCalls([{ ...callOf("add"), context: { ...run, tenant: "" } }]);
    expect(refused).toMatchObject([
      { result: { error: { code: "INVALID_INPUT", message: expect.stringContaining("/context/tenant") } } },
    ]);
  });

  test.each([[null], ["calls"], [[1]], [[{ toolCallId: "x" }]]])("%j is not a batch", (batch) => {
    expect(() => readCalls(batch)).toThrow(expect.objectContaining({ code: "INVALID_INPUT" }));
  });

  test("a batch that names an operation twice is refused: a tool would run twice under one key", () => {
    const call = callOf("add", { a: 1 });
    for (const again of [call, { ...call, attempt: 2 }, { ...call, timeoutMs: -1 }]) {
      expect(() => readCalls([call, callOf("add"), again])).toThrow(
        expect.objectContaining({
          code: "INVALID_INPUT",
          message: expect.stringContaining("An operation must occur only once in a batch."),
        }),
      );
    }
  });
});

describe("tool state", () => {
  test("belongs to one conversation of one tenant", async () => {
    const executor = localExecutor(testTools().registry, new VirtualClock());
    const { context } = callOf("keeping");
    const keep = (change: object) =>
      all(executor, [callOf("keeping", { key: "k", value: 1 }, { context: { ...context, ...change } })]);
    const foundNothing = [{ result: { result: { before: null } } }];
    expect(await keep({})).toMatchObject(foundNothing);
    expect(await keep({ conversationId: "conv_2" })).toMatchObject(foundNothing);
    expect(await keep({ tenant: "other" })).toMatchObject(foundNothing);
    expect(await keep({ turnId: "turn_2" })).toMatchObject([{ result: { result: { before: 1 } } }]);
  });

  test("belongs to one run, for all of its nodes", async () => {
    const executor = localExecutor(testTools().registry, new VirtualClock());
    const keep = (context: CallContext) =>
      all(executor, [callOf("keeping", { key: "k", value: 1 }, { context })]);
    const foundNothing = [{ result: { result: { before: null } } }];
    expect(await keep(ofRun())).toMatchObject(foundNothing);
    expect(await keep(ofRun({ runId: "run_2" }))).toMatchObject(foundNothing);
    expect(await keep(ofRun({ tenant: "other" }))).toMatchObject(foundNothing);
    expect(await keep(ofRun({ runId: "conv_1" }))).toMatchObject(foundNothing);
    expect(await keep(callOf("keeping").context), "a conversation of the same id").toMatchObject(
      foundNothing,
    );
    expect(await keep(ofRun({ node: "merge" }))).toMatchObject([{ result: { result: { before: 1 } } }]);
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
