/** The memory of agents by RPC, as other Workers call it: `getAgentByName(env.Agent, "tenant:id")`. */
import { env, exports } from "cloudflare:workers";
import { getAgentByName } from "agents";
import { describe, expect, test } from "vitest";
import type { AgentApi } from "../../src/protocol/agent-api.ts";
import type { MemoryReader, MemoryWriter } from "../../src/protocol/memory.ts";
import type { MemoryInput } from "../../src/protocol/memory-requests.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { ADA, createAgent } from "./world.ts";

const READER: MemoryReader = { principal: ADA };
const WRITER: MemoryWriter = { reader: READER, author: { kind: "principal", subject: ADA.subject } };

async function newAgent() {
  const id = await createAgent("test/careful");
  // SAFETY: the class of the export has this interface.
  const stub = exports.Agent.getByName(`${ADA.tenant}:${id}`) as unknown as AgentApi;
  const write = async (...inputs: MemoryInput[]) => unwrap(await stub.writeMemories(WRITER, inputs));
  const found = async (query: string, more: object = {}) =>
    unwrap(await stub.searchMemories(READER, { query, ...more })).matches.map(({ memory }) => memory.content);
  return { id, stub, write, found };
}

async function count(agentId: string): Promise<number> {
  const query = "SELECT COUNT(*) AS count FROM memories WHERE tenant = ?1 AND agent_id = ?2";
  return (await env.DB.prepare(query).bind(ADA.tenant, agentId).first<number>("count")) ?? 0;
}

describe("the memory of an agent", () => {
  test("A5 an agent answers identity, persona and memory by its name, and conversations share its memory", async () => {
    const { id } = await newAgent();
    // SAFETY: the class of the export has this interface.
    const agent = (await getAgentByName(
      exports.Agent as never,
      `${ADA.tenant}:${id}`,
    )) as unknown as AgentApi;
    expect(unwrap(await agent.identity())).toMatchObject({ id, tenant: ADA.tenant });
    expect(unwrap(await agent.persona()).chain.persona.definition.identity).toBeDefined();
    const from = (conversationId: string): MemoryWriter => ({
      reader: { scope: "agent", userId: "ada", conversationId },
      author: { kind: "tool", conversationId, turnId: "turn_1" },
      subject: { userId: "ada", conversationId },
      sources: [{ conversationId, turnId: "turn_1" }],
    });
    unwrap(await agent.writeMemories(from("conv_1"), [{ content: "The harbour closes at nine." }]));
    const other: MemoryReader = { scope: "agent", userId: "bob", conversationId: "conv_2" };
    const { matches } = unwrap(await agent.searchMemories(other, { query: "When does the harbour close?" }));
    expect(matches.map(({ memory }) => memory.content)).toEqual(["The harbour closes at nine."]);
  });

  test("A54 A55 a memory is durable, read and found when its write returns", async () => {
    const { id, stub, write, found } = await newAgent();
    const input: MemoryInput = {
      content: "Ada met Bob in Oslo.",
      type: "event",
      key: "oslo",
      significance: 0.8,
      speaker: "Ada",
      session: "s1",
      sequence: 3,
      time: "2025-05-01T10:00:00.000Z",
      metadata: { place: "Oslo", tags: ["a", { b: null }] },
      subject: { userId: "ada" },
    };
    const [memory] = await write(input);
    expect(memory).toMatchObject({
      ...input,
      agentId: id,
      state: "current",
      version: 1,
      validFrom: input.time,
    });
    expect(unwrap(await stub.readMemory(READER, memory?.id ?? ""))).toEqual(memory);
    expect(await found("Oslo")).toEqual([input.content]);
  });

  test("A56 a search finds this agent's memories only, with a relevance that compares between agents", async () => {
    const [one, two] = [await newAgent(), await newAgent()];
    await one.write({ content: "The lighthouse keeper is called Mira." });
    await two.write({ content: "A lighthouse stands on the cape." });
    expect(await one.found("lighthouse")).toEqual(["The lighthouse keeper is called Mira."]);
    expect(await two.found("lighthouse keeper")).toEqual(["A lighthouse stands on the cape."]);
    const relevance = async (agent: typeof one) => {
      const { matches } = unwrap(
        await agent.stub.searchMemories(READER, { query: "lighthouse keeper Mira" }),
      );
      return matches[0]?.score.relevance ?? 0;
    };
    expect(await relevance(one)).toBeGreaterThan(await relevance(two));
  });

  test("A57 an update and a deletion are seen at once by every read", async () => {
    const { stub, write, found } = await newAgent();
    const [memory] = await write({ content: "The password hint is walrus." });
    const id = memory?.id ?? "";
    const changed = unwrap(
      await stub.updateMemory(WRITER, id, { content: "The hint is narwhal.", type: "hint" }),
    );
    expect(changed).toMatchObject({ content: "The hint is narwhal.", type: "hint", version: 2 });
    expect([await found("walrus"), await found("narwhal")]).toEqual([[], ["The hint is narwhal."]]);
    expect(await stub.deleteMemory(WRITER, id)).toEqual({ ok: true, value: null });
    expect(await found("narwhal")).toEqual([]);
    for (const answer of [
      stub.readMemory(READER, id),
      stub.whyMemory(READER, id),
      stub.deleteMemory(WRITER, id),
    ])
      expect(await answer).toMatchObject({ ok: false, error: { code: "NOT_FOUND" } });
    expect(unwrap(await stub.listMemories(READER))).toEqual({ items: [] });
  });

  test("A58 an input that names another agent writes to the agent that was called", async () => {
    const [one, two] = [await newAgent(), await newAgent()];
    const named = { content: "For whom is this?", agentId: two.id };
    const [memory] = await one.write(named);
    expect(memory?.agentId).toBe(one.id);
    expect(unwrap(await two.stub.listMemories(READER)).items).toEqual([]);
    const query = { query: "whom", agentId: two.id };
    expect(unwrap(await one.stub.searchMemories(READER, query)).matches).toHaveLength(1);
  });

  test("A59 a thousand writes are a thousand rows, in the actor and in D1, and each is found", async () => {
    const { id, stub, write, found } = await newAgent();
    for (let batch = 0; batch < 10; batch++)
      await write(
        ...Array.from({ length: 100 }, (_, index) => ({
          content: `Entry ${batch * 100 + index} of the log.`,
        })),
      );
    expect(unwrap(await stub.memoryStatus())).toMatchObject({ memories: 1000, archived: 0 });
    await expect.poll(() => count(id), { timeout: 20_000 }).toBe(1000);
    for (const number of [0, 499, 999])
      expect((await found(`Entry ${number}`))[0]).toBe(`Entry ${number} of the log.`);
  });

  test("A60 a type is any text, and filters", async () => {
    const { id, stub, write, found } = await newAgent();
    const types = ["fact", "Ein Wunsch", "好み", "x/y:z", "' OR 1=1 --"];
    await write(...types.map((type) => ({ content: `Something of a kind.`, type })));
    for (const type of types) {
      expect(unwrap(await stub.listMemories(READER, { type })).items.map((item) => item.type)).toEqual([
        type,
      ]);
      expect(await found("something", { type })).toHaveLength(1);
    }
    await expect.poll(() => count(id)).toBe(types.length);
    const query = "SELECT id FROM memories WHERE tenant = ?1 AND agent_id = ?2 AND type = ?3";
    const plan = await env.DB.prepare(`EXPLAIN QUERY PLAN ${query}`)
      .bind("t", "a", "x")
      .all<{ detail: string }>();
    expect(plan.results.map(({ detail }) => detail).join()).toContain("memories_by_type");
  });

  test("A77 an archived memory is out of searches and stays readable; a key names a memory", async () => {
    const { stub, write, found } = await newAgent();
    const [memory] = await write({ content: "The old address was 5 Quay Street.", key: "address" });
    const id = memory?.id ?? "";
    expect(unwrap(await stub.archiveMemory(WRITER, id))).toMatchObject({ state: "archived" });
    expect(await found("address Quay")).toEqual([]);
    expect(unwrap(await stub.readMemory(READER, id))).toMatchObject({
      content: "The old address was 5 Quay Street.",
    });
    expect(unwrap(await stub.listMemories(READER)).items).toEqual([]);
    expect(unwrap(await stub.listMemories(READER, { state: ["archived"] })).items).toHaveLength(1);
    const [again] = await write({ content: "The address is 9 Mill Lane.", key: "address" });
    expect(again).toMatchObject({ id, content: "The address is 9 Mill Lane.", state: "current" });
    expect(await found("address")).toEqual(["The address is 9 Mill Lane."]);
  });

  test("B9 H6 a contradicted fact is one memory, and `why` has its sources and every text that it had", async () => {
    const { stub } = await newAgent();
    const from = (turnId: string): MemoryWriter => ({
      reader: { scope: "user", userId: "ada", conversationId: "conv_1" },
      author: { kind: "tool", conversationId: "conv_1", turnId },
      subject: { userId: "ada", conversationId: "conv_1" },
      sources: [{ conversationId: "conv_1", turnId }],
    });
    const say = async (turnId: string, content: string, time: string) =>
      unwrap(await stub.writeMemories(from(turnId), [{ key: "tea", content, time }]));
    await say("turn_1", "Ada loves tea.", "2025-01-01T00:00:00.000Z");
    const [memory] = await say("turn_2", "Ada hates tea.", "2025-02-01T00:00:00.000Z");
    expect(unwrap(await stub.listMemories(READER)).items).toEqual([memory]);
    const why = unwrap(await stub.whyMemory(READER, memory?.id ?? ""));
    expect(why.sources).toEqual([
      { conversationId: "conv_1", turnId: "turn_1" },
      { conversationId: "conv_1", turnId: "turn_2" },
    ]);
    expect(why.log).toMatchObject([
      {
        change: "updated",
        by: { kind: "tool", turnId: "turn_2" },
        before: {
          content: "Ada loves tea.",
          validFrom: "2025-01-01T00:00:00.000Z",
          validTo: "2025-02-01T00:00:00.000Z",
        },
        sources: [{ turnId: "turn_2" }],
      },
      { change: "written", sources: [{ turnId: "turn_1" }] },
    ]);
  });

  test("an agent that was never created has no memory", async () => {
    // SAFETY: the class of the export has this interface.
    const stub = exports.Agent.getByName(
      `${ADA.tenant}:nobody-${crypto.randomUUID()}`,
    ) as unknown as AgentApi;
    const asked = [
      stub.writeMemories(WRITER, [{ content: "x" }]),
      stub.listMemories(READER),
      stub.searchMemories(READER, { query: "x" }),
      stub.memoryStatus(),
    ];
    for (const answer of asked)
      expect(await answer).toMatchObject({ ok: false, error: { code: "NOT_FOUND" } });
  });
});

test("D1 has no virtual table, which its export refuses", async () => {
  const { write, id } = await newAgent();
  await write({ content: "Something." });
  await expect.poll(() => count(id)).toBe(1);
  const { results } = await env.DB.prepare("SELECT sql FROM sqlite_master WHERE sql LIKE '%VIRTUAL%'").all();
  expect(results).toEqual([]);
});
