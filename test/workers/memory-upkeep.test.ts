/** The upkeep of memories on workerd: by the agent's own wake-up, in the real Executor, and by runs of workflows. */
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import { expect, test } from "vitest";
import type { AgentApi } from "../../src/protocol/agent-api.ts";
import type { MemoryReader, MemoryWriter } from "../../src/protocol/memory.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { ADA, createAgent, request } from "./world.ts";

const READER: MemoryReader = { principal: ADA };
const WRITER: MemoryWriter = { reader: READER, author: { kind: "principal", subject: ADA.subject } };
const DAY_MS = 86_400_000;

async function agentOf(persona: Parameters<typeof createAgent>[0]) {
  const id = await createAgent(persona);
  const object = exports.Agent.getByName(`${ADA.tenant}:${id}`);
  // SAFETY: the class of the export has this interface.
  return { id, object, stub: object as unknown as AgentApi };
}
type TestAgent = Awaited<ReturnType<typeof agentOf>>;

async function write({ stub }: Pick<TestAgent, "stub">, ...contents: string[]) {
  const inputs = contents.map((content) => ({ content, type: "episode", subject: { userId: "ann" } }));
  return unwrap(await stub.writeMemories(WRITER, inputs));
}

/** Makes all memories a day older, and the upkeep due: it checks marked memories within a second of the next write. */
async function passDay({ object, stub }: Pick<TestAgent, "object" | "stub">) {
  await runInDurableObject(object, (_, { storage }) => {
    storage.sql.exec("UPDATE memories SET updated_at = updated_at - ?", DAY_MS);
    storage.sql.exec("INSERT INTO memory_rederive (n) VALUES (1000000)");
  });
  unwrap(await stub.writeMemories(WRITER, [{ content: "The clock struck." }]));
}

async function texts({ stub }: Pick<TestAgent, "stub">, type: string): Promise<string[]> {
  const { items } = unwrap(await stub.listMemories(READER, { type }));
  return items.map(({ content }) => content);
}

const ROUTES = ["Ann walked route 1.", "Ann walked route 2.", "Ann walked route 3."];

test("B5 JOINRUN-1 old episodes become an extract, by the platform's own task in the Executor", async () => {
  const agent = await agentOf("upkeep/own");
  await write(agent, ...ROUTES);
  await passDay(agent);
  await expect.poll(() => texts(agent, "summary"), { timeout: 20_000 }).toHaveLength(1);
  const [summary = ""] = await texts(agent, "summary");
  for (const route of ROUTES) expect(summary).toContain(route);
  expect(await texts(agent, "episode")).toEqual([]);
  expect(unwrap(await agent.stub.memoryStatus())).toMatchObject({ memories: 5, archived: 3 });
  const found = unwrap(
    await agent.stub.searchMemories(READER, { query: "which route did Ann walk", minRelevance: 0.5 }),
  );
  expect(found.matches.map(({ memory }) => memory.content)).toEqual([summary]);
});

test("B5 by a task of a library", async () => {
  const agent = await agentOf("upkeep/by_task");
  await write(agent, ...ROUTES);
  await passDay(agent);
  await expect.poll(() => texts(agent, "summary"), { timeout: 20_000 }).toEqual(["Ann walked 3 routes."]);
});

test("B5 JOINRUN-2 by a workflow, with a run that only operators see", async () => {
  const agent = await agentOf("upkeep/by_workflow");
  await write(agent, ...ROUTES);
  await passDay(agent);
  await expect.poll(() => texts(agent, "summary"), { timeout: 20_000 }).toEqual(["Ann walked 3 routes."]);
  const list = async (principal = ADA) => {
    const response = await request("/api/runs?limit=100&order=desc", {}, principal);
    // SAFETY: the route answers a page of runs.
    const { runs } = (await response.json()) as { runs: { startedBy: string }[] };
    return runs.filter(({ startedBy }) => startedBy === `agent:${agent.id}`);
  };
  await expect.poll(() => list(), { timeout: 10_000 }).toHaveLength(1);
  expect(await list({ subject: "ann", tenant: ADA.tenant, roles: ["member"] })).toEqual([]);
});

test("UPKEEP-2 an actor that dies before its upkeep does it in its next life", async () => {
  const agent = await agentOf("upkeep/own");
  await write(agent, ...ROUTES);
  await passDay(agent);
  await evictDurableObject(agent.object);
  await expect.poll(() => texts(agent, "summary"), { timeout: 20_000 }).toHaveLength(1);
});

test("A77 retention archives by the persona's setting", async () => {
  const agent = await agentOf({
    identity: { systemPrompt: "Test." },
    memory: { scope: "user", retention: { episode: { days: 0.5, then: "archive" } } },
  });
  const [memory] = await write(agent, "Ann went to Rome.");
  await passDay(agent);
  await expect
    .poll(async () => unwrap(await agent.stub.readMemory(READER, memory?.id ?? "")).state, {
      timeout: 20_000,
    })
    .toBe("archived");
  expect(unwrap(await agent.stub.listMemories(READER)).items.map(({ content }) => content)).toEqual([
    "The clock struck.",
  ]);
});

test("REDERIVE-2 a memory of a shared summary that is deleted leaves it", async () => {
  const agent = await agentOf("upkeep/own");
  const memories = await write(agent, ...ROUTES);
  await passDay(agent);
  await expect.poll(() => texts(agent, "summary"), { timeout: 20_000 }).toHaveLength(1);
  unwrap(await agent.stub.deleteMemory(WRITER, memories[1]?.id ?? ""));
  expect(
    unwrap(await agent.stub.searchMemories(READER, { query: "route", minRelevance: 0.5 })).matches,
  ).toEqual([]);
  await expect
    .poll(
      async () =>
        unwrap(await agent.stub.searchMemories(READER, { query: "route", minRelevance: 0.5 })).matches,
      {
        timeout: 20_000,
      },
    )
    .toHaveLength(1);
  const [summary = ""] = await texts(agent, "summary");
  expect(summary).toContain("route 1");
  expect(summary).not.toContain("route 2");
});

test("CONSOLIDATE-7 an agent with an unknown consolidation task is refused", async () => {
  const persona = {
    identity: { systemPrompt: "Test." },
    memory: { scope: "user", consolidation: { by: { task: "upkeep/absent" } } },
  };
  const response = await request("/api/agents", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ id: "joins-by-nothing", persona }),
  });
  expect(response.status).toBe(422);
});
