/**
 * Runs that tool calls and hooks start: long waits, limits, stops, and envelopes that are late, repeated, or foreign.
 */
import { describe, expect, test, vi } from "vitest";
import { planHold } from "../../src/agents/conversation/core/planning/run-call.ts";
import { HookRuns } from "../../src/agents/conversation/effects/hook-runs.ts";
import { operationOf } from "../../src/agents/coordinator/core/operations.ts";
import { plan as planRun } from "../../src/agents/coordinator/core/plan.ts";
import type { RunState } from "../../src/agents/coordinator/core/state.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { Envelope } from "../../src/protocol/envelope.ts";
import { calledRunId, operationId } from "../../src/protocol/ids.ts";
import type { Answer } from "../../src/protocol/mailbox-api.ts";
import type { RunView } from "../../src/protocol/run-schemas.ts";
import type { CalledRun } from "../../src/protocol/workflow-call.ts";
import type { Json } from "../../src/shared/json.ts";
import { DAY, type FlowCall, type FlowStep, type FlowsPlan, HOUR, MINUTE } from "../simulation/flows/plan.ts";
import { playFlows, statesOf, turnsOf } from "../simulation/flows/run.ts";
import { FlowWorld, TENANT } from "../simulation/flows/world.ts";

const CALM = { seed: 1, stops: [], resets: [], crashes: 0, crashChance: 0, badDeliveries: 0, badChance: 0 };

/** A plan with one turn, which calls one workflow. */
function planOf(steps: FlowStep[], call: Partial<FlowCall> = {}, more: Partial<FlowsPlan> = {}): FlowsPlan {
  const flow = { id: 0, steps };
  const calls: FlowCall[] = [{ flow, background: false, effect: "once", ...call }];
  return { ...CALM, turns: [{ at: 1, calls }], ...more };
}

async function played(plan: FlowsPlan) {
  const { world, violations } = await playFlows(plan);
  expect(violations).toEqual([]);
  const [turn] = turnsOf(world);
  return { world, turn, operation: turn?.operations[0], runs: statesOf(world) };
}

const DONE = { success: true, result: { done: "F0" } };

describe("I3 a call of a workflow", () => {
  test.each([
    ["in the foreground", false],
    ["in the background", true],
  ])(
    "HELD-1 HOLD-1 %s waits three days for a person, across a reset of all actors",
    async (_, background) => {
      const steps: FlowStep[] = [{ kind: "gate", ms: 3 * DAY }];
      const plan = planOf(steps, { background }, { resets: [HOUR, DAY] });
      const { world, turn, operation, runs } = await played(plan);
      expect(world.clock.now() - (turn?.createdAt ?? 0)).toBeGreaterThan(3 * DAY);
      expect(turn?.status).toBe("completed");
      expect(operation).toMatchObject({ status: "completed", attempt: 1, result: DONE });
      expect(runs).toHaveLength(1);
    },
  );

  test("HELD-2 HOLD-1 waits for a person below a sub-workflow and below an agent", async () => {
    const inner: FlowStep[] = [
      { kind: "gate", ms: 3 * DAY },
      { kind: "agent", calls: 1, ms: 10, asks: 3 * DAY },
    ];
    const { operation, runs } = await played(planOf([{ kind: "flow", flow: { id: 1, steps: inner } }]));
    expect(operation).toMatchObject({ result: DONE });
    expect(runs).toHaveLength(2);
  });

  test("sleeps while it waits", async () => {
    const world = new FlowWorld(planOf([{ kind: "gate", ms: 3 * DAY }]));
    const due: (number | undefined)[] = [];
    const states: unknown[] = [];
    world.clock.timer(DAY, () => {
      due.push(world.root.due, [...world.runs.values()][0]?.due);
      states.push(turnsOf(world)[0]?.waiting, turnsOf(world)[0]?.operations[0]?.hold?.isHeld);
    });
    await world.play();
    expect(due).toEqual([undefined, undefined]);
    expect(states).toEqual([expect.any(Number), true]);
  });

  test("lasts as long as its author says, and by default a day", async () => {
    const half = { kind: "agent", calls: 1, ms: 13 * HOUR } as const;
    const long = await played(planOf([half, half], { timeoutMs: 2 * DAY }));
    expect(long.operation).toMatchObject({ result: DONE });
    const short = await played(planOf([half, half]));
    expect(short.operation?.result).toMatchObject({ success: false, error: { code: "TIMEOUT" } });
    expect(short.runs[0]).toMatchObject({ status: "cancelled" });
    expect(short.world.clock.now() - (short.turn?.createdAt ?? 0)).toBeLessThan(40 * HOUR);
  });

  test("AGENTNODE-1 has a node with an agent that works for two hours, or as long as the node says", async () => {
    const agent = { kind: "agent", calls: 2, ms: HOUR } as const;
    expect((await played(planOf([agent]))).operation).toMatchObject({ result: DONE });
    const { operation } = await played(planOf([{ ...agent, timeoutMs: 90 * MINUTE }]));
    expect(operation?.result?.error?.message).toMatch(/The time of the call was over/);
  });

  test("FLOWCALL-3 cancels its run with the turn, and with the conversation", async () => {
    for (const stop of [{ at: DAY, turn: 1 }, { at: DAY }]) {
      const steps: FlowStep[] = [{ kind: "flow", flow: { id: 1, steps: [{ kind: "gate", ms: 3 * DAY }] } }];
      const { operation, runs } = await played(planOf(steps, {}, { stops: [stop] }));
      expect(operation).toMatchObject({ status: "cancelled" });
      expect(runs.map(({ status }) => status)).toEqual(["cancelled", "cancelled"]);
    }
  });
});

/** Plays until the run waits for its gate, a day later. Returns the world, and functions that play on and send envelopes. */
async function waiting() {
  const world = new FlowWorld(planOf([{ kind: "gate", ms: 3 * DAY }]));
  const acts: (() => Promise<void>)[] = [];
  const done = Promise.withResolvers<void>();
  world.clock.timer(DAY, () => {
    void (async () => {
      for (const act of acts) await act();
    })().then(done.resolve, done.reject);
  });
  const [operation, run] = [() => idOf(world), () => calledRunId(idOf(world), 1)];
  return {
    ...{ world, operation, run },
    /** Plays to the end, and calls `act` on the way. */
    play: async (act: () => Promise<void>) => {
      acts.push(act);
      await world.play();
      await done.promise;
    },
    send: (...sent: Sent) => sendIn(world, ...sent),
  };
}

type Sent = [type: string, from: Envelope["from"], to: Envelope["to"], body: Json];

/** Delivers an envelope at once. Returns the answer of the receiver. */
function sendIn(world: FlowWorld, ...[type, from, to, body]: Sent): Promise<Answer> {
  const operationId = `op_${world.ids.ulid()}`;
  const envelope = { operationId, type, from, to, body, sentAt: world.clock.now() };
  const actor = to.kind === "conversation" ? world.conversation(to.id) : world.run(to.id);
  // SAFETY: the members that a mailbox reads.
  return actor.receive(envelope as unknown as Envelope, { number: 1, last: false });
}

function idOf(world: FlowWorld): string {
  const [turn] = turnsOf(world);
  const [operation] = turn?.operations ?? [];
  return turn === undefined || operation === undefined ? "" : operationId(turn, operation.item);
}

const place = (kind: string, id: string) => ({ kind, tenant: TENANT, id });

test("FLOWCALL-6 an end or a wait from another run is ignored", async () => {
  const { world, operation, run, play, send } = await waiting();
  await play(async () => {
    const to = world.root.address;
    const address = { operationId: operation(), attempt: 1 };
    const other = place("coordinator", calledRunId(operation(), 2));
    const ended = { ...address, outcome: { output: { done: "forged" } } };
    expect(await send("run.ended", other, to, ended)).toMatchObject({ type: "refused" });
    expect(await send("run.ended", place("conversation", run()), to, ended)).toMatchObject({
      type: "refused",
    });
    const held = { ...address, isHeld: false, seq: 1_000 };
    expect(await send("run.waits", other, to, held)).toMatchObject({ type: "refused" });
    // A conversation has no room that it could give back.
    const resting = { ...held, isAtRest: true };
    expect(await send("run.waits", to, place("coordinator", run()), resting)).toMatchObject({
      type: "refused",
      error: { message: "Only a run can rest. Send `isHeld` alone." },
    });
    expect(turnsOf(world)[0]?.operations[0]?.hold?.isHeld).toBe(true);
  });
  expect(turnsOf(world)[0]?.operations[0]).toMatchObject({ result: DONE });
});

test("OP-1 HOLD-1 a late message about a wait of an earlier attempt is ignored", async () => {
  const { world, play } = await waiting();
  await play(async () => {
    const [turn] = turnsOf(world);
    const [operation] = turn?.operations ?? [];
    if (turn === undefined || operation === undefined) throw new Error("There is no call.");
    const { hold: _hold, ...again } = { ...operation, attempt: 2 };
    const active = new Map([[turn.n, { ...turn, operations: [again] }]]);
    const held = { turn: turn.n, item: operation.item, seq: 1_000, isHeld: true };
    const planned = (attempt: number) =>
      planHold({ active }, { type: "conversation.work.held", ...held, attempt });
    expect(planned(1)).toEqual([]);
    expect(planned(2)).toContainEqual({ type: "NOTE_HOLD", ...held });
  });
});

test("HOLD-2 an older message about a wait is ignored", async () => {
  const { world, operation, run, play, send } = await waiting();
  let state: RunState | undefined;
  await play(async () => {
    [state] = statesOf(world);
    const from = place("coordinator", run());
    const held = (seq: number, isHeld: boolean) =>
      send("run.waits", from, world.root.address, { operationId: operation(), attempt: 1, seq, isHeld });
    await held(900, false);
    await held(899, true);
    expect(turnsOf(world)[0]?.operations[0]?.hold).toMatchObject({ seq: 900, isHeld: false });
  });
  if (state === undefined) throw new Error("There is no run.");
  const [token] = state.tokens.values();
  if (token?.phase.kind !== "working") throw new Error("The run does not wait.");
  const phase = { ...token.phase, wait: { seq: 5, isHeld: true } };
  const held = { ...state, tokens: new Map([[token.id, { ...token, phase }]]) };
  const released = (seq: number) =>
    planRun(held, [{ type: "run.waits", token: token.id, attempt: 1, wait: { seq, isHeld: false } }], 1);
  expect(released(4)).toBeNull();
  expect(released(6)?.state.tokens.get(token.id)?.phase).toMatchObject({ wait: { seq: 6, isHeld: false } });
});

test("FLOWCALL-1 FLOWCALL-3 a cancellation that overtakes its start refuses the start, and a repeated start starts no other run", async () => {
  const { world, operation, play, send } = await waiting();
  await play(async () => {
    const address = { operationId: operation(), attempt: 2 };
    const [from, to] = [world.root.address, place("coordinator", calledRunId(operation(), 2))];
    expect(await send("run.cancel", from, to, { ...address, reason: "Enough." })).toMatchObject({
      type: "done",
    });
    expect(await send("run.start", from, to, address)).toMatchObject({ type: "done" });
    const first = place("coordinator", calledRunId(operation(), 1));
    expect(await send("run.start", from, first, { ...address, attempt: 1 })).toMatchObject({ type: "done" });
  });
  expect(statesOf(world)).toHaveLength(1);
});

test("SUBRUN-4 a cancellation that arrives while its start reads the run above refuses the start", async () => {
  const world = new FlowWorld(
    planOf([{ kind: "flow", flow: { id: 1, steps: [{ kind: "gate", ms: 3 * DAY }] } }]),
  );
  const look = vi.spyOn(world, "afterLook").mockImplementationOnce(async () => {
    const { runtime } = world.root.awake();
    const [turn] = turnsOf(world);
    const [above] = statesOf(world);
    const [token] = above?.tokens.values() ?? [];
    if (turn === undefined || above === undefined || token === undefined) throw new Error("Nothing waits.");
    const { id: runId } = above.record;
    const address = { operationId: operationOf(above.record, token.id), attempt: 1 };
    const below = calledRunId(address.operationId, 1);
    await runtime.changes.cancelTurn(turn, { caller: { type: "user", userId: "ada" } });
    const cancelled = await sendIn(
      world,
      "run.cancel",
      place("coordinator", runId),
      place("coordinator", below),
      {
        ...address,
        reason: "Enough.",
      },
    );
    expect(cancelled).toMatchObject({ type: "done" });
  });
  await world.play();
  expect(look).toHaveBeenCalledOnce();
  expect(statesOf(world)).toMatchObject([{ status: "cancelled" }]);
});

describe("the run of a hook", () => {
  const origin = {
    ...{ conversationId: `conv_${"0".repeat(26)}`, turnId: "turn_1", agentId: "guide" },
    ...{ operationId: `op_${"0".repeat(26)}`, attempt: 1 },
  };
  const called: CalledRun = {
    ...{ workflow: "a/b@1", input: {}, projectId: "p", startedBy: "ada", path: ["guide"], origin },
  };
  const input = { tenant: "t", called, timeoutMs: 30_000, given: {} };
  // SAFETY: the hook reads nothing of a run that has begun.
  const begun = { ok: true as const, value: {} as RunView };
  const setUp = (start: () => Promise<typeof begun>) => {
    const clock = new VirtualClock();
    const cancel = vi.fn(async () => begun);
    const late: Promise<unknown>[] = [];
    const run = vi.fn(async () => ({ start, cancel, status: async () => begun }));
    const runs = new HookRuns({ clock, run, waitUntil: (work) => void late.push(work) });
    return { clock, cancel, late, run, runs };
  };

  test("HOOKRUN-2 is cancelled when its time is over or it is stopped, and not when it has ended", async () => {
    const { clock, cancel, late, runs } = setUp(async () => begun);
    const slow = runs.start(input, new AbortController().signal);
    await clock.advance(30_001);
    expect(await slow).toMatchObject({ error: { code: "TIMEOUT" } });
    const stop = new AbortController();
    const stopped = runs.start(input, stop.signal);
    await clock.advance(1);
    stop.abort();
    expect(await stopped).toBeUndefined();
    await Promise.all(late);
    expect(cancel).toHaveBeenCalledTimes(2);
    const end = new AbortController();
    const ended = runs.start(input, end.signal);
    await clock.advance(1);
    expect(runs.givenTo(origin.operationId, 1)).toEqual({});
    runs.end(origin.operationId);
    end.abort();
    expect(await ended).toBeUndefined();
    expect(cancel).toHaveBeenCalledTimes(2);
  });

  test("HOOKRUN-3 is repeated while its connection breaks, but not forever", async () => {
    const start = vi.fn().mockRejectedValue(new Error("The Durable Object was reset."));
    const { clock, runs } = setUp(start);
    const failing = runs.start({ ...input, timeoutMs: 1_000_000 }, new AbortController().signal);
    await clock.advance(900_000);
    expect(await failing).toMatchObject({ error: { code: "EXECUTION_FAILED", retriable: true } });
    expect(start).toHaveBeenCalledTimes(21);
  });
});
