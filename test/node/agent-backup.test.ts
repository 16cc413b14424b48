/** The import of an agent on Node: what an import that was begun anew leaves of the first one. */
import { expect, test } from "vitest";
import { AgentBackup } from "../../src/agents/agent/backup.ts";
import { AgentStore } from "../../src/agents/agent/store.ts";
import type { AgentIdentity } from "../../src/protocol/agent-api.ts";
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
  store.create(IDENTITY);
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
  await backup.import({ from: 1, lines: lines.slice(0, 4), isLast: false });
  expect(await found()).toEqual(["Ada has a dog.", "Ada likes tea."]);
  await backup.import({ from: 1, lines: lines.slice(0, 2), isLast: false });
  expect(await found()).toEqual([]);
  expect(world.corpus.ports.keyValue.list("memory", 10)).toEqual([]);
  await backup.import({ from: 3, lines: lines.slice(2, 3), isLast: false });
  expect(await found()).toEqual(["Ada likes tea."]);
  await backup.import({ from: 4, lines: lines.slice(3), isLast: true });
  expect(await found()).toEqual(["Ada has a dog.", "Ada likes tea."]);
});
