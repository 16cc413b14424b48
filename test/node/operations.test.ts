/**
 * Operations as separate effects: keys, one call for operations that start together, abort, and their state after a
 * crash.
 */

import fc from "fast-check";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { adapterFor } from "../../src/adapters/formats/lookup.ts";
import { StoredClock } from "../../src/agents/base/runtime/stored-clock.ts";
import { LATE_RESULT_MS, MAX_RECOVERIES } from "../../src/agents/conversation/core/conversation-limits.ts";
import type { AgentDecision } from "../../src/agents/conversation/core/decisions.ts";
import { dueIn, effectsOfTurn, endedEffects } from "../../src/agents/conversation/core/effects.ts";
import {
  type Operation,
  packOperation,
  statusOf,
  takesByName,
  unpackOperation,
} from "../../src/agents/conversation/core/operation.ts";
import { plan } from "../../src/agents/conversation/core/planning/plan.ts";
import { reduce } from "../../src/agents/conversation/core/reducer.ts";
import type { EffectSignal, Signal } from "../../src/agents/conversation/core/signals.ts";
import { type ConversationState, NEW_STATE } from "../../src/agents/conversation/core/state.ts";
import { beginTransition } from "../../src/agents/conversation/core/transition.ts";
import type { Turn } from "../../src/agents/conversation/core/turn.ts";
import { EffectRunner } from "../../src/agents/conversation/effects/effect-runner.ts";
import type { ModelDelta } from "../../src/model/reply.ts";
import { allowAll } from "../../src/policy/gate.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { seededIds } from "../../src/ports/node/seeded-ids.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { ToolEffect } from "../../src/protocol/definitions.ts";
import { type BatchCaller, MAX_OUTPUT_BYTES, type ToolInvocation } from "../../src/protocol/executor-api.ts";
import { operationId } from "../../src/protocol/ids.ts";
import { recordOf } from "../support/records.ts";
import { SteeredClock } from "../support/steered-clock.ts";

const TIMEOUT_MS = 1_000;
const NOW = 1_000_000;

const keyValue = () => new NodeKeyValue(new NodeSqlDatabase());

function operation(item: number, members: Partial<Operation> = {}): Operation {
  return {
    item,
    reply: 0,
    toolCallId: `call_${item}`,
    name: "tool",
    tool: { library: "test", id: "tool", version: 1 },
    effect: "once",
    target: "code",
    mode: "sync",
    status: "pending",
    attempt: 1,
    timeoutMs: TIMEOUT_MS,
    input: {},
    ...members,
  };
}

function turnWith(operations: Operation[], members: Partial<Turn> = {}): Turn {
  const replies = Math.max(...operations.map(({ reply }) => reply)) + 1;
  return {
    n: 1,
    stem: "01ARZ3NDEKTSV4RRFFQ",
    agentId: "tester",
    caller: { type: "user", userId: "ada" },
    input: "go",
    status: "active",
    createdAt: NOW,
    firstSeq: 2,
    snapshotSeq: 1,
    items: 100,
    call: null,
    replies: Array.from({ length: replies }, (_, item) => ({
      item,
      text: "",
      finishReason: "tool_calls" as const,
      at: NOW,
    })),
    operations,
    recoveries: 0,
    issues: {},
    ...members,
  };
}

const RECORD = recordOf();

/** Effects on an executor that answers when the test does. A model calls the operations of `preview`. */
function stage(onProgress: () => void = () => undefined, preview?: Turn) {
  const clock = new VirtualClock(NOW);
  const batches: { calls: ToolInvocation[]; caller: BatchCaller; end: () => void }[] = [];
  const reported: EffectSignal[][] = [];
  const store = { isUp: true, isReachable: true };
  const unused = () => expect.fail("no model is called");
  async function* callTools(): AsyncGenerator<ModelDelta> {
    yield { type: "tool-call", index: 0, id: "call_1", name: "tool", arguments: "{}" };
    yield { type: "finish", reason: "tool_calls" };
  }
  const effects = new EffectRunner({
    clock,
    ids: seededIds(1, clock),
    gateway: { stream: preview === undefined ? unused : callTools },
    adapters: adapterFor,
    executor: {
      run(calls, caller) {
        if (!store.isReachable) throw new Error("no such class");
        return new Promise<void>((end) => batches.push({ calls, caller, end }));
      },
    },
    record: () => RECORD,
    history: () => [],
    shownTurns: () => [],
    finished: unused,
    ...{ agent: unused, run: unused, invite: unused, waitUntil: unused },
    ...{ compacted: unused, reportSideCall: unused },
    preview: () => preview,
    inlineBytes: () => MAX_OUTPUT_BYTES,
    startMore: unused,
    report: (...outcomes) => {
      reported.push(outcomes);
      return store.isUp;
    },
    onText: unused,
    onProgress,
  });
  const started = () => batches.map(({ calls }) => calls.map((call) => call.operationId));
  const answer = (batch: number, ...items: number[]) =>
    batches[batch]?.caller.report(
      items.map((item) => ({
        operationId: idOf(item),
        result: { tool_call_id: `call_${item}`, success: true, result: item },
      })),
    );
  return { clock, effects, batches, reported, started, answer, store };
}

const idOf = (item: number) => operationId(turnWith([operation(1)]), item);

describe("effects of operations", () => {
  test("EFFECT-4 a second reply does not start an open operation of the first again", async () => {
    const { effects, started, clock } = stage();
    const first = turnWith([operation(1)]);
    effects.start(effectsOfTurn(first));
    const second = turnWith([operation(1), operation(3, { reply: 1 })]);
    effects.start(effectsOfTurn(second));
    await clock.advance(0);
    expect(started()).toEqual([[idOf(1)], [idOf(3)]]);
  });

  test("EFFECT-3 a reply that calls pure tools waits 50 ms for their results, then is committed without them", async () => {
    const called = turnWith([operation(1, { effect: "pure" })]);
    const { effects, started, reported, answer, clock } = stage(undefined, called);
    const types = () => reported.map((outcomes) => outcomes.map(({ type }) => type));
    const call = { item: 0, attempt: 1, notBefore: NOW, final: false };
    effects.start(effectsOfTurn({ ...called, replies: [], operations: [], call }));
    await clock.advance(49);
    expect(started()).toEqual([[idOf(1)]]);
    expect(types()).toEqual([]);
    await clock.advance(1);
    expect(types()).toEqual([["conversation.llm.completed"]]);
    await answer(0, 1);
    expect(types()).toEqual([["conversation.llm.completed"], ["conversation.tool.completed"]]);
  });

  test("EFFECT-4 another attempt of an operation is another effect", async () => {
    const { effects, started, batches, clock } = stage();
    effects.start(effectsOfTurn(turnWith([operation(1)])));
    effects.start(effectsOfTurn(turnWith([operation(1, { attempt: 2 })])));
    await clock.advance(0);
    expect(started()).toEqual([[idOf(1)], [idOf(1)]]);
    expect(batches.map(({ calls }) => calls[0]?.attempt)).toEqual([1, 2]);
  });

  test("STOREDTIME-1 time pauses while the clock is behind the stored time", () => {
    const clock = new SteeredClock();
    let newest = 0;
    const stored = new StoredClock(clock, keyValue(), () => newest);
    const now = clock.now();
    expect([stored.now(), stored.isBehind]).toEqual([now, false]);
    newest = now + 500;
    expect([stored.now(), stored.isBehind]).toEqual([now + 500, true]);
    clock.pass(499);
    expect([stored.now(), stored.isBehind]).toEqual([now + 500, true]);
    clock.pass(2);
    expect([stored.now(), stored.isBehind]).toEqual([now + 501, false]);
  });

  test("STOREDTIME-2 the next life knows the end of the last pause, also if the clock was set back during or after the pause", async () => {
    const clock = new SteeredClock();
    const kept = keyValue();
    const life = () => new StoredClock(clock, kept, () => 0);
    const now = clock.now();
    const pause = life().sleep(500);
    clock.pass(-100);
    await pause;
    clock.pass(-300);
    const next = life();
    next.recall();
    expect([next.now(), next.isBehind]).toEqual([now + 500, true]);
    clock.pass(400);
    expect([next.now(), next.isBehind]).toEqual([now + 500, false]);
  });

  test("STOREDTIME-2 a clock that is ahead during a pause leaves the time at the end of the pause", async () => {
    const clock = new SteeredClock();
    const stored = new StoredClock(clock, keyValue(), () => 0);
    const now = clock.now();
    const pause = stored.sleep(500);
    clock.pass(86_400_000);
    await pause;
    clock.pass(-86_400_000);
    expect(stored.now()).toBe(now + 500);
  });

  test("STOREDTIME-2 the attempt after a pause begins, also if the end of the pause cannot be stored", async () => {
    const errors = vi.spyOn(console, "error").mockReturnValue();
    onTestFinished(() => void vi.restoreAllMocks());
    const clock = new SteeredClock();
    const failing = Object.assign(keyValue(), {
      put: () => {
        throw new Error("The store is down.");
      },
    });
    const now = clock.now();
    const stored = new StoredClock(clock, failing, () => 0);
    await stored.sleep(500);
    expect(stored.now()).toBe(now + 500);
    expect(errors).toHaveBeenCalledTimes(1);
  });

  test("STOREDTIME-2 a pause that is cut short or takes no time stores nothing", async () => {
    const clock = new SteeredClock();
    const kept = keyValue();
    const stored = new StoredClock(clock, kept, () => 0);
    await stored.sleep(0);
    await expect(stored.sleep(500, AbortSignal.abort())).rejects.toThrow();
    expect(kept.list("", 10)).toEqual([]);
  });

  test("ISOLATE-1 RECOVER-1 a crash in the pause before an operation does not count against its turn, unless the clock was set back", () => {
    const state = (notBefore: number): ConversationState => {
      const turn = turnWith([operation(1, { effect: "idempotent", notBefore })]);
      return { ...NEW_STATE, record: RECORD, seq: 5, active: new Map([[1, turn]]), stored: new Map() };
    };
    const recover = (notBefore: number, wasSetBack = false) =>
      plan(
        state(notBefore),
        { type: "conversation.cmd.recover", wasSetBack },
        { now: NOW, stem: "", gate: allowAll },
      );
    expect(recover(NOW + 1)).toEqual([]);
    expect(recover(NOW + 1, true)).toMatchObject([{ type: "RESUME_TURN" }]);
    expect(recover(NOW)).toMatchObject([{ type: "RESUME_TURN" }]);
  });

  test("BATCH-7 if the executor cannot be reached, its operations did not run, and may be retried", async () => {
    const { effects, reported, clock, store } = stage();
    vi.spyOn(console, "error").mockReturnValue();
    onTestFinished(() => void vi.restoreAllMocks());
    store.isReachable = false;
    effects.start(effectsOfTurn(turnWith([operation(1), operation(2, { effect: "pure" })])));
    await clock.advance(0);
    const error = {
      code: "INTERNAL_ERROR",
      message: '"tool" did not run: its executor cannot be reached.',
      retriable: true,
    };
    expect(reported.flat()).toMatchObject([
      { item: 1, result: { error } },
      { item: 2, result: { error } },
    ]);
  });

  test("operations that start together go to the executor in one call, and their results together into one commit", async () => {
    const { effects, started, reported, answer, clock } = stage();
    effects.start(effectsOfTurn(turnWith([operation(1), operation(2), operation(3)])));
    await clock.advance(0);
    expect(started()).toEqual([[idOf(1), idOf(2), idOf(3)]]);
    await answer(0, 1, 2);
    await answer(0, 3);
    expect(reported.map((outcomes) => outcomes.map((signal) => "item" in signal && signal.item))).toEqual([
      [1, 2],
      [3],
    ]);
  });

  test("a client's, an interrupted and a finished operation are no effects", () => {
    const result = { tool_call_id: "call_4", success: true, result: 1 };
    const turn = turnWith([
      operation(1, { target: "client", deadline: NOW }),
      operation(2, { status: "interrupted", deadline: NOW }),
      operation(3),
      operation(4, { status: "completed", result }),
    ]);
    expect(effectsOfTurn(turn).map(({ key }) => key)).toEqual(["tool:1:3:1"]);
  });

  test("an attempt does not start before its time; attempts with the same time start in one call", async () => {
    const { effects, started, clock } = stage();
    const later = { notBefore: NOW + 500 };
    effects.start(effectsOfTurn(turnWith([operation(1), operation(2, later), operation(3, later)])));
    await clock.advance(499);
    expect(started()).toEqual([[idOf(1)]]);
    await clock.advance(1);
    expect(started()).toEqual([[idOf(1)], [idOf(2), idOf(3)]]);
  });

  test("EFFECT-5 BATCH-5 an aborted operation is cancelled in the executor; its late success is passed on, and the rest of its batch continues", async () => {
    const { effects, batches, reported, answer, clock } = stage();
    const before = turnWith([operation(1), operation(2)]);
    effects.start(effectsOfTurn(before));
    await clock.advance(0);
    const cancelled = batches[0]?.caller.cancelled();
    const result = { tool_call_id: "call_1", success: false };
    const after = turnWith([operation(1, { result, status: "failed" }), operation(2)]);
    effects.abort(endedEffects(before, after));
    expect(await cancelled).toEqual([idOf(1)]);
    const next = batches[0]?.caller.cancelled();
    await answer(0, 1, 2);
    expect(reported, "the state decides the effect of a late success").toMatchObject([
      [{ item: 1 }, { item: 2 }],
    ]);
    expect(await next, "the batch is over").toEqual([]);
    batches[0]?.end();
    await clock.advance(0);
    expect(clock.pending).toBe(0);
  });

  test("EFFECT-5 everything that a turn called for has ended with the turn", () => {
    const turn = turnWith([operation(1), operation(2)]);
    expect(endedEffects(turn, { ...turn, status: "failed" })).toEqual(["tool:1:1:1", "tool:1:2:1"]);
    expect(endedEffects(turn, turn)).toEqual([]);
    const calling = { ...turn, call: { item: 5, attempt: 1, notBefore: 0, final: false } };
    expect(endedEffects(calling, { ...calling, status: "failed" })).toEqual([
      "model:1:5:1",
      "tool:1:1:1",
      "tool:1:2:1",
    ]);
    expect(endedEffects(turn, calling), "EFFECT-4 a call ends no operation").toEqual([]);
  });

  test("BATCH-4 a report names the results that cannot be stored, so that the Executor keeps them", async () => {
    const { effects, reported, answer, store, clock } = stage();
    effects.start(effectsOfTurn(turnWith([operation(1), operation(2)])));
    await clock.advance(0);
    store.isUp = false;
    expect(await answer(0, 1)).toEqual([idOf(1)]);
    expect(await answer(0, 1), "again").toEqual([idOf(1)]);
    store.isUp = true;
    expect(await answer(0, 1)).toEqual([]);
    expect(reported.map(([first]) => first)).toEqual([reported[0]?.[0], reported[0]?.[0], reported[0]?.[0]]);
    expect(
      reported.every(([first]) => first === reported[0]?.[0]),
      "RUN-4 as the same signal",
    ).toBe(true);
    await answer(0, 1);
    expect(reported, "stored").toHaveLength(3);
    await answer(0, 2);
    expect(reported).toHaveLength(4);
  });

  test("OP-3 OP-4 a result by name settles an operation unless another run may give a different result", () => {
    const [success, failed] = [{ success: true }, { success: false }];
    const taken = (members: Partial<Operation>, recoveries: number) =>
      [success, failed].map((result) => takesByName(operation(1, members), result, recoveries));
    expect(taken({ effect: "pure" }, 1)).toEqual([false, false]);
    expect(taken({ effect: "idempotent" }, 0)).toEqual([true, true]);
    expect(taken({ effect: "idempotent" }, 1), "it runs again").toEqual([true, false]);
    expect(taken({ effect: "once" }, 0)).toEqual([true, true]);
    expect(taken({ effect: "once", status: "interrupted" }, 1)).toEqual([true, true]);
  });

  test("BATCH-6 an executor that never answers is given up: a `once` tool's outcome is unknown, others may be tried again", async () => {
    const quiet = vi.spyOn(console, "error").mockImplementation(() => undefined);
    onTestFinished(() => quiet.mockRestore());
    const { effects, reported, clock } = stage();
    effects.start(effectsOfTurn(turnWith([operation(1), operation(2, { effect: "idempotent" })])));
    await clock.advance(TIMEOUT_MS + 29_999);
    expect(reported).toEqual([]);
    await clock.advance(1);
    expect(reported).toMatchObject([
      [
        { item: 1, result: { error: { message: expect.stringContaining("unknown"), retriable: false } } },
        { item: 2, result: { error: { message: expect.stringContaining("lost"), retriable: true } } },
      ],
    ]);
    expect(quiet.mock.calls[0]?.[0]).toMatchObject({ code: "UNAVAILABLE" });
  });

  test("BATCH-6 a silent executor is given up for each operation separately: a short operation does not wait for a long operation", async () => {
    const quiet = vi.spyOn(console, "error").mockImplementation(() => undefined);
    onTestFinished(() => quiet.mockRestore());
    const { effects, reported, answer, batches, clock } = stage();
    const long = operation(2, { timeoutMs: 900_000 });
    effects.start(effectsOfTurn(turnWith([operation(1), long, operation(3, { timeoutMs: 2_000 })])));
    await clock.advance(TIMEOUT_MS + 30_000);
    expect(reported).toMatchObject([[{ item: 1, result: { success: false } }]]);
    await answer(0, 3);
    await clock.advance(800_000);
    expect(quiet, "an operation with a result is not given up").toHaveBeenCalledTimes(1);
    await answer(0, 2);
    expect(reported.slice(1)).toMatchObject([
      [{ item: 3, result: { success: true } }],
      [{ item: 2, result: { success: true } }],
    ]);
    batches[0]?.end();
    await clock.advance(0);
    expect(clock.pending).toBe(0);
  });

  test("a result counts even if its batch of reports fails at a later progress report: it would not be accepted again", async () => {
    const { effects, reported, batches, clock } = stage(() => {
      throw new Error("The socket is gone.");
    });
    effects.start(effectsOfTurn(turnWith([operation(1), operation(2)])));
    await clock.advance(0);
    const result = { tool_call_id: "call_1", success: true, result: 1 };
    const reports = [
      { operationId: idOf(1), result },
      { operationId: idOf(2), progress: 1 },
    ];
    await expect(batches[0]?.caller.report(reports)).rejects.toThrow("socket");
    expect(reported).toMatchObject([[{ item: 1, result }]]);
  });

  test("BATCH-6 an executor that ends early leaves no operation without a result", async () => {
    const quiet = vi.spyOn(console, "error").mockImplementation(() => undefined);
    onTestFinished(() => quiet.mockRestore());
    const { effects, reported, batches, answer, clock } = stage();
    effects.start(effectsOfTurn(turnWith([operation(1), operation(2)])));
    await clock.advance(0);
    await answer(0, 1);
    batches[0]?.end();
    await clock.advance(0);
    expect(reported).toMatchObject([
      [{ item: 1, result: { success: true } }],
      [{ item: 2, result: { success: false } }],
    ]);
  });
});

/** One turn in a conversation, as far as planning sees it. */
class Planner {
  state: ConversationState;
  now = NOW;

  constructor(operations: Operation[], members: Partial<Turn> = {}) {
    const active = new Map([[1, turnWith(operations, members)]]);
    this.state = { ...NEW_STATE, record: RECORD, seq: 1, turns: 1, active, stored: new Map() };
  }

  get turn(): Turn {
    return this.state.active.get(1) ?? expect.fail("the turn is over");
  }

  send(signal: Signal): AgentDecision["type"][] {
    const decisions = plan(this.state, signal, { now: this.now, stem: "", gate: allowAll });
    this.state = reduce(beginTransition(this.state), decisions, this.now).state;
    return decisions.map(({ type }) => type);
  }

  result(item: number, attempt = 1) {
    const result = { tool_call_id: `call_${item}`, success: true, result: item };
    return this.send({ type: "conversation.tool.completed", turn: 1, item, attempt, result });
  }
}

const RECOVER: Signal = { type: "conversation.cmd.recover" };
const EXPIRE: Signal = { type: "conversation.cmd.expire" };

describe("after a crash", () => {
  test("RECOVER-2 a running `once` operation waits 30 s for its result, and the actor sleeps until then", () => {
    const planner = new Planner([operation(1)]);
    expect(planner.send(RECOVER)).toEqual(["RESUME_TURN", "INTERRUPT_TASK"]);
    expect(effectsOfTurn(planner.turn)).toEqual([]);
    expect(dueIn(planner.state, planner.now, 0)).toBe(LATE_RESULT_MS);
    planner.now += LATE_RESULT_MS - 1;
    expect(planner.send(EXPIRE)).toEqual([]);
    expect(planner.result(1), "the result is accepted until then").toEqual(["RESUME_FROM_TOOL", "CALL_LLM"]);
    expect(planner.turn.operations).toMatchObject([{ status: "completed", result: { result: 1 } }]);
    expect(planner.turn.operations[0]?.deadline).toBeUndefined();
  });

  test("RECOVER-2 without a result the outcome is unknown, and a later result is ignored", () => {
    const planner = new Planner([operation(1)]);
    planner.send(RECOVER);
    planner.now += LATE_RESULT_MS;
    expect(planner.send(EXPIRE)).toEqual(["RESUME_FROM_TOOL", "CALL_LLM"]);
    expect(planner.turn.operations).toMatchObject([
      { status: "failed", result: { error: { message: expect.stringMatching(/^Outcome unknown/) } } },
    ]);
    expect(planner.result(1)).toEqual([]);
  });

  test("OP-1 a result of another attempt is ignored", () => {
    const planner = new Planner([operation(1, { attempt: 2 })]);
    planner.send(RECOVER);
    expect(planner.result(1, 1)).toEqual([]);
    expect(planner.result(1, 3)).toEqual([]);
    expect(planner.result(1, 2)).toEqual(["RESUME_FROM_TOOL", "CALL_LLM"]);
    expect(planner.result(1, 2)).toEqual([]);
  });

  test("RECOVER-1 a turn that only waits for late results was not interrupted: a second crash keeps the deadline", () => {
    const planner = new Planner([operation(1), operation(2, { target: "client", deadline: NOW + 600_000 })]);
    planner.send(RECOVER);
    const { turn } = planner;
    planner.now += 20_000;
    expect(planner.send(RECOVER)).toEqual([]);
    expect(planner.turn).toBe(turn);
    expect(dueIn(planner.state, planner.now, 0)).toBe(LATE_RESULT_MS - 20_000);
  });

  test("RECOVER-1 RECOVER-2 for any operations: `once` is interrupted, the rest continues under its key, and every turn resumes", () => {
    const effects = fc.constantFrom<ToolEffect>("pure", "idempotent", "once");
    const step = fc.constantFrom("crash", "result", "time");
    fc.assert(
      fc.property(
        fc.array(effects, { minLength: 1, maxLength: 4 }),
        fc.array(fc.tuple(step, fc.nat(40_000)), { maxLength: 12 }),
        (declared, script) => {
          const planner = new Planner(declared.map((effect, index) => operation(index + 1, { effect })));
          const runs = new Map<number, number>();
          const start = () => {
            for (const effect of effectsOfTurn(planner.turn)) {
              if (effect.kind === "tool")
                runs.set(effect.operation.item, (runs.get(effect.operation.item) ?? 0) + 1);
            }
          };
          start();
          for (const [kind, amount] of script) {
            if (!planner.state.active.has(1) || planner.turn.call !== null) break;
            if (kind === "crash") {
              planner.send(RECOVER);
              if (!planner.state.active.has(1)) break;
              start();
            } else if (kind === "result") planner.result((amount % declared.length) + 1);
            else {
              planner.now += amount;
              planner.send(EXPIRE);
            }
            expect(dueIn(planner.state, planner.now, 0)).not.toBe(Number.POSITIVE_INFINITY);
          }
          declared.forEach((effect, index) => {
            if (effect === "once") expect(runs.get(index + 1) ?? 0).toBeLessThanOrEqual(1);
          });
          expect(planner.state.active.get(1)?.recoveries ?? 0).toBeLessThanOrEqual(MAX_RECOVERIES);
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe("stored operations", () => {
  const result = { tool_call_id: "call_1", success: true, result: 1 };

  test("OP-2 an operation is restored completely, and an operation with default values stores no more than before", () => {
    const status = fc.constantFrom<Partial<Operation>>(
      {},
      { status: "interrupted", deadline: NOW + 5 },
      { status: statusOf(result), result, completedAt: NOW },
    );
    const members = fc.tuple(
      status,
      fc.constantFrom<Partial<Operation>>({}, { target: "client", deadline: NOW + TIMEOUT_MS }),
      fc.constantFrom<Partial<Operation>>({}, { attempt: 3, notBefore: NOW + 1 }),
      fc.constantFrom<Partial<Operation>>({}, { mode: "async" }),
    );
    fc.assert(
      fc.property(members, ([state, target, attempt, mode]) => {
        const { deadline, ...rest } = { ...target, ...attempt, ...mode, ...state };
        // An operation with a result has no deadline.
        const stored = operation(1, rest.result || deadline === undefined ? rest : { ...rest, deadline });
        const text = JSON.stringify(packOperation(stored, NOW));
        expect(unpackOperation(JSON.parse(text), NOW)).toEqual(stored);
      }),
    );
    const { target, mode, status: usual, attempt, ...before } = operation(1);
    expect(packOperation(operation(1), NOW)).toEqual(before);
    expect([target, mode, usual, attempt]).toEqual(["code", "sync", "pending", 1]);
  });
});
