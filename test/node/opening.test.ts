/**
 * The opening of a call's conversation, its readers, and the course of calls, with real mailboxes on a virtual clock.
 */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { CALL_GRACE_MS } from "../../src/agents/conversation/core/conversation-limits.ts";
import { AGENT_ASK, AGENT_CALL, AGENT_READERS } from "../../src/protocol/agent-call.ts";
import type { Envelope } from "../../src/protocol/envelope.ts";
import { calledConversationId } from "../../src/protocol/ids.ts";
import type { Attempt } from "../../src/protocol/mailbox-api.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import type { JsonObject } from "../../src/shared/json.ts";
import { isDeath } from "../../src/testing/world/mortal-actor.ts";
import type { Life } from "../simulation/trees/actor.ts";
import type { CallPlan, TreePlan, WorkPlan } from "../simulation/trees/plan.ts";
import { TENANT, TreeWorld } from "../simulation/trees/world.ts";

const work = (id: number, agent: string, calls: WorkPlan["calls"] = [], ms = 10): WorkPlan => {
  return { id, agent, secret: `secret-${id}-x`, ms, failures: 0, end: "answer", calls };
};

function planOf(root: WorkPlan, timeoutMs: number): TreePlan {
  const faults = { crashes: 0, crashChance: 0, badDeliveries: 0, badChance: 0 };
  return { seed: 1, root, more: [], members: [], stops: [], ...faults, timeoutMs };
}

/** A call without further wishes. */
const callOf = (called: WorkPlan, more: Partial<CallPlan> = {}): CallPlan => {
  return { background: false, repeats: false, work: called, ...more };
};

/** A tree of one call of the root. */
const planOfCall = (call: CallPlan, timeoutMs = 20_000) => planOf(work(0, "boss", [call]), timeoutMs);

/** A root that calls one agent. `agent` defines the behaviour of its actor. */
async function called(
  agent: (world: TreeWorld, find: TreeWorld["agent"]) => TreeWorld["agent"],
  timeoutMs = 20_000,
) {
  const root = work(0, "boss", [{ background: false, repeats: false, work: work(1, "helper") }]);
  const world = new TreeWorld(planOf(root, timeoutMs));
  Object.defineProperty(world, "agent", { value: agent(world, world.agent) });
  await world.run();
  const { runtime, mailbox } = world.root.awake();
  const [operation] = runtime.turn(1)?.operations ?? [];
  const id = [...world.actors.keys()][1] ?? "";
  return { world, operation, letters: mailbox.deadLetters().items, child: world.actor(id), id };
}

const unavailable = () => new DramatisError("UNAVAILABLE", "The agent is away.", { retriable: true });

test("OPENING-1 an agent that is away for some seconds is called again, and the call succeeds at its first attempt", async () => {
  let asked = 0;
  const { operation, letters } = await called((world, find) => async (tenant, id) => {
    asked += 1;
    if (world.clock.now() < 1_767_225_600_000 + 8_000) throw unavailable();
    return find(tenant, id);
  });
  expect(operation?.result).toMatchObject({ success: true, result: expect.stringContaining("Done 1") });
  expect([operation?.attempt, letters]).toEqual([1, []]);
  expect(asked).toBeGreaterThan(2);
});

test("OPENING-1 an agent that stays away is called until the call's time is over", async () => {
  const times: number[] = [];
  const { world, operation, letters, child } = await called(
    (one) => async () => {
      times.push(one.clock.now());
      throw unavailable();
    },
    30_000,
  );
  expect(operation?.result?.error?.code).toBe("TIMEOUT");
  expect(letters).toEqual([]);
  expect(child.awake().runtime.exists).toBe(false);
  const late = times.filter((time) => time > (times[0] ?? 0) + 30_000);
  expect(late.length, "one attempt finds that it is over").toBeLessThanOrEqual(1);
  expect(world.log).toEqual([]);
});

test("OPENING-1 DELEGATE-9 a refused call is over: later lists of its readers do not wait", async () => {
  const { world, operation, child, id } = await called(() => async () => {
    throw new DramatisError("NOT_FOUND", "There is no such agent.");
  });
  expect(operation?.result?.error?.code).toBe("NOT_FOUND");
  const { root, ids, clock } = world;
  const operationId = id.replace(/^conv_/, "op_");
  expect(calledConversationId(operationId, 1)).toBe(id);
  const address = (conversation: string) => ({ kind: "conversation", tenant: TENANT, id: conversation });
  const envelope = {
    operationId: `op_${ids.ulid()}`,
    from: address(root.id),
    to: address(id),
    type: AGENT_READERS,
    body: { operationId, attempt: 1, readers: ["ada"], readersSeq: 1 },
    sentAt: clock.now(),
  };
  expect(await child.receive(envelope, { number: 1, last: false })).toMatchObject({ type: "done" });
});

test("DELEGATE-11 DELEGATE-12 calls that were given up before they arrived keep no later turn from its calls", async () => {
  const calls = (from: number) =>
    Array.from({ length: 12 }, (_, n) => {
      return {
        background: false,
        repeats: false,
        work: { ...work(from + n, "helper"), padding: 120 * 1024 },
      };
    });
  const more = [{ at: 20_000, work: work(1, "boss", calls(200)) }];
  const world = new TreeWorld({ ...planOf(work(0, "boss", calls(100)), 5_000), more });
  const carry = world.carry.bind(world);
  Object.defineProperty(world, "carry", {
    value: (...given: Parameters<TreeWorld["carry"]>) =>
      given[1].type === AGENT_CALL ? Promise.reject(new Error("away")) : carry(...given),
  });
  await world.run();
  const { runtime, mailbox } = world.root.awake();
  const turns = [1, 2].map((n) => runtime.turn(n));
  const codes = turns.map((turn) => new Set(turn?.operations.map(({ result }) => result?.error?.code)));
  expect(codes.map((found) => [...found])).toEqual([["TIMEOUT"], ["TIMEOUT"]]);
  expect(turns.map((turn) => turn?.status)).toEqual(["completed", "completed"]);
  const waits = turns.map((turn) => (turn?.completedAt ?? 0) - (turn?.createdAt ?? 0));
  expect(Math.max(...waits), "five seconds of a call, and its grace").toBeLessThan(12_000);
  expect([mailbox.room().bytes, mailbox.deadLetters().items]).toEqual([8 * 1024 * 1024, []]);
  expect(world.log).toEqual([]);
}, 180_000);

/** Loses the first attempts to deliver, as many of each type as given. */
function losing(world: TreeWorld, lost: Partial<Record<string, number>>): TreeWorld {
  const carry = world.carry.bind(world);
  const left = { ...lost };
  Object.defineProperty(world, "carry", {
    value: (...given: Parameters<TreeWorld["carry"]>) => {
      const [, { type }] = given;
      const count = left[type] ?? 0;
      if (count === 0) return carry(...given);
      left[type] = count - 1;
      return Promise.reject(new Error("lost"));
    },
  });
  return world;
}

/** A root that calls an agent that works for 20 s. `lost`: number of first deliveries that are lost, by type. */
async function withReaders(
  lost: Partial<Record<string, number>>,
  changes: readonly { at: number; type: "add" | "remove"; id: string }[],
) {
  const root = work(0, "boss", [{ background: false, repeats: false, work: work(1, "helper", [], 20_000) }]);
  const world = losing(new TreeWorld(planOf(root, 120_000)), lost);
  for (const { at, type, id } of changes)
    world.clock.timer(at, () => {
      const { changes: door } = world.root.awake().runtime;
      const participant = { type: "user", id } as const;
      const caller = { type: "user", userId: "ada" } as const;
      void door.changeParticipants({ type: `conversation.participant.${type}`, caller, participant });
    });
  await world.run();
  const [caller, child] = [...world.actors.values()].map((actor) => actor.awake().runtime.state.record);
  const users = caller?.participants.filter(({ type }) => type === "user").map(({ id }) => id);
  expect(world.log).toEqual([]);
  return { above: users, below: child?.call?.readers };
}

test("DELEGATE-9 a user who left cannot read below again: an older list that arrives after a newer list is ignored", async () => {
  const { above, below } = await withReaders({ [AGENT_READERS]: 1 }, [
    { at: 2_000, type: "add", id: "bob" },
    { at: 2_500, type: "remove", id: "bob" },
  ]);
  expect([above, below]).toEqual([["ada"], ["ada"]]);
});

test("DELEGATE-9 a user who joined reads below: an older list that arrives after a newer list removes no reader", async () => {
  const { above, below } = await withReaders({ [AGENT_READERS]: 1 }, [
    { at: 2_000, type: "add", id: "bob" },
    { at: 2_500, type: "remove", id: "bob" },
    { at: 2_600, type: "add", id: "cleo" },
  ]);
  expect([above, below]).toEqual([
    ["ada", "cleo"],
    ["ada", "cleo"],
  ]);
});

test("DELEGATE-9 a list that arrives before its call is not lost", async () => {
  const { above, below } = await withReaders({ [AGENT_CALL]: 1 }, [{ at: 300, type: "add", id: "bob" }]);
  expect([above, below]).toEqual([
    ["ada", "bob"],
    ["ada", "bob"],
  ]);
});

test("ASK-6 a request is not shown if its answer overtakes it, and blocks no turn", async () => {
  const approval = { answer: "approve", ms: 300 } as const;
  const calls = [{ background: false, repeats: false, approval, work: work(2, "leaf", [], 20_000) }];
  const root = work(0, "boss", [{ background: false, repeats: false, work: work(1, "mid", calls) }]);
  const world = losing(new TreeWorld(planOf(root, 120_000)), { [AGENT_ASK]: 1 });
  let seen: object | undefined;
  world.clock.timer(10_000, () => {
    const [operation] = [...(world.root.state?.active.values() ?? [])].flatMap(
      ({ operations }) => operations,
    );
    const { agent, deadline = 0 } = operation ?? {};
    seen = { asks: agent?.asks, hasTime: deadline - world.clock.now() > 120_000 };
  });
  await world.run();
  expect(seen).toEqual({ asks: undefined, hasTime: false });
  expect(world.root.awake().runtime.turn(1)?.status).toBe("completed");
  expect(world.log).toEqual([]);
});

test("DELEGATE-3 a call that arrived without an acknowledgement continues, and its late answer counts", async () => {
  const approval = { answer: "approve", ms: 70 * 60_000 } as const;
  const calls = [{ background: false, repeats: false, approval, work: work(2, "leaf") }];
  const root = work(0, "boss", [{ background: false, repeats: false, work: work(1, "mid", calls) }]);
  const world = new TreeWorld(planOf(root, 3 * 3_600_000));
  const carry = world.carry.bind(world);
  const unknown: string[] = [];
  Object.defineProperty(world, "carry", {
    value: async (...given: Parameters<TreeWorld["carry"]>) => {
      const [life, { type, to }, attempt] = given;
      const answer = await carry(...given);
      if (type !== AGENT_CALL || life !== world.root.awake()) return answer;
      if (attempt.last) unknown.push(to.id);
      throw new Error("The acknowledgement is lost.");
    },
  });
  await world.run();
  const { runtime, mailbox } = world.root.awake();
  const [operation] = runtime.turn(1)?.operations ?? [];
  expect(operation?.result).toMatchObject({ success: true, result: expect.stringContaining("Done 1") });
  expect(unknown, "the series was over before").toHaveLength(1);
  expect(mailbox.deadLetters().items).toMatchObject([{ status: "unknown", type: AGENT_CALL }]);
  expect(world.log).toEqual([]);
});

test("OPENING-1 a call with a refused message leaves no conversation, and its caller gets the reason", async () => {
  const { operation, child } = await called((world, find) => {
    const carry = world.carry.bind(world);
    Object.defineProperty(world, "carry", {
      value: (life: Life, envelope: Envelope, attempt: Attempt) => {
        const body = { ...(envelope.body as JsonObject), content: "\ud800" };
        return carry(life, envelope.type === AGENT_CALL ? { ...envelope, body } : envelope, attempt);
      },
    });
    return find;
  });
  expect(operation?.result?.error?.code).toBe("INVALID_INPUT");
  const { runtime } = child.awake();
  expect([runtime.exists, child.keyValue.get("conversation")]).toEqual([false, undefined]);
});

describe("a call without requests continues by the alarms of its actors", () => {
  const reported: unknown[] = [];
  beforeEach(() => {
    reported.length = 0;
    vi.spyOn(console, "error").mockImplementation((error) => void (isDeath(error) || reported.push(error)));
  });
  afterEach(() => {
    vi.restoreAllMocks();
    expect(reported).toEqual([]);
  });

  /** Kills all actors once, when `isDue`; the next call or alarm wakes them. */
  const killWhen = (world: TreeWorld, isDue: () => boolean) => {
    const look = () => {
      if (!isDue()) return world.clock.timer(50, look);
      for (const { id } of world.actors.values()) world.actor(id).awake().alive = false;
      return undefined;
    };
    world.clock.timer(50, look);
  };
  const operationOf = (world: TreeWorld) => world.root.awake().runtime.turn(1)?.operations[0];

  test.each([false, true])(
    "TOOLRETRY-1 its next attempt begins after the pause; crash: %s",
    async (crash) => {
      const failing = { ...work(1, "helper"), failures: 3 };
      const world = new TreeWorld(planOfCall(callOf(failing, { repeats: true })));
      const isPausing = () => world.root.state?.active.get(1)?.operations[0]?.status === "pending";
      if (crash) killWhen(world, isPausing);
      await world.run();
      expect(operationOf(world)).toMatchObject({ attempt: 2, result: { success: true } });
    },
  );

  test.each([false, true])(
    "DELEGATE-6 an agent that waits for another agent ends at its time limit; crash: %s",
    async (crash) => {
      const slow = { ...work(2, "deputy"), ms: 200_000 };
      const world = new TreeWorld(planOfCall(callOf(work(1, "helper", [callOf(slow)]))));
      if (crash) killWhen(world, () => world.actors.size === 3);
      await world.run();
      const [, helper] = world.actors.values();
      const { record } = helper?.awake().runtime.state ?? {};
      const turn = helper?.awake().runtime.turn(1);
      expect(turn).toMatchObject({ error: { code: "TIMEOUT" }, completedAt: record?.call?.deadline });
      expect(operationOf(world)?.result?.error).toMatchObject({
        code: "TIMEOUT",
        message: "The time of the call was over.",
      });
    },
  );

  test.each([false, true])(
    "DELEGATE-3 its caller waits no longer than the grace; crash: %s",
    async (crash) => {
      const world = new TreeWorld(planOfCall(callOf(work(1, "helper"))));
      Object.defineProperty(world, "carry", {
        value: () => Promise.reject(new Error("The network is down.")),
      });
      const isWaiting = () => world.root.state?.active.get(1)?.operations[0]?.status === "dispatched";
      if (crash) killWhen(world, isWaiting);
      await world.run();
      const { result, completedAt = 0 } = operationOf(world) ?? {};
      expect(result?.error?.message).toContain("did not answer within 20000 ms");
      const asked = world.root.awake().runtime.turn(1)?.replies[0]?.at ?? 0;
      expect(completedAt - asked).toBe(20_000 + CALL_GRACE_MS);
    },
  );
});
