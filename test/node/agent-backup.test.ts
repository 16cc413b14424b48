/** The import of an agent on Node: what an import that was begun anew leaves of the first one. */
import { expect, test } from "vitest";
import { AgentBackup } from "../../src/agents/agent/backup.ts";
import { AgentStore } from "../../src/agents/agent/store.ts";
import { eraseSources } from "../../src/memory/corpus/erasures.ts";
import { numberOf } from "../../src/memory/corpus/memory-id.ts";
import { extractedSchema } from "../../src/memory/corpus/schemas.ts";
import type { AgentIdentity } from "../../src/protocol/agent-api.ts";
import type { ExtractedMemories } from "../../src/protocol/memory.ts";
import { EDITOR, MemoryWorld, WRITER } from "../support/memory-world.ts";

const IDENTITY: AgentIdentity = {
  id: "keeper",
  tenant: "acme",
  persona: { library: "test", id: "plain" },
  projectIds: ["default"],
  createdAt: "2025-01-01T00:00:00.000Z",
  updatedAt: "2025-01-01T00:00:00.000Z",
};

/** The backup of the agent of a world. */
function backupOf(world: MemoryWorld): { backup: AgentBackup; store: AgentStore } {
  const { database, keyValue } = world.corpus.ports;
  const store = new AgentStore({ database, keyValue }, () => IDENTITY.id);
  const backup = new AgentBackup({
    ...{ database, keyValue, clock: world.clock, store, corpus: world.corpus },
    wakeup: { arm: async () => undefined, disarm: () => undefined },
    check: async () => IDENTITY,
    commit: async (change) => database.transaction(change),
  });
  return { backup, store };
}

async function linesOf(world: MemoryWorld): Promise<string[]> {
  const { backup, store } = backupOf(world);
  if (store.find() === undefined) store.create(IDENTITY);
  return (await new Response(backup.export()).text()).trimEnd().split("\n");
}

test("BACKUP-2 an import that is begun anew leaves nothing of the first one, in memory neither", async () => {
  const source = new MemoryWorld();
  await source.corpus.write(WRITER, [{ content: "Ada likes tea." }, { content: "Ada has a dog." }]);
  const lines = await linesOf(source);
  const world = new MemoryWorld();
  const { backup } = backupOf(world);
  const found = async () => {
    const { matches } = await world.corpus.search(EDITOR, { query: "tea dog" });
    return matches.map(({ memory }) => memory.content).sort();
  };
  await backup.import({ from: 1, lines: lines.slice(0, 5), isLast: false });
  expect(await found()).toEqual(["Ada has a dog.", "Ada likes tea."]);
  await backup.import({ from: 1, lines: lines.slice(0, 2), isLast: false });
  expect(await found()).toEqual([]);
  expect(world.corpus.ports.keyValue.list("memory", 10)).toEqual([]);
  await backup.import({ from: 3, lines: lines.slice(2, 4), isLast: false });
  expect(await found()).toEqual(["Ada likes tea."]);
  await backup.import({ from: 5, lines: lines.slice(4), isLast: true });
  expect(await found()).toEqual(["Ada has a dog.", "Ada likes tea."]);
});

test("BACKUP-9 MEMSRC-5 what was erased does not come back after an export and an import", async () => {
  const source = new MemoryWorld();
  const world = new MemoryWorld();
  const said = (operationId: string, content: string, conversationId: string): ExtractedMemories => ({
    ...{ operationId, scope: "user", used: [], time: "2025-06-01T10:00:00.000Z" },
    subject: { userId: "ada", conversationId },
    source: { conversationId, turnId: "turn_1" },
    operations: [{ op: "write", content }],
  });
  const extract = async ({ extractions, corpus }: MemoryWorld, given: ExtractedMemories) => {
    const body = extractedSchema.parse(given);
    const prepared = await extractions.prepare(body);
    return corpus.ports.database.transaction(() => extractions.apply(body, prepared).outcomes);
  };
  await extract(source, said("op_1", "Ada likes tea.", "conv_1"));
  await extract(source, said("op_2", "Ada has a dog.", "conv_2"));
  const [tea] = (await source.corpus.list(EDITOR)).items;
  await source.corpus.delete(WRITER, tea?.id ?? "");
  const { database } = source.corpus.ports;
  for (const erased of [
    { conversationId: "conv_3" },
    { conversationId: "conv_4", turns: [{ turnId: "turn_1", entries: [2] }] },
  ])
    database.transaction(() => void eraseSources(source.corpus, erased));
  const lines = await linesOf(source);
  await backupOf(world).backup.import({ from: 1, lines, isLast: true });
  expect((await linesOf(world)).slice(1)).toEqual(lines.slice(1));
  const refused = [{ status: "refused", code: "CONFLICT" }];
  expect(await extract(world, said("op_3", "ADA likes tea", "conv_5"))).toMatchObject(refused);
  expect(
    await extract(world, { ...said("op_4", "Ada sings.", "conv_5"), used: [tea?.id ?? ""] }),
  ).toMatchObject(refused);
  expect(await extract(world, said("op_5", "Ada sings.", "conv_3"))).toMatchObject(refused);
  expect(await extract(world, said("op_6", "Ada sings.", "conv_4"))).toMatchObject(refused);
  expect(await extract(world, said("op_7", "Ada has a dog.", "conv_5"))).toMatchObject([
    { status: "unchanged" },
  ]);
  const [written] = await world.corpus.write(WRITER, [{ content: "New." }]);
  expect(numberOf(written?.id ?? "")).toBe(3);
});
