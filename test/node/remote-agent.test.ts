/** Tools with the target `{a2a}`: definitions, planning and results. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { contentOf, isAsking, openTask, taskResult } from "../../src/a2a/results.ts";
import { taskSchema } from "../../src/a2a/wire.ts";
import { ToolStateStore } from "../../src/agents/base/calls/tool-state-store.ts";
import { callEnvelopes, endedRemoteCalls } from "../../src/agents/conversation/core/call-envelopes.ts";
import { dueIn, effectsOf } from "../../src/agents/conversation/core/effects.ts";
import {
  isOpen,
  type Operation,
  packOperation,
  unpackOperation,
} from "../../src/agents/conversation/core/operation.ts";
import type { Signal } from "../../src/agents/conversation/core/signals.ts";
import { type ConversationState, NEW_STATE } from "../../src/agents/conversation/core/state.ts";
import { step } from "../../src/agents/conversation/core/step.ts";
import { beginTransition, type Transition } from "../../src/agents/conversation/core/transition.ts";
import type { Turn } from "../../src/agents/conversation/core/turn.ts";
import { invocationOf } from "../../src/agents/conversation/effects/tool-batch.ts";
import { defineTool } from "../../src/library/define/define.ts";
import { networkProblem } from "../../src/library/tools/sub-agent.ts";
import { ToolError } from "../../src/library/tools/tool-error.ts";
import { allowAll } from "../../src/policy/gate.ts";
import { policyOf } from "../../src/policy/policy.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { remoteCallKey } from "../../src/protocol/remote-call.ts";
import type { Json } from "../../src/shared/json.ts";
import { recordOf } from "../support/records.ts";

const NAMED = { name: "ask", description: "Asks." };
const URL = "https://law.example.com/a2a/lawyer";

describe("a tool in code", () => {
  test("A2ATOOL-1 A2ATOOL-2 is idempotent, has a message and an hour, and takes a schema of its own", () => {
    const { definition } = defineTool({ ...NAMED, target: { a2a: URL } });
    expect(definition).toMatchObject({ effect: "idempotent", timeoutMs: 3_600_000, target: { a2a: URL } });
    expect(Object.keys(Object(definition.inputSchema.properties))).toEqual(["message", "task_id"]);
    const own = defineTool({
      ...NAMED,
      effect: "once",
      input: z.object({ topic: z.string() }),
      target: { a2a: URL },
    });
    expect(own.definition).toMatchObject({ effect: "once", inputSchema: { required: ["topic"] } });
    expect(own.definition.retry).toBeUndefined();
  });

  test.each([
    ["http://law.example.com/x", "https"],
    ["https://ada:secret@law.example.com/x", "https"],
    ["law", "https"],
    ["https://law.example.com./x", "end with a dot"],
  ])("A2ATOOL-1 the address %s is refused", (a2a, said) => {
    expect(() => defineTool({ ...NAMED, target: { a2a } })).toThrow(said);
  });

  test("A2ATOOL-2 `pure` and `hosts` are refused", () => {
    const target = { a2a: URL };
    expect(() => defineTool({ ...NAMED, target, effect: "pure" } as never)).toThrow(
      "Must be `idempotent` or `once`",
    );
    expect(() => defineTool({ ...NAMED, target, hosts: [] } as never)).toThrow("its host is in `target.a2a`");
  });

  test("SPAWN-2 POLICY-6 its host counts for sub-agents and for rules with hosts", () => {
    const { definition } = defineTool({ ...NAMED, target: { a2a: URL } });
    expect(networkProblem(definition, ["law.example.com"])).toBeNull();
    expect(networkProblem(definition, ["example.com"])).toContain("reaches law.example.com");
    expect(networkProblem(definition, "none")).not.toBeNull();
    const gate = policyOf([{ id: "no-law", hosts: ["*.example.com"], then: "deny" }]);
    const call = {
      tenant: "t",
      projectId: "p",
      agentId: "a",
      conversationId: "c",
      toolCallId: "x",
      taint: [],
    };
    expect(gate(definition, { message: "hi" }, call)).toMatchObject({ decision: "deny", rule: "no-law" });
    const dotted = { ...definition, target: { a2a: "https://law.example.com./a2a/lawyer" } };
    expect(gate(dotted, { message: "hi" }, call), "a pinned address with a dot").toMatchObject({
      decision: "deny",
    });
  });
});

const NOW = 1_000_000;

function stateWith(members: Partial<Operation>): ConversationState {
  const operation: Operation = {
    ...{ item: 2, reply: 0, toolCallId: "call_2", name: "ask", effect: "once", target: "code", mode: "sync" },
    ...{
      status: "pending",
      attempt: 1,
      timeoutMs: 60_000,
      input: {},
      remote: "sending",
      deadline: NOW + 65_000,
    },
    tool: { library: "test", id: "ask", version: 1 },
    ...members,
  };
  const record = recordOf();
  const turn: Turn = {
    ...{
      n: 1,
      stem: "01ARZ3NDEKTSV4RRFFQ",
      agentId: record.agents[0].id,
      caller: { type: "user", userId: "ada" },
    },
    ...{ input: "go", status: "active", createdAt: NOW, firstSeq: 2, snapshotSeq: 1, items: 3, call: null },
    replies: [{ item: 1, text: "", finishReason: "tool_calls", at: NOW }],
    ...{ operations: [operation], recoveries: 0, issues: {} },
  };
  return { ...NEW_STATE, record, seq: 5, turns: 1, active: new Map([[1, turn]]), stored: new Map() };
}

const apply = (state: ConversationState, signal: Signal, now = NOW): Transition =>
  step(beginTransition(state), signal, { now, stem: "", gate: allowAll });
const operationOf = (state: ConversationState): Operation =>
  state.active.get(1)?.operations[0] ?? expect.fail("no operation");
const failure = (code: "TIMEOUT" | "INTERNAL_ERROR") => ({
  tool_call_id: "call_2",
  success: false,
  error: { code, message: "Lost.", retriable: true },
});
const continues = (attempt: number, at: number): Signal => ({
  type: "conversation.tool.completed",
  ...{ turn: 1, item: 2, attempt, result: failure("TIMEOUT"), continuesAt: at },
});
const lost = (attempt: number): Signal => ({
  type: "conversation.tool.completed",
  ...{ turn: 1, item: 2, attempt, result: failure("INTERNAL_ERROR"), transient: true, lost: true },
});
const RECOVER: Signal = { type: "conversation.cmd.recover" };
const EXPIRE: Signal = { type: "conversation.cmd.expire" };

describe("planning", () => {
  test("A2ATASK-1 a call continues with the next attempt, at its time", () => {
    const { state, entries } = apply(stateWith({}), continues(1, NOW + 5_000));
    const data = { notBefore: "1970-01-01T00:16:45.000Z" };
    expect(entries).toEqual([{ type: "tool.continued", turn: 1, item: 2, data }]);
    expect(operationOf(state)).toMatchObject({ attempt: 2, status: "pending", remote: "following" });
    expect(effectsOf(state).map(({ key }) => key)).toEqual(["tool:1:2:2"]);
    expect(dueIn(state, NOW, NOW)).toBeLessThanOrEqual(65_000);
    const operation = operationOf(state);
    expect(unpackOperation(packOperation(operation, NOW), NOW)).toEqual(operation);
  });

  test("A2ATASK-3 RECOVER-4 after a crash a `once` call keeps its deadline, and its next attempt sends no message", () => {
    const { state } = apply(stateWith({}), RECOVER);
    const operation = operationOf(state);
    expect(operation).toMatchObject({ status: "pending", remote: "following", attempt: 2 });
    expect(operation).toMatchObject({ notBefore: NOW + 30_000, deadline: NOW + 65_000 });
    const definition = defineTool({ ...NAMED, target: { a2a: URL } }).definition;
    const tools = [{ library: "test", id: "ask", version: 1, hash: "", definition }];
    expect(invocationOf({ tools }, operation).remote).toEqual({ url: URL, following: true });
    const idempotent = operationOf(apply(stateWith({ effect: "idempotent" }), RECOVER).state);
    expect(idempotent).toMatchObject({ status: "pending", remote: "sending", attempt: 1 });
    expect(invocationOf({ tools }, idempotent).remote).toEqual({ url: URL });
  });

  test("A2ATASK-3 the success of the attempt before a crash is still accepted, and its failure is not", () => {
    const { state } = apply(stateWith({}), RECOVER);
    const address = { type: "conversation.tool.completed", turn: 1, item: 2, attempt: 1 } as const;
    const success = { tool_call_id: "call_2", success: true, result: "Yes." };
    expect(operationOf(apply(state, { ...address, result: success }).state).result).toEqual(success);
    expect(isOpen(operationOf(apply(state, { ...address, result: failure("TIMEOUT") }).state))).toBe(true);
  });

  const event = fc.oneof(
    fc.constant("crash"),
    fc.constant("continue"),
    fc.constant("lost"),
    fc.constant("late"),
    fc.constant("wait"),
  );

  test("A2ATASK-1 A2ATASK-3 crashes and lost attempts never end a `once` call, and the time limit does", () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 9 }), (events) => {
        let state = stateWith({});
        let now = NOW;
        for (const one of events) {
          const { attempt } = operationOf(state);
          if (one === "wait") now += 1_000;
          else if (one === "crash") ({ state } = apply(state, RECOVER, now));
          else if (one === "continue") ({ state } = apply(state, continues(attempt, now + 500), now));
          else if (one === "lost") ({ state } = apply(state, lost(attempt), now));
          else ({ state } = apply(state, continues(attempt - 1, now), now));
          expect(isOpen(operationOf(state))).toBe(true);
          expect(operationOf(state)).toMatchObject({ status: "pending", deadline: NOW + 65_000 });
        }
        const before = state;
        const end = apply(state, EXPIRE, NOW + 65_000);
        expect(operationOf(end.state).result?.error).toMatchObject({ code: "TIMEOUT" });
        expect(callEnvelopes(before, end.state, end).map(({ to, type }) => [to.kind, type])).toEqual([
          ["remote-task", "remote_task.cancel"],
        ]);
      }),
    );
  });

  test("A2ATASK-2 a result needs no cancellation, and a stop needs one", () => {
    const before = stateWith({ remote: "following", attempt: 3 });
    const result = { tool_call_id: "call_2", success: true, result: "Yes." };
    const done = apply(before, { type: "conversation.tool.completed", turn: 1, item: 2, attempt: 3, result });
    expect(callEnvelopes(before, done.state, done)).toEqual([]);
    expect(endedRemoteCalls(before, done), "A2ATASK-4").toHaveLength(1);
    const caller = { type: "user", userId: "ada" } as const;
    const stopped = apply(before, { type: "conversation.cancel", turn: 1, caller });
    expect(callEnvelopes(before, stopped.state, stopped)).toMatchObject([{ type: "remote_task.cancel" }]);
    expect(endedRemoteCalls(before, stopped), "the cancellation needs it").toEqual([]);
  });

  test("A2ATASK-2 the end of a call with an unknown outcome cancels its task, also if it was interrupted", () => {
    const interrupted = stateWith({ status: "interrupted", deadline: NOW + 30_000 });
    const caller = { type: "user", userId: "ada" } as const;
    const stopped = apply(interrupted, { type: "conversation.cancel", turn: 1, caller });
    const expired = apply(interrupted, EXPIRE, NOW + 30_000);
    expect(operationOf(expired.state).result?.error?.message).toContain("Outcome unknown");
    for (const end of [stopped, expired])
      expect(callEnvelopes(interrupted, end.state, end)).toMatchObject([{ type: "remote_task.cancel" }]);
    const waiting = stateWith({ status: "awaiting_approval" });
    const unasked = apply(waiting, { type: "conversation.cancel", turn: 1, caller });
    expect(callEnvelopes(waiting, unasked.state, unasked), "never sent").toEqual([]);
  });
});

test("A2ATASK-4 a list of the tool state has no entries of remote agents", () => {
  const store = new ToolStateStore(new NodeKeyValue(new NodeSqlDatabase()));
  store.put(remoteCallKey("op_1"), { begunAt: 1 });
  store.put("notes", 2);
  expect(store.list("")).toEqual([{ key: "notes", value: 2 }]);
  expect(store.list("a2a.")).toEqual([]);
  expect(store.get(remoteCallKey("op_1"))).toEqual({ begunAt: 1 });
  store.put(remoteCallKey("op_1"), null);
  expect(store.get(remoteCallKey("op_1"))).toBeNull();
});

describe("results", () => {
  const form = { properties: { approved: { type: "boolean" }, values: { type: "object" } } };
  const open = (...data: Json[]) =>
    openTask(
      taskSchema.parse({
        id: "task",
        status: {
          state: "TASK_STATE_INPUT_REQUIRED",
          message: { parts: [{ text: "Pay?" }, ...data.map((one) => ({ data: one }))] },
        },
      }),
    );
  const withValues = (values: Json) => ({ id: "op", answer: { properties: { approved: {}, values } } });

  test("A2ACALL-12 a message answers one request with an id and without values, and no other", () => {
    expect(open({ id: "op", answer: form })).toEqual({ contextId: "", request: { text: "Pay?", id: "op" } });
    const onlyThere = { contextId: "", request: { text: "Pay?" } };
    expect(open({ answer: form }), "without an id").toEqual(onlyThere);
    expect(open({ id: "a", answer: form }, { id: "b", answer: form })).toEqual(onlyThere);
    for (const values of [
      { type: "object", properties: { a: {} } },
      { $ref: "#/a" },
      true,
      { type: "string" },
    ])
      expect(open(withValues(values)), JSON.stringify(values)).toEqual(onlyThere);
    expect(open({ id: "op", question: "Which?" })).toEqual({ contextId: "" });
  });

  test("A2ACALL-12 the schemas of several requests are not checked", () => {
    const fail = () => expect.fail("A schema is checked.");
    const values: Json = new Proxy({}, { get: fail, ownKeys: fail, getPrototypeOf: fail });
    const parts = ["a", "b"].map((id) => ({ data: { ...withValues(values), id } }));
    const task = { id: "task", status: { state: "TASK_STATE_INPUT_REQUIRED" as const, message: { parts } } };
    expect(openTask(task)).toEqual({ contextId: "", request: { text: "" } });
  });

  const part = fc.oneof(
    fc.record({ text: fc.string() }),
    fc.record({ data: fc.integer() }),
    fc.record({ raw: fc.string(), filename: fc.string() }),
    fc.record({ url: fc.webUrl() }),
  );
  const state = fc.constantFrom(
    ...[
      "SUBMITTED",
      "WORKING",
      "COMPLETED",
      "FAILED",
      "CANCELED",
      "REJECTED",
      "INPUT_REQUIRED",
      "AUTH_REQUIRED",
      "NEW",
    ],
  );

  test("A2ACALL-6 A2ACALL-7 A2ACALL-8 each task is a result, an error for the model, or it works", () => {
    fc.assert(
      fc.property(state, fc.array(fc.array(part)), fc.array(part), (name, groups, said) => {
        const task = taskSchema.parse({
          id: "task",
          status: { state: `TASK_STATE_${name}`, message: { parts: said } },
          artifacts: groups.map((parts) => ({ parts })),
        });
        const isEnd = ["FAILED", "CANCELED", "REJECTED", "NEW"].includes(name);
        if (isEnd) {
          expect(() => taskResult(task)).toThrow(ToolError);
          return;
        }
        const result = taskResult(task);
        expect(result === undefined).toBe(["SUBMITTED", "WORKING"].includes(name));
        if (isAsking(task)) expect(result).toMatchObject({ task_id: "task" });
        // Files are names: no content and no address of a file is in a result.
        expect(JSON.stringify(contentOf(task.artifacts?.map(({ parts }) => parts) ?? []))).not.toContain(
          '"url":',
        );
      }),
    );
  });
});
