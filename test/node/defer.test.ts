/** Deferred operations: planning, the effect of crashes and time, and the values that a tool receives. */
import fc from "fast-check";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { dueIn, effectsOf } from "../../src/agents/conversation/core/effects.ts";
import {
  type Operation,
  packOperation,
  unpackOperation,
} from "../../src/agents/conversation/core/operation.ts";
import type { Signal } from "../../src/agents/conversation/core/signals.ts";
import { type ConversationState, NEW_STATE } from "../../src/agents/conversation/core/state.ts";
import { step } from "../../src/agents/conversation/core/step.ts";
import { beginTransition, type Transition } from "../../src/agents/conversation/core/transition.ts";
import type { Turn } from "../../src/agents/conversation/core/turn.ts";
import { Handles } from "../../src/agents/conversation/inbound/handles.ts";
import { defineLibrary, defineTool, type ToolContext } from "../../src/library/define/define.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { allowAll } from "../../src/policy/gate.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { ExecutorReport } from "../../src/protocol/executor-api.ts";
import {
  claimText,
  DEFAULT_DEFER_MS,
  MAX_DEFER_MS,
  readHandle,
} from "../../src/protocol/operation-handle.ts";
import { localExecutor } from "../../src/testing/world/local-executor.ts";
import { recordOf } from "../support/records.ts";
import { callOf } from "../support/tools.ts";

const NOW = 1_000_000;
const CLAIM = {
  tenant: "acme",
  conversationId: "conv_01JD0000000000000000000000",
  operationId: "op_01JD0000000000000000000002",
  expiresAt: NOW + DEFAULT_DEFER_MS,
};

function stateWith(members: Partial<Operation> = {}): ConversationState {
  const operation: Operation = {
    item: 2,
    reply: 0,
    toolCallId: "call_2",
    name: "pay",
    tool: { library: "test", id: "pay", version: 1 },
    effect: "once",
    target: "code",
    mode: "sync",
    status: "pending",
    attempt: 1,
    timeoutMs: 1_000,
    input: {},
    ...members,
  };
  const record = recordOf();
  const turn: Turn = {
    n: 1,
    stem: "01ARZ3NDEKTSV4RRFFQ",
    agentId: record.agents[0].id,
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
  return { ...NEW_STATE, record, seq: 5, turns: 1, active: new Map([[1, turn]]), stored: new Map() };
}

const apply = (state: ConversationState, signal: Signal, now = NOW): Transition =>
  step(beginTransition(state), signal, { now, stem: "", gate: allowAll });
const operationOf = (state: ConversationState): Operation =>
  state.active.get(1)?.operations[0] ?? expect.fail("no operation");
const typesOf = ({ entries }: Transition) => entries.map(({ type }) => type);

const deferral = (attempt = 1, expiresAt = NOW + 5_000) =>
  ({ type: "conversation.tool.deferred", turn: 1, item: 2, attempt, expiresAt }) as const;
const outcome = (value: unknown) =>
  ({ type: "conversation.tool.resolved", turn: 1, item: 2, outcome: { result: value as null } }) as const;
const ended = { tool_call_id: "call_2", success: true, result: "from the tool" };
const completed = {
  type: "conversation.tool.completed",
  turn: 1,
  item: 2,
  attempt: 1,
  result: ended,
} as const;
const EXPIRE = { type: "conversation.cmd.expire" } as const;
const RECOVER = { type: "conversation.cmd.recover" } as const;
const CANCEL = { type: "conversation.cancel", turn: 1, caller: { type: "user", userId: "ada" } } as const;

describe("planning", () => {
  test("DEFER-1 a deferred operation calls for no effect, survives crashes, and wakes its actor at the expiry", () => {
    const { state, entries } = apply(stateWith(), deferral());
    expect(entries).toEqual([
      { type: "tool.deferred", turn: 1, item: 2, data: { expiresAt: "1970-01-01T00:16:45.000Z" } },
      { type: "turn.waiting", turn: 1, data: { reason: "operations" } },
    ]);
    expect(effectsOf(state)).toEqual([]);
    expect(dueIn(state, NOW, NOW)).toBe(5_000);
    expect(typesOf(apply(state, RECOVER))).toEqual([]);
    const operation = operationOf(state);
    expect(unpackOperation(packOperation(operation, NOW), NOW)).toEqual(operation);
  });

  test("DEFER-1 DEFER-3 the result continues the turn; the same result again is ignored, any other is refused", () => {
    const { state } = apply(stateWith(), deferral());
    const after = apply(state, outcome({ paid: true }));
    expect(typesOf(after)).toEqual(["tool.completed", "message.started"]);
    expect(typesOf(apply(after.state, outcome({ paid: true })))).toEqual([]);
    expect(() => apply(after.state, outcome({ paid: false }))).toThrow(/another result/);
    expect(typesOf(apply(after.state, deferral()))).toEqual([]);
    expect(typesOf(apply(after.state, completed))).toEqual([]);
  });

  test("DEFER-2 the result may arrive before the tool ends, and a report of another attempt is ignored", () => {
    const early = apply(stateWith(), outcome(1));
    expect(typesOf(early)).toEqual(["tool.completed", "message.started"]);
    expect(typesOf(apply(early.state, deferral()))).toEqual([]);
    expect(typesOf(apply(stateWith({ attempt: 2 }), deferral(1)))).toEqual([]);
    expect(typesOf(apply(stateWith({ effect: "pure" }), deferral()))).toEqual([]);
    expect(typesOf(apply(stateWith({ target: "client" }), deferral()))).toEqual([]);
    const interrupted = apply(stateWith({ status: "interrupted", deadline: NOW + 9 }), deferral());
    expect(operationOf(interrupted.state)).toMatchObject({ status: "deferred", deadline: NOW + 5_000 });
  });

  test("DEFER-2 once deferred, the tool's own result does not count", () => {
    const { state } = apply(stateWith(), deferral());
    expect(typesOf(apply(state, completed))).toEqual([]);
  });

  test("DEFER-4 at its expiry the operation fails with `TIMEOUT`: unknown for `once`, retriable for `idempotent`", () => {
    for (const effect of ["once", "idempotent"] as const) {
      const { state } = apply(stateWith({ effect }), deferral());
      expect(typesOf(apply(state, EXPIRE, NOW + 4_999))).toEqual([]);
      const after = apply(state, EXPIRE, NOW + 5_000);
      expect(typesOf(after)).toEqual(["tool.failed", "message.started"]);
      const error = operationOf(after.state).result?.error;
      expect(error).toMatchObject({ code: "TIMEOUT", retriable: effect === "idempotent" });
      expect(error?.message.startsWith("Outcome unknown")).toBe(effect === "once");
      expect(() => apply(after.state, outcome(1))).toThrow(/too late/);
    }
  });

  test("DEFER-1 no report keeps an operation open for longer than 30 days", () => {
    const { state } = apply(stateWith(), deferral(1, Number.MAX_SAFE_INTEGER));
    expect(operationOf(state).deadline).toBe(NOW + MAX_DEFER_MS);
  });

  test("DEFER-5 a turn waits once all that its model call needs is deferred, and until the last result is there", () => {
    const first = stateWith();
    const turn = first.active.get(1) ?? expect.fail("no turn");
    const [operation] = turn.operations;
    if (operation === undefined) return expect.fail("no operation");
    const others = [
      { ...operation, item: 3, toolCallId: "call_3" },
      { ...operation, item: 4, toolCallId: "call_4", mode: "async" as const },
    ];
    const several = { ...turn, items: 5, operations: [operation, ...others] };
    const state = { ...first, active: new Map([[1, several]]) };
    const isWaiting = ({ state: { active } }: Transition) => active.get(1)?.waiting !== undefined;

    const one = apply(state, deferral());
    expect([typesOf(one), isWaiting(one)], "another call runs").toEqual([["tool.deferred"], false]);
    const both = apply(one.state, { ...deferral(), item: 3 });
    expect(typesOf(both)).toEqual(["tool.deferred", "turn.waiting"]);
    expect(both.state.active.get(1)?.waiting, "the entry's number").toBe(
      both.state.seq + both.entries.length,
    );
    const background = apply(both.state, { ...completed, item: 4 });
    expect([typesOf(background), isWaiting(background)], "of no use yet").toEqual([["tool.completed"], true]);
    const half = apply(background.state, outcome(1));
    expect([typesOf(half), isWaiting(half)]).toEqual([["tool.completed"], true]);
    const whole = apply(half.state, { ...outcome(2), item: 3 });
    expect([typesOf(whole), isWaiting(whole)]).toEqual([["tool.completed", "message.started"], false]);

    const ended = apply(one.state, { ...completed, item: 3 });
    expect(typesOf(ended), "the other call ends first").toEqual(["tool.completed", "turn.waiting"]);
  });

  test("DEFER-3 STOP-1 OP-5 a stop cancels a deferred operation, and its outcome is unknown", () => {
    const { state } = apply(stateWith(), deferral());
    const after = apply(state, CANCEL);
    expect(typesOf(after)).toEqual(["tool.cancelled", "turn.failed"]);
    const [operation] = after.touched.get(1)?.operations ?? [];
    expect(operation).toMatchObject({ status: "cancelled", result: { error: { code: "CANCELLED" } } });
    expect(operation?.result?.error?.message).toMatch(/Outcome unknown/);
  });

  test("DEFER-1 DEFER-3 DEFER-4 whatever arrives in whatever order, the first result stays and the model is called once", () => {
    const signals = fc.constantFrom<Signal>(
      deferral(),
      deferral(2),
      completed,
      outcome(1),
      outcome(2),
      EXPIRE,
      RECOVER,
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(signals, fc.nat(3_000)), { maxLength: 12 }), (steps) => {
        let state = stateWith({ effect: "idempotent" });
        let now = NOW;
        let result: unknown;
        let calls = 0;
        for (const [signal, pause] of steps) {
          now += pause;
          try {
            const after = apply(state, signal, now);
            calls += typesOf(after).filter((type) => type === "message.started").length;
            ({ state } = after);
          } catch (error) {
            expect(error).toMatchObject({ code: "CONFLICT" });
          }
          const present = operationOf(state).result;
          if (result !== undefined) expect(present).toEqual(result);
          result = present;
          if (operationOf(state).status === "deferred") expect(effectsOf(state)).toEqual([]);
        }
        expect(calls).toBe(result === undefined ? 0 : 1);
      }),
    );
  });
});

describe("handles", () => {
  const handles = () => new Handles(new NodeKeyValue(new NodeSqlDatabase()));
  const own = { tenant: CLAIM.tenant, id: CLAIM.conversationId };

  test("HANDLE-1 a handle is accepted only by the conversation that issued it", async () => {
    const [mine, other] = [handles(), handles()];
    const handle = await mine.give(CLAIM);
    await other.give(CLAIM);
    expect(await mine.check(handle, own)).toEqual(CLAIM);
    const refusal = { code: "NOT_FOUND", message: expect.not.stringContaining(handle.slice(0, 8)) };
    await expect(other.check(handle, own)).rejects.toMatchObject(refusal);
    await expect(handles().check(handle, own)).rejects.toMatchObject(refusal);
    await expect(mine.check(handle, { ...own, tenant: "globex" })).rejects.toMatchObject(refusal);
    await expect(mine.check(handle, { ...own, id: "conv_01JD0000000000000000000001" })).rejects.toMatchObject(
      refusal,
    );
  });

  test("HANDLE-1 any change of a handle makes it unknown", async () => {
    const mine = handles();
    const handle = await mine.give(CLAIM);
    const places = fc.tuple(fc.nat(handle.length - 1), fc.constantFrom(..."AZaz09-_.=%"));
    await fc.assert(
      fc.asyncProperty(places, async ([place, character]) => {
        const changed = handle.slice(0, place) + character + handle.slice(place + 1);
        if (changed === handle) return;
        await expect(mine.check(changed, own)).rejects.toMatchObject({ code: "NOT_FOUND" });
      }),
      { numRuns: 200 },
    );
  });

  test("HANDLE-1 only claims of the right form are read", () => {
    const read = (claim: object) =>
      readHandle(`${claimText({ ...CLAIM, ...claim })}.${"A".repeat(43)}`)?.claim;
    expect(read({})).toEqual(CLAIM);
    for (const wrong of [
      { tenant: "a:b" },
      { tenant: "" },
      { conversationId: "conv_1" },
      { conversationId: "agent" },
      { operationId: "turn_01JD0000000000000000000002" },
      { expiresAt: 1.5 },
      { expiresAt: "1" },
    ])
      expect(read(wrong), JSON.stringify(wrong)).toBeUndefined();
    for (const wrong of [
      "",
      ".",
      "a.b",
      1,
      null,
      undefined,
      {},
      ["a"],
      `${"A".repeat(2_000)}.${"A".repeat(43)}`,
    ])
      expect(readHandle(wrong)).toBeNull();
  });
});

describe("the executor", () => {
  async function reportsOf(execute: (context: ToolContext) => unknown, effect: "once" | "pure" = "once") {
    const quiet = vi.spyOn(console, "error").mockReturnValue();
    onTestFinished(() => quiet.mockRestore());
    const clock = new VirtualClock(NOW);
    const tool = defineTool({
      name: "pay",
      description: "Pays.",
      input: z.object({}),
      effect,
      execute: (_, context) => execute(context),
    });
    const code = new DeployedCode([defineLibrary("test", { tools: [tool] })]);
    const give = async (_: unknown, { expiresInMs = DEFAULT_DEFER_MS }) => ({
      handle: "the.handle",
      expiresAt: NOW + expiresInMs,
    });
    const reports: ExecutorReport[] = [];
    await localExecutor(code, clock, undefined, undefined, give).run([callOf("pay")], {
      async report(more) {
        reports.push(...more);
        return [];
      },
      cancelled: () => new Promise(() => undefined),
    });
    return reports;
  }

  test("DEFER-1 the tool gets the handle and the address before it returns, and reports no result", async () => {
    const seen: unknown[] = [];
    const reports = await reportsOf(async ({ defer }) => {
      const deferred = await defer({ expiresInMs: 60_000 });
      seen.push(deferred.handle, deferred.path, deferred.url, deferred.expiresAt.getTime());
      return deferred;
    });
    expect(seen).toEqual([
      "the.handle",
      "/api/operations/the.handle/result",
      "https://agents.test/api/operations/the.handle/result",
      NOW + 60_000,
    ]);
    expect(reports).toMatchObject([{ deferred: { expiresAt: NOW + 60_000 } }]);
    expect(await reportsOf(({ defer }) => defer())).toMatchObject([
      { deferred: { expiresAt: NOW + DEFAULT_DEFER_MS } },
    ]);
  });

  test("HANDLE-2 a handle within another value is an error, not a result", async () => {
    const [report] = await reportsOf(async ({ defer }) => ({ payment: await defer() }));
    expect(JSON.stringify(report)).toContain("not inside another value");
    expect(JSON.stringify(report)).not.toContain("the.handle");
  });

  test("DEFER-1 a `pure` tool cannot defer; a tool that does not return the value of `defer` has its own result", async () => {
    expect(JSON.stringify(await reportsOf(({ defer }) => defer(), "pure"))).toContain("cannot defer");
    const [report] = await reportsOf(async ({ defer }) => {
      await defer();
      return "at once";
    });
    expect(report).toMatchObject({ result: { success: true, result: "at once" } });
  });
});
