/** Agent files on Node: the export from a world of memories, and the import to another world. */
import { AgentBackup } from "../../src/agents/agent/backup.ts";
import { AgentStore } from "../../src/agents/agent/store.ts";
import type { AgentIdentity } from "../../src/protocol/agent-api.ts";
import type { MemoryWorld } from "./memory-world.ts";

const IDENTITY: AgentIdentity = {
  id: "keeper",
  tenant: "acme",
  persona: { library: "test", id: "plain" },
  projectIds: ["default"],
  createdAt: "2025-01-01T00:00:00.000Z",
  updatedAt: "2025-01-01T00:00:00.000Z",
};

/** The memory of an agent, with its clock. */
type World = Pick<MemoryWorld, "corpus" | "clock">;

export function backupOf(world: World): { backup: AgentBackup; store: AgentStore } {
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

/** Returns the lines of the file of the agent of a world. */
export async function linesOf(world: World): Promise<string[]> {
  const { backup, store } = backupOf(world);
  if (store.find() === undefined) store.create(IDENTITY);
  return (await new Response(backup.export()).text()).trimEnd().split("\n");
}
