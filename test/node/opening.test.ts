/** The opening of a call's conversation while its agent is away, with real mailboxes on a virtual clock. */
import { expect, test } from "vitest";
import { AGENT_READERS } from "../../src/protocol/agent-call.ts";
import { calledConversationId } from "../../src/protocol/ids.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import type { TreePlan, WorkPlan } from "../simulation/trees/plan.ts";
import { TENANT, TreeWorld } from "../simulation/trees/world.ts";

const work = (id: number, agent: string, calls: WorkPlan["calls"] = []): WorkPlan => {
  return { id, agent, secret: `secret-${id}-x`, ms: 10, failures: 0, end: "answer", calls };
};

/** A root that calls one agent, whose actor answers as `agent` says. */
async function called(
  agent: (world: TreeWorld, find: TreeWorld["agent"]) => TreeWorld["agent"],
  timeoutMs = 20_000,
) {
  const plan: TreePlan = {
    seed: 1,
    root: work(0, "boss", [{ background: false, repeats: false, work: work(1, "helper") }]),
    more: [],
    stops: [],
    crashes: 0,
    crashChance: 0,
    badDeliveries: 0,
    badChance: 0,
    timeoutMs,
  };
  const world = new TreeWorld(plan);
  Object.defineProperty(world, "agent", { value: agent(world, world.agent) });
  await world.run();
  const { runtime, mailbox } = world.root.awake();
  const [operation] = runtime.turn(1)?.operations ?? [];
  const id = [...world.actors.keys()][1] ?? "";
  return { world, operation, letters: mailbox.deadLetters().items, child: world.actor(id), id };
}

const away = () => new DramatisError("UNAVAILABLE", "The agent is away.", { retriable: true });

test("OPENING-1 an agent that is away for some seconds is asked again, and the call succeeds at its first attempt", async () => {
  let asked = 0;
  const { operation, letters } = await called((world, find) => async (tenant, id) => {
    asked += 1;
    if (world.clock.now() < 1_767_225_600_000 + 8_000) throw away();
    return find(tenant, id);
  });
  expect(operation?.result).toMatchObject({ success: true, result: expect.stringContaining("Done 1") });
  expect([operation?.attempt, letters]).toEqual([1, []]);
  expect(asked).toBeGreaterThan(2);
});

test("OPENING-1 an agent that stays away is asked until the call's time is over, and no longer", async () => {
  const times: number[] = [];
  const { world, operation, letters, child } = await called(
    (one) => async () => {
      times.push(one.clock.now());
      throw away();
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

test("OPENING-1 DELEGATE-9 a call that was refused is over: what is told of its readers later waits for nothing", async () => {
  const { operation, child, id } = await called(() => async () => {
    throw new DramatisError("NOT_FOUND", "There is no such agent.");
  });
  expect(operation?.result?.error?.code).toBe("NOT_FOUND");
  const { root, ids, clock } = child.world;
  const operationId = id.replace(/^conv_/, "op_");
  expect(calledConversationId(operationId, 1)).toBe(id);
  const address = (conversation: string) => ({ kind: "conversation", tenant: TENANT, id: conversation });
  const envelope = {
    operationId: `op_${ids.ulid()}`,
    from: address(root.id),
    to: address(id),
    type: AGENT_READERS,
    body: { operationId, attempt: 1, readers: ["ada"] },
    sentAt: clock.now(),
  };
  expect(await child.receive(envelope, { number: 1, last: false })).toMatchObject({ type: "done" });
});
