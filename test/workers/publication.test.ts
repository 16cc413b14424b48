/** Creation of agents and conversations while D1 does not answer and their actors die. */
import { abortAllDurableObjects, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { systemIds } from "../../src/ports/system.ts";
import type { AgentApi } from "../../src/protocol/agent-api.ts";
import type { ConversationApi } from "../../src/protocol/conversation-api.ts";
import {
  ADMIN,
  createAgent,
  createConversation,
  expectProblem,
  get,
  MEMBER,
  persona,
  post,
  say,
} from "./http-client.ts";
import { Play } from "./provider.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** Makes D1 accept statements without an answer. */
function silenceD1(): void {
  const never = () => new Promise<never>(() => undefined);
  vi.spyOn(Object.getPrototypeOf(env.DB), "batch").mockImplementation(never);
  vi.spyOn(Object.getPrototypeOf(env.DB.prepare("SELECT 1")), "run").mockImplementation(never);
}

/** Returns the armed wake-ups, in seconds from now. */
const jobs = (stub: DurableObjectStub) =>
  runInDurableObject(stub, (_, { storage }) =>
    storage.sql
      .exec<{ time: number }>("SELECT time FROM cf_agents_jobs WHERE id = 'dramatis-listing'")
      .toArray()
      .map(({ time }) => Math.ceil((time - Date.now()) / 1_000)),
  );

/** Checks an actor of any kind. `stub` returns a new stub, because a crash breaks earlier stubs. */
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

describe("PUB-1 an actor that dies before D1 answers, at creation and at the next wake-up, is eventually listed", () => {
  test("a conversation", async () => {
    const agentId = await createAgent();
    const id = `conv_${systemIds.ulid()}`;
    const stub = () => exports.Conversation.getByName(`${ADMIN.tenant}:${id}`);
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
    const stub = () => exports.Agent.getByName(`${ADMIN.tenant}:${id}`);
    await survives(
      stub,
      // SAFETY: as above.
      () => (stub() as unknown as AgentApi).create(ADMIN, { id, persona }),
      async () =>
        (await get("/api/agents?limit=200&order=desc")).body.agents.some((agent) => agent.id === id),
    );
  });
});

test("PUB-1 a put that succeeds at once leaves no wake-up", async () => {
  const id = await createAgent();
  await expect.poll(() => jobs(exports.Agent.getByName(`${ADMIN.tenant}:${id}`))).toEqual([]);
});

test("USAGE-1 the usage of conversations reaches their agent, also after an outage of D1 and a crash", async () => {
  const { body: agent } = await post("/api/agents", { persona: "test/priced" });
  const conversations = [await createConversation(agent.id), await createConversation(agent.id)];
  const usage = { prompt_tokens: 1_000, completion_tokens: 50, total_tokens: 1_050 };
  const answer = new Play({ replies: [[{ text: "Yes." }, { usage }]] });
  silenceD1();
  for (const id of conversations) await (await say(id, answer.content)).text();
  const [first = "", second = ""] = conversations;
  const stub = (id: string) => exports.Conversation.getByName(`${ADMIN.tenant}:${id}`);
  vi.setSystemTime(Date.now() + 20_000);
  expect(await runDurableObjectAlarm(stub(first)), "D1 does not answer").toBe(true);
  await abortAllDurableObjects();
  vi.restoreAllMocks();
  const totals = async () => (await get(`/api/agents/${agent.id}/usage`)).body;
  expect(await totals()).toMatchObject({ conversations: 0, calls: 0, cost: 0 });
  vi.setSystemTime(Date.now() + 60_000);
  for (const id of [first, second]) expect(await runDurableObjectAlarm(stub(id))).toBe(true);
  const both = { inputTokens: 2_000, cachedInputTokens: 0, outputTokens: 100, cost: 0.36, calls: 2 };
  await expect.poll(totals).toEqual({ agentId: agent.id, conversations: 2, ...both });
  expect((await get(`/api/conversations/${first}`)).body.usage).toMatchObject({ calls: 1, cost: 0.18 });
  await expect.poll(() => windows(stub(first))).toBe(0);
  expectProblem(await get(`/api/agents/${agent.id}/usage`, MEMBER), 403, "FORBIDDEN");
});

test("USAGE-1 a turn's usage reaches the agent while another turn waits for its client", async () => {
  const { body: agent } = await post("/api/agents", { persona: "test/priced" });
  const id = await createConversation(agent.id);
  const usage = { prompt_tokens: 1_000, completion_tokens: 50, total_tokens: 1_050 };
  const asking = new Play({ replies: [[{ call: "ask", input: {} }]] });
  const ask = { name: "ask", description: "Asks.", inputSchema: { type: "object" } };
  await post(`/api/conversations/${id}/turns`, { content: asking.content, tools: [ask] });
  const journal = async () => JSON.stringify((await get(`/api/conversations/${id}/journal`)).body);
  await expect.poll(journal).toContain("turn.waiting");
  await (await say(id, new Play({ replies: [[{ text: "Yes." }, { usage }]] }).content)).text();
  vi.setSystemTime(Date.now() + 20_000);
  expect(await runDurableObjectAlarm(exports.Conversation.getByName(`${ADMIN.tenant}:${id}`))).toBe(true);
  const totals = async () => (await get(`/api/agents/${agent.id}/usage`)).body;
  await expect.poll(totals).toMatchObject({ conversations: 1, inputTokens: 1_000, outputTokens: 50 });
});

const windows = (stub: DurableObjectStub) =>
  runInDurableObject(stub, (_, { storage }) =>
    storage.sql.exec("SELECT time FROM cf_agents_jobs WHERE id = 'dramatis-wakeups'").toArray(),
  ).then(({ length }) => length);
