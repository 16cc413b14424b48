/** Agents and conversations that are created while D1 gives no answer, and whose actors die meanwhile. */
import { abortAllDurableObjects, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { AgentApi } from "../../src/agents/agent/api.ts";
import type { ConversationApi } from "../../src/agents/conversation/api.ts";
import { systemIds } from "../../src/ports/workers/system.ts";
import { ADMIN, createAgent, get, persona } from "./http-client.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** D1 takes statements, and answers none of them. */
function silenceD1(): void {
  const never = () => new Promise<never>(() => undefined);
  vi.spyOn(Object.getPrototypeOf(env.DB), "batch").mockImplementation(never);
  vi.spyOn(Object.getPrototypeOf(env.DB.prepare("SELECT 1")), "run").mockImplementation(never);
}

/** The wake-ups that are left, as the seconds from now. */
const jobs = (stub: DurableObjectStub) =>
  runInDurableObject(stub, (_, { storage }) =>
    storage.sql
      .exec<{ time: number }>("SELECT time FROM cf_agents_jobs WHERE fn = 'directory'")
      .toArray()
      .map(({ time }) => Math.ceil((time - Date.now()) / 1_000)),
  );

/** What holds whichever actor it is; `stub` makes a new one, for those of an actor that has died are broken. */
async function survives(
  stub: () => DurableObjectStub,
  create: () => Promise<unknown>,
  list: () => Promise<unknown>,
): Promise<void> {
  silenceD1();
  const lost = create().then(
    () => "created",
    () => "lost",
  );
  // Polling moves the clock a little.
  await expect.poll(() => jobs(stub())).toEqual([15]);
  await abortAllDurableObjects();
  expect(await lost).toBe("lost");

  vi.setSystemTime(Date.now() + 20_000);
  expect(await runDurableObjectAlarm(stub())).toBe(true);
  expect(await jobs(stub()), "armed still, as long as it is behind").toEqual([expect.closeTo(20, -1)]);
  await abortAllDurableObjects();

  vi.restoreAllMocks();
  vi.setSystemTime(Date.now() + 60_000);
  expect(await runDurableObjectAlarm(stub())).toBe(true);
  await expect.poll(list).toBe(true);
  await expect.poll(() => jobs(stub())).toEqual([]);
}

describe("PUB-1 who dies before D1 has answered, at creation and at the wake-up after it, is listed in the end", () => {
  test("a conversation", async () => {
    const agentId = await createAgent();
    const id = `conv_${systemIds.ulid()}`;
    const stub = () => env.Conversation.getByName(`${ADMIN.tenant}:${id}`);
    await survives(
      stub,
      // SAFETY: the class behind the binding is the application's own.
      () => (stub() as unknown as ConversationApi).create(ADMIN, { id, agentId }),
      async () => {
        const { conversations } = (await get("/api/conversations?limit=200&order=desc")).body;
        return conversations.some((conversation) => conversation.id === id);
      },
    );
  });

  test("an agent", async () => {
    const id = crypto.randomUUID();
    const stub = () => env.Agent.getByName(`${ADMIN.tenant}:${id}`);
    await survives(
      stub,
      // SAFETY: as above.
      () => (stub() as unknown as AgentApi).create(ADMIN, { id, persona }),
      async () =>
        (await get("/api/agents?limit=200&order=desc")).body.agents.some((agent) => agent.id === id),
    );
  });
});

test("PUB-1 what D1 takes at once leaves no wake-up behind", async () => {
  const id = await createAgent();
  await expect.poll(() => jobs(env.Agent.getByName(`${ADMIN.tenant}:${id}`))).toEqual([]);
});
