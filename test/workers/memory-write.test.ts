import { exports } from "cloudflare:workers";
import { expect, test } from "vitest";
import type { AgentApi } from "../../src/protocol/agent-api.ts";
import type { MemoryReader, MemoryWriter } from "../../src/protocol/memory.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { ADA, createAgent } from "./world.ts";

const READER: MemoryReader = { principal: ADA };
const WRITER: MemoryWriter = { reader: READER, author: { kind: "principal", subject: ADA.subject } };

async function agent() {
  const id = await createAgent("test/careful");
  // SAFETY: the class of the export has this interface.
  const stub = exports.Agent.getByName(`${ADA.tenant}:${id}`) as unknown as AgentApi;
  return { id, stub };
}

test("a memory that was written is found, read, listed, changed, archived and deleted", async () => {
  const { id, stub } = await agent();
  const [memory] = unwrap(await stub.writeMemories(WRITER, [{ content: "Ada likes green tea." }]));
  expect(memory).toMatchObject({ agentId: id, content: "Ada likes green tea.", type: "fact", version: 1 });
  const memoryId = memory?.id ?? "";
  const found = unwrap(await stub.searchMemories(READER, { query: "green tea" }));
  expect(found.matches.map((match) => match.memory.id)).toEqual([memoryId]);
  expect(unwrap(await stub.readMemory(READER, memoryId))).toEqual(memory);
  expect(unwrap(await stub.listMemories(READER)).items).toEqual([memory]);
  const changed = unwrap(await stub.updateMemory(WRITER, memoryId, { content: "Ada hates green tea." }));
  expect(changed).toMatchObject({ content: "Ada hates green tea.", version: 2 });
  const why = unwrap(await stub.whyMemory(READER, memoryId));
  expect(why.log.map(({ change, before }) => [change, before?.content])).toEqual([
    ["updated", "Ada likes green tea."],
    ["written", undefined],
  ]);
  unwrap(await stub.archiveMemory(WRITER, memoryId));
  expect(unwrap(await stub.searchMemories(READER, { query: "green tea" })).matches).toEqual([]);
  expect(unwrap(await stub.readMemory(READER, memoryId))).toMatchObject({ state: "archived" });
  expect(unwrap(await stub.memoryStatus())).toMatchObject({ memories: 1, archived: 1 });
  unwrap(await stub.deleteMemory(WRITER, memoryId));
  expect(await stub.readMemory(READER, memoryId)).toMatchObject({ ok: false, error: { code: "NOT_FOUND" } });
});
