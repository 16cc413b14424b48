/** Attempts of tool calls: which are repeated and when, and the causes that end a pause. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { effectsOfTurn } from "../../src/agents/conversation/core/effects.ts";
import { framesOf } from "../../src/agents/conversation/core/frames.ts";
import type { Operation } from "../../src/agents/conversation/core/operation.ts";
import { nextAttemptAt } from "../../src/agents/conversation/core/planning/results.ts";
import type { Signal, ToolCompleted } from "../../src/agents/conversation/core/signals.ts";
import { type ConversationState, NEW_STATE } from "../../src/agents/conversation/core/state.ts";
import { step } from "../../src/agents/conversation/core/step.ts";
import { beginTransition, type Transition } from "../../src/agents/conversation/core/transition.ts";
import type { Turn } from "../../src/agents/conversation/core/turn.ts";
import { ToolBatch } from "../../src/agents/conversation/effects/tool-batch.ts";
import { checkedTool } from "../../src/library/authoring/authoring.ts";
import { defineLibrary, defineTool } from "../../src/library/define/define.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { Registry } from "../../src/library/registry/registry.ts";
import { ToolError } from "../../src/library/tools/tool-error.ts";
import { MAX_TOOL_ATTEMPTS, MAX_TOOL_BACKOFF_MS } from "../../src/library/tools/tool-schema.ts";
import { allowAll } from "../../src/policy/gate.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { RetryPolicy, ToolEffect, VersionChain } from "../../src/protocol/definitions.ts";
import type { ExecutorReport, ToolResult } from "../../src/protocol/executor-api.ts";
import { defined } from "../../src/shared/defined.ts";
import { localExecutor } from "../../src/testing/world/local-executor.ts";
import { recordOf } from "../support/records.ts";
import { callOf } from "../support/tools.ts";

const NOW = 1_000_000;
const RETRY: RetryPolicy = { maxAttempts: 3, backoffMs: 400 };

function chainWith(retry?: RetryPolicy, effect: ToolEffect = "idempotent"): VersionChain["tools"] {
  const definition = { name: "tool", description: "A tool.", inputSchema: { type: "object" }, effect };
  return [
    {
      library: "test",
      id: "tool",
      version: 1,
      hash: "",
      definition: { ...definition, timeoutMs: 1_000, ...(retry && { retry }) },
    },
  ];
}

function stateWith(tools: VersionChain["tools"], members: Partial<Operation> = {}): ConversationState {
  const record = recordOf();
  const [{ chain, ...agent }] = record.agents;
  const operation: Operation = {
    item: 2,
    reply: 0,
    toolCallId: "call_2",
    name: "tool",
    tool: { library: "test", id: "tool", version: 1 },
    effect: tools[0]?.definition.effect ?? "once",
    target: "code",
    mode: "sync",
    status: "pending",
    attempt: 1,
    timeoutMs: 1_000,
    input: {},
    ...members,
  };
  const turn: Turn = {
    n: 1,
    stem: "01ARZ3NDEKTSV4RRFFQ",
    agentId: agent.id,
    caller: { type: "user", userId: "ada" },
    input: "go",
    status: "active",
    createdAt: NOW,
    firstSeq: 2,
    snapshotSeq: 1,
    items: 3,
    call: null,
    replies: [{ item: 1, text: "", finishReason: "tool_calls", at: NOW }],
    operations: [operation],
    recoveries: 0,
    issues: {},
  };
  return {
    ...NEW_STATE,
    record: { ...record, agents: [{ ...agent, chain: { ...chain, tools } }] },
    seq: 5,
    turns: 1,
    active: new Map([[1, turn]]),
    stored: new Map(),
  };
}

const apply = (state: ConversationState, signal: Signal, now = NOW): Transition =>
  step(beginTransition(state), signal, { now, stem: "", gate: allowAll });

const operationOf = ({ state }: Transition): Operation =>
  state.active.get(1)?.operations[0] ?? expect.fail("no operation");

function failed(attempt: number, transient = true): ToolCompleted {
  const error = { code: "TIMEOUT", message: "Too slow.", retriable: true } as const;
  const result: ToolResult = { tool_call_id: "call_2", success: false, error };
  const address = { type: "conversation.tool.completed", turn: 1, item: 2, attempt } as const;
  return { ...address, result, ...(transient ? { transient } : {}) };
}

describe("planning", () => {
  test("A45 TOOLRETRY-1 TOOLRETRY-2 three attempts, each after its pause; then the model gets the error", () => {
    const second = apply(stateWith(chainWith(RETRY)), failed(1));
    expect(operationOf(second)).toMatchObject({ attempt: 2, status: "pending", notBefore: NOW + 400 });
    expect(second.state.active.get(1)?.call).toBeNull();
    expect(second.entries).toEqual([
      {
        type: "tool.call.failed",
        turn: 1,
        item: 2,
        data: { attempt: 1, code: "TIMEOUT", message: "Too slow." },
      },
    ]);
    const third = apply(second.state, failed(2), NOW + 500);
    expect(operationOf(third)).toMatchObject({ attempt: 3, notBefore: NOW + 500 + 800 });
    const last = apply(third.state, failed(3), NOW + 2_000);
    expect(operationOf(last)).toMatchObject({ attempt: 3, status: "failed", result: { success: false } });
    expect(operationOf(last)).not.toHaveProperty("notBefore");
    expect(last.entries.map(({ type }) => type)).toEqual(["tool.failed", "message.started"]);
    expect(last.state.active.get(1)).toMatchObject({ issues: { toolFailures: 1 }, call: { final: false } });
  });

  test("A45 TOOLRETRY-1 a failure that the tool reported is final, whatever attempts are left", () => {
    const { entries } = apply(stateWith(chainWith(RETRY)), failed(1, false));
    expect(entries.map(({ type }) => type)).toEqual(["tool.failed", "message.started"]);
  });

  test("TOOLRETRY-1 a `once` tool and one without `retry` have one attempt", () => {
    for (const tools of [chainWith(RETRY, "once"), chainWith(), chainWith(undefined, "pure")])
      expect(operationOf(apply(stateWith(tools), failed(1)))).toMatchObject({ attempt: 1, status: "failed" });
  });

  test("OP-1 TOOLRETRY-1 a late outcome of an earlier attempt is ignored", () => {
    const { state } = apply(stateWith(chainWith(RETRY)), failed(1));
    expect(apply(state, failed(1)).entries).toEqual([]);
    const success = { tool_call_id: "call_2", success: true, result: 1 };
    const { transient: _, ...address } = failed(1);
    expect(apply(state, { ...address, result: success }).entries).toEqual([]);
  });

  test("TOOLRETRY-2 TOOLRETRY-3 a crash in the pause does not count, and a crash during an attempt repeats that attempt", () => {
    const { state } = apply(stateWith(chainWith(RETRY)), failed(1));
    const pause = apply(state, { type: "conversation.cmd.recover" }, NOW + 399);
    expect(pause.entries).toEqual([]);
    const during = apply(state, { type: "conversation.cmd.recover" }, NOW + 400);
    expect(operationOf(during)).toMatchObject({ attempt: 2, status: "pending" });
    const turn = during.state.active.get(1) ?? expect.fail("no turn");
    expect(effectsOfTurn(turn).map(({ key }) => key)).toEqual(["tool:1:2:2"]);
  });

  test("TOOLRETRY-2 STOP-1 a stop ends the pause", () => {
    const { state } = apply(stateWith(chainWith(RETRY)), failed(1));
    const cancel = { type: "conversation.cancel", turn: 1, caller: { type: "user", userId: "ada" } } as const;
    const { entries, state: after } = apply(state, cancel);
    expect(entries.map(({ type }) => type)).toEqual(["tool.cancelled", "turn.failed"]);
    expect(after.active.size).toBe(0);
  });

  test("TOOLRETRY-1 readers see the failed attempt as an error of its operation", () => {
    const { entries, state } = apply(stateWith(chainWith(RETRY)), failed(1));
    const frames = framesOf({ seq: 6, at: NOW, entries: [...entries] }, 0, state.record, (n) =>
      state.active.get(n),
    );
    expect(frames).toMatchObject([
      {
        type: "error",
        operationId: expect.stringMatching(/^op_/),
        data: { code: "TIMEOUT", retriable: true },
      },
    ]);
  });

  test("A45 TOOLRETRY-1 TOOLRETRY-2 any policy: at most its attempts, and pauses that double up to a minute", () => {
    const policy = fc.record({
      maxAttempts: fc.integer({ min: 2, max: MAX_TOOL_ATTEMPTS }),
      backoffMs: fc.integer({ min: 0, max: MAX_TOOL_BACKOFF_MS }),
    });
    fc.assert(
      fc.property(policy, fc.constantFrom("pure", "idempotent", "once"), (retry, effect) => {
        let state = stateWith(chainWith(retry, effect));
        let now = NOW;
        const pauses: number[] = [];
        for (let attempt = 1; state.active.get(1)?.call === null; attempt++) {
          const after = apply(state, failed(attempt), now);
          const { notBefore } = operationOf(after);
          if (notBefore !== undefined) pauses.push(notBefore - now);
          now = notBefore ?? now;
          ({ state } = after);
        }
        const attempts = effect === "once" ? 1 : retry.maxAttempts;
        expect(pauses).toEqual(
          Array.from({ length: attempts - 1 }, (_, index) =>
            Math.min(retry.backoffMs * 2 ** index, MAX_TOOL_BACKOFF_MS),
          ),
        );
      }),
    );
  });

  test.each([
    ["none", [100, 100, 100, 100]],
    ["linear", [100, 200, 250, 250]],
    ["exponential", [100, 200, 250, 250]],
    [undefined, [100, 200, 250, 250]],
  ] as const)("TOOLRETRY-2 pauses of a task: %s", (backoff, pauses) => {
    const retry: RetryPolicy = { maxAttempts: 5, backoffMs: 100, maxDelayMs: 250, ...defined({ backoff }) };
    const tools = chainWith(retry);
    const at = (attempt: number) =>
      nextAttemptAt({ tools }, { name: tools[0]?.definition.name ?? "", effect: "pure", attempt }, NOW);
    expect([1, 2, 3, 4].map((attempt) => (at(attempt) ?? 0) - NOW)).toEqual(pauses);
    const third = nextAttemptAt(
      { tools: chainWith({ ...retry, maxDelayMs: 10_000 }) },
      { name: tools[0]?.definition.name ?? "", effect: "pure", attempt: 3 },
      NOW,
    );
    expect((third ?? 0) - NOW).toBe({ none: 100, linear: 300, exponential: 400 }[backoff ?? "exponential"]);
  });

  test("TOOLRETRY-1 a call of an unknown tool is not repeated", () => {
    const operation = { name: "constructor", effect: "pure", attempt: 1 } as const;
    expect(nextAttemptAt({ tools: chainWith(RETRY) }, operation, NOW)).toBeUndefined();
  });
});

describe("the executor", () => {
  const outcomes: [title: string, execute: () => unknown, transient: boolean][] = [
    [
      "an exception",
      () => {
        throw new Error("connection reset");
      },
      true,
    ],
    [
      "a failure that may pass",
      () => {
        throw new ToolError("503", { retriable: true });
      },
      true,
    ],
    [
      "a failure",
      () => {
        throw new ToolError("No such city.");
      },
      false,
    ],
    ["no JSON", () => new Map(), false],
    ["silence", () => new Promise(() => undefined), true],
    ["a result", () => "fine", false],
  ];

  test.each(outcomes)("TOOLRETRY-1 recognises temporary failures: %s", async (_, execute, transient) => {
    const clock = new VirtualClock(NOW);
    const tool = defineTool({
      name: "tool",
      description: "A tool.",
      input: z.object({}),
      effect: "pure",
      execute,
    });
    const code = new DeployedCode([defineLibrary("test", { tools: [tool] })]);
    const reports: ExecutorReport[] = [];
    const running = localExecutor(code, clock).run([callOf("tool", {}, { timeoutMs: 1_000 })], {
      async report(more) {
        reports.push(...more);
        return [];
      },
      cancelled: () => new Promise(() => undefined),
    });
    await clock.advance(1_000);
    await running;
    expect(reports.map((report) => "transient" in report)).toEqual([transient]);
  });

  test("TOOLRETRY-2 an operation that is stopped in its pause leaves no timer, and its executor is not called", async () => {
    const clock = new VirtualClock(NOW);
    const { record, active } = stateWith(chainWith(RETRY), { attempt: 2, notBefore: NOW + 60_000 });
    const turn = active.get(1) ?? expect.fail("no turn");
    const unused = () => expect.fail("nothing is reported");
    const batch = new ToolBatch({ record, turn, onResults: unused, onProgress: unused });
    const stop = new AbortController();
    const [operation = expect.fail("no operation")] = turn.operations;
    const followed = batch.follow(operation, stop.signal);
    const running = batch.run({ run: unused }, clock, NOW + 60_000);
    await clock.advance(1_000);
    expect(clock.pending).toBe(1);
    stop.abort();
    await Promise.all([followed, running]);
    expect(clock.pending).toBe(0);
  });
});

describe("definitions", () => {
  const options = { name: "tool", description: "A tool.", input: z.object({}), execute: () => null };
  const define = (fields: object) => defineTool({ ...options, ...fields }).definition;

  test("TOOLFORM-3 defineTool keeps attempts and backoff, and drops a single attempt", () => {
    const retry = { maxAttempts: 3, backoffMs: 50, timeoutMs: 5 };
    expect(define({ effect: "pure", retry })).toMatchObject({
      timeoutMs: 5,
      retry: { maxAttempts: 3, backoffMs: 50 },
    });
    expect(define({ effect: "pure", retry: { maxAttempts: 2 } }).retry).toEqual({
      maxAttempts: 2,
      backoffMs: 1_000,
    });
    for (const single of [{}, { maxAttempts: 1 }, { backoffMs: 50 }, { timeoutMs: 5 }])
      expect(define({ retry: single })).not.toHaveProperty("retry");
  });

  test("TOOLFORM-3 defineTool refuses attempts of a `once` tool, and names the fix", () => {
    const error = /"tool": \/retry: .*`once`.*Declare `effect: "idempotent"`.*or remove `retry`/;
    expect(() => define({ retry: { maxAttempts: 3 } })).toThrow(error);
    expect(() => define({ effect: "once", retry: { maxAttempts: 2, backoffMs: 1 } })).toThrow(error);
  });

  test.each([
    { maxAttempts: 0 },
    { maxAttempts: 11 },
    { maxAttempts: "3" },
    { backoffMs: 60_001 },
    { more: 1 },
  ])("TOOLFORM-3 defineTool refuses %j", (retry) =>
    expect(() => define({ effect: "pure", retry })).toThrow(/\/retry/),
  );

  test("AUTHOR-2 TOOLFORM-3 a posted tool inherits attempts, changes them, or gives them up with its effect", async () => {
    const retry = { maxAttempts: 3, backoffMs: 50 };
    const code = new DeployedCode([
      defineLibrary("test", {
        tools: [
          defineTool({ ...options, effect: "idempotent", retry }),
          defineTool({ ...options, name: "charge" }),
        ],
      }),
    ]);
    const ports = {
      registry: new Registry(code),
      tools: code,
      mayReach: () => true,
      mayReceiveKey: () => true,
    };
    const key = { library: "mine", id: "posted" };
    const post = async (task: string, fields: object) => {
      const posted = { name: "posted", description: "Posted.", target: { task }, ...fields };
      return (await checkedTool(ports, key, posted)).retry;
    };
    expect(await post("test/tool", {})).toEqual(retry);
    expect(await post("test/tool", { retry: { maxAttempts: 2 } })).toEqual({
      maxAttempts: 2,
      backoffMs: 1_000,
    });
    expect(await post("test/tool", { retry: { maxAttempts: 1 } })).toBeUndefined();
    expect(await post("test/tool", { effect: "once" })).toBeUndefined();
    await expect(post("test/charge", { retry })).rejects.toMatchObject({
      code: "INVALID_INPUT",
      options: { errors: [{ path: "/retry", message: expect.stringContaining("`once`") }] },
    });
  });
});
