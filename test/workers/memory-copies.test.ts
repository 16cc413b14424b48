import { env, exports } from "cloudflare:workers";
import { expect, test } from "vitest";
import { D1Memories } from "../../src/d1/memories.ts";
import type { MemoryRecord } from "../../src/memory/corpus/copies.ts";
import type { AgentApi } from "../../src/protocol/agent-api.ts";
import type { MemoryReader, MemoryWriter } from "../../src/protocol/memory.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { ADA, createAgent } from "./world.ts";

const READER: MemoryReader = { principal: ADA };
const WRITER: MemoryWriter = { reader: READER, author: { kind: "principal", subject: ADA.subject } };

async function newAgent() {
  const id = await createAgent("test/careful");
  // SAFETY: the class of the export has this interface.
  return { id, stub: exports.Agent.getByName(`${ADA.tenant}:${id}`) as unknown as AgentApi };
}

async function records(agentId: string) {
  const query = "SELECT * FROM memories WHERE tenant = ?1 AND agent_id = ?2 ORDER BY id";
  const { results } = await env.DB.prepare(query)
    .bind(ADA.tenant, agentId)
    .all<{ id: string; content: string; content_ref: string | null; version: number }>();
  return results;
}

async function objects(agentId: string): Promise<Record<string, string>> {
  const { objects: found } = await env.BUCKET.list({ prefix: `${ADA.tenant}/${agentId}/memories/` });
  const texts = found.map(async ({ key }) => [key, (await (await env.BUCKET.get(key))?.text()) ?? ""]);
  return Object.fromEntries(await Promise.all(texts));
}

async function upToDate(stub: AgentApi) {
  await expect
    .poll(async () => unwrap(await stub.memoryStatus()).pending)
    .toEqual({ records: 0, embeddings: 0 });
}

test("a text of 4096 bytes is in its record, one of 4097 in an object, and changes cross both ways", async () => {
  const { id, stub } = await newAgent();
  const [short, long] = ["é".repeat(2048), `${"é".repeat(2048)}a`];
  const [memory] = unwrap(await stub.writeMemories(WRITER, [{ content: short }]));
  const memoryId = memory?.id ?? "";
  await upToDate(stub);
  expect(await records(id)).toMatchObject([{ id: memoryId, content: short, content_ref: null }]);
  expect(await objects(id)).toEqual({});

  unwrap(await stub.updateMemory(WRITER, memoryId, { content: long }));
  expect(unwrap(await stub.readMemory(READER, memoryId)).content).toBe(long);
  await upToDate(stub);
  const [record] = await records(id);
  expect(record).toMatchObject({ id: memoryId, content: "", version: 2 });
  expect(await objects(id)).toEqual({ [record?.content_ref ?? ""]: long });
  expect(unwrap(await stub.readMemory(READER, memoryId)).content).toBe(long);
  expect(unwrap(await stub.listMemories(READER)).items).toMatchObject([
    { content: "é".repeat(1000), truncated: true },
  ]);

  unwrap(await stub.updateMemory(WRITER, memoryId, { content: `${long}b` }));
  await upToDate(stub);
  expect(Object.values(await objects(id))).toEqual([`${long}b`]);

  unwrap(await stub.updateMemory(WRITER, memoryId, { content: short }));
  await upToDate(stub);
  expect(await records(id)).toMatchObject([{ content: short, content_ref: null, version: 4 }]);
  expect(await objects(id)).toEqual({});
});

test("an archived text is in an object, and an erased memory is in no store", async () => {
  const { id, stub } = await newAgent();
  const contents = ["Short.", "Long. ".repeat(1000)];
  const memories = unwrap(
    await stub.writeMemories(
      WRITER,
      contents.map((content) => ({ content })),
    ),
  );
  for (const memory of memories) unwrap(await stub.archiveMemory(WRITER, memory.id));
  await upToDate(stub);
  expect(Object.values(await objects(id)).sort()).toEqual([...contents].sort());
  for (const [index, memory] of memories.entries())
    expect(unwrap(await stub.readMemory(READER, memory.id)).content).toBe(contents[index]);
  for (const memory of memories) unwrap(await stub.deleteMemory(WRITER, memory.id));
  await upToDate(stub);
  expect(await records(id)).toEqual([]);
  expect(await objects(id)).toEqual({});
});

test("MEMCOPY-4 a late older version does not replace a newer version in D1, and the same version again is a no-op", async () => {
  const owner = { tenant: ADA.tenant, agentId: `late-${crypto.randomUUID().slice(0, 8)}` };
  const id = `mem_${crypto.randomUUID().slice(0, 8)}`;
  const at = (version: number): MemoryRecord => ({
    ...owner,
    ...{ id, version, content: `Text ${version}.`, type: "fact", significance: 0.5, metadata: {}, ref: null },
    ...{ key: null, speaker: null, session: null, sequence: null, time: null, userId: null },
    ...{ conversationId: null, state: "current", tainted: false, validFrom: 0, validTo: null },
    ...{ createdAt: 0, updatedAt: version },
  });
  const memories = new D1Memories(env.DB);
  for (const [version, kept] of [
    [2, 2],
    [1, 2],
    [2, 2],
    [3, 3],
    [1, 3],
  ] as const) {
    await memories.write(owner, [at(version)], []);
    expect(await records(owner.agentId)).toMatchObject([{ id, version: kept, content: `Text ${kept}.` }]);
  }
});
