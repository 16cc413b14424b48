/** Vectors that must leave a store, although it applies requests long after they were given up. */
import { describe, expect, test, vi } from "vitest";
import { AgentRemoval, type AgentRemovalPorts } from "../../src/agents/agent/removal.ts";
import { AgentStore } from "../../src/agents/agent/store.ts";
import { ownedStores } from "../../src/agents/base/removal/owned-stores.ts";
import { vectorNamespace } from "../../src/memory/corpus/index/owned-vectors.ts";
import type { VectorIndex } from "../../src/ports/vector-index.ts";
import { toIso } from "../../src/shared/time.ts";
import { IndexedMemories, someMemory } from "../support/indexed-memories.ts";
import { LateVectors } from "../support/late-vectors.ts";
import { WordEmbedder, wordVector } from "../support/test-embedders.ts";

const OWNER = { tenant: "acme", id: "keeper" };
/** The highest number in an import, and the next number. */
const HIGH = 2 ** 34;
const DAY_MS = 86_400_000;

function world(embedder = new WordEmbedder(100, true, "old")) {
  const memories: IndexedMemories = new IndexedMemories(embedder, {
    vectors: { index: () => store, namespace: () => vectorNamespace(OWNER) },
  });
  const store = new LateVectors(100, memories.clock);
  return { memories, store };
}

/** Lets the job run for as long as it has work. */
async function settle(memories: IndexedMemories): Promise<void> {
  for (let round = 0; round < 50; round++) {
    const pumped = memories.pumpAll();
    await memories.clock.advance(0);
    await pumped;
    const { waitMs } = memories.index;
    if (waitMs === undefined) return;
    await memories.clock.advance(waitMs);
  }
  throw new Error("The store stays behind.");
}

/** Lets the job run until the store has got an upsert that it does not answer. */
async function send({ memories, store }: ReturnType<typeof world>) {
  store.mood = "late";
  const { length } = store.upserts;
  const pumped = memories.pumpAll();
  await expect.poll(() => store.upserts).toHaveLength(length + 1);
  store.mood = "well";
  return { pumped };
}

/** As `send`, until the upsert is given up. */
async function giveUp({ memories, store }: ReturnType<typeof world>): Promise<void> {
  const { pumped } = await send({ memories, store });
  await memories.clock.advance(30_000);
  await pumped;
}

const ids = (space: number, ...ns: number[]) => ns.map((n) => `${space}.${n}`).sort();

describe("an upsert that takes effect after it was given up", () => {
  test("MEMVECTORS-2 of an erased memory: the vector is deleted", async () => {
    const { memories, store } = world();
    await memories.put(someMemory(1), someMemory(2));
    await giveUp({ memories, store });
    memories.remove(1);
    await settle(memories);
    expect(store.ids()).toEqual(ids(1, 2));
    expect(memories.index.status().vectors).toEqual({ pending: 0 });
  });

  test("MEMVECTORS-2 of a memory that was erased during its upsert, and a restart", async () => {
    const { memories, store } = world();
    await memories.put(someMemory(1), someMemory(2));
    store.lateMs = 55_000;
    await send({ memories, store });
    memories.remove(1);
    memories.restarted();
    await settle(memories);
    expect(store.ids()).toEqual(ids(1, 2));
  });

  test("MEMVECTORS-4 of a replaced text: the store finally has the vector of the new text", async () => {
    const { memories, store } = world();
    await memories.put(someMemory(1, { text: "winter letter" }));
    await giveUp({ memories, store });
    await memories.put(someMemory(1, { text: "summer harbour" }));
    await settle(memories);
    await memories.clock.advance(120_000);
    const vector = [...(wordVector("summer harbour", 100) ?? [])];
    const [match] = await store.query(vector, { namespace: await vectorNamespace(OWNER), topK: 1 });
    expect(match?.score).toBeGreaterThan(0.99);
  });

  test("MEMVECTORS-7 of a withdrawn space: all of its vectors are deleted", async () => {
    const { memories, store } = world();
    await memories.put(...Array.from({ length: 150 }, (_, at) => someMemory(at + 1)));
    await settle(memories);
    await memories.put(someMemory(151), someMemory(152));
    await giveUp({ memories, store });
    memories.remove(152);
    memories.embedder = new WordEmbedder(100, true, "new");
    memories.restarted();
    await settle(memories);
    expect(store.ids().sort()).toEqual(ids(2, ...Array.from({ length: 151 }, (_, at) => at + 1)));
    expect(memories.index.status().vectors).toEqual({ pending: 0 });
    expect(memories.index.retainForRemoval()?.spaces.map(({ number }) => number)).toEqual([2]);
    expect(memories.database.all("SELECT key FROM memory_index WHERE length(data) < 9")).toEqual([]);
  });

  test("MEMVECTORS-7 of a space that is withdrawn after a restart: all of its vectors are deleted", async () => {
    const { memories, store } = world();
    await memories.put(someMemory(1));
    await settle(memories);
    await memories.put(someMemory(2));
    store.lateMs = 85_000;
    await send({ memories, store });
    memories.embedder = new WordEmbedder(100, true, "new");
    memories.restarted();
    await settle(memories);
    await memories.clock.advance(120_000);
    expect(store.ids().sort()).toEqual(ids(2, 1, 2));
  });

  test("MEMVECTORS-7 a crash at any deletion of a withdrawn space, and a temporarily missing store, leave no vector", async () => {
    const { memories, store } = world();
    await memories.put(...Array.from({ length: 1_500 }, (_, at) => someMemory(at + 1)));
    await settle(memories);
    memories.embedder = new WordEmbedder(100, true, "new");
    const port = memories.ports.vectors;
    memories.restarted({ vectors: { index: () => null, namespace: async () => "" } });
    await memories.pumpAll();
    expect(store.ids(), "the store is not bound").toContain("1.1");
    memories.restarted(port && { vectors: port });
    for (let round = 0; round < 40; round++) {
      await memories.index.pump();
      memories.restarted();
    }
    await settle(memories);
    expect(store.ids()).toHaveLength(1_500);
    expect(store.ids().filter((id) => !id.startsWith("2."))).toEqual([]);
  });

  test("MEMVECTORS-6 of a deleted agent: all its vectors are deleted before the removal ends", async () => {
    const { memories, store } = world();
    vi.spyOn(console, "error").mockReturnValue(undefined);
    const agent = deletable({ memories, store });
    await memories.put(...Array.from({ length: 300 }, (_, at) => someMemory(at + 1)));
    await settle(memories);
    await memories.put(someMemory(301));
    await send({ memories, store });
    memories.remove(7, 301);
    await agent.remove();
    await agent.end();
    expect(store.ids()).toEqual([]);
    expect(agent.tables()).toEqual([]);
  });
});

test("MEMVECTORS-6 a store that fails, is unbound for a while and returns has no vectors of a deleted agent", async () => {
  const { memories, store } = world();
  vi.spyOn(console, "error").mockReturnValue(undefined);
  const agent = deletable({ memories, store });
  await memories.put(...Array.from({ length: 300 }, (_, at) => someMemory(at + 1)));
  await settle(memories);
  store.mood = "down";
  // Their rows are deleted, and their numbers wait for the store.
  for (let n = 1; n <= 250; n++) memories.remove(n);
  await agent.remove();
  await memories.clock.advance(120_000);
  agent.bind(null);
  await agent.waits();
  expect(store.ids()).toHaveLength(300);
  store.mood = "well";
  agent.bind(store);
  await agent.end();
  expect(store.ids()).toEqual([]);
  expect(agent.tables()).toEqual([]);
});

test("REMOVE-6 MEMVECTORS-6 an agent that is deleted while the store is not bound looks for it for 90 days", async () => {
  const { memories, store } = world();
  const thirty = Array.from({ length: 30 }, (_, at) => at + 1);
  await memories.put(...thirty.map((n) => someMemory(n)));
  await settle(memories);
  // No row of the index has them any more, and the store was not asked yet.
  memories.remove(...thirty);
  const agent = deletable({ memories, store });
  agent.bind(null);
  await agent.remove();
  await agent.waits();
  expect(store.ids()).toHaveLength(30);
  agent.bind(store);
  await agent.end();
  expect([store.ids(), agent.tables()]).toEqual([[], []]);
});

test("REMOVE-6 after 90 days an agent looks no more for a store that is not bound", async () => {
  const { memories, store } = world();
  await memories.put(someMemory(1));
  await settle(memories);
  const agent = deletable({ memories, store });
  agent.bind(null);
  await agent.remove();
  await agent.waits();
  await memories.clock.advance(90 * DAY_MS);
  await agent.end();
  expect(store.ids()).toHaveLength(1);
});

describe("numbers that no counting reaches", () => {
  test("MEMVECTORS-8 only the vector of a removed memory is deleted", async () => {
    const { memories, store } = world();
    const [below, above] = [HIGH - 1, HIGH + 1];
    await memories.put(someMemory(1), someMemory(below), someMemory(HIGH), someMemory(above));
    await settle(memories);
    expect(store.ids().sort()).toEqual(ids(1, 1, below, HIGH, above));
    memories.remove(HIGH);
    await settle(memories);
    expect(store.ids().sort()).toEqual(ids(1, 1, below, above));
    expect(await memories.found("winter letter")).not.toContain(HIGH);
    expect(memories.index.status().vectors).toEqual({ pending: 0 });
  });

  test("MEMVECTORS-8 a withdrawn space, and a deleted agent, take as many requests as they have rows", async () => {
    const { memories, store } = world();
    vi.spyOn(console, "error").mockReturnValue(undefined);
    await memories.put(someMemory(1), someMemory(2 ** 32), someMemory(HIGH));
    await settle(memories);
    memories.embedder = new WordEmbedder(100, true, "new");
    memories.restarted();
    await settle(memories);
    expect(store.ids().sort()).toEqual(ids(2, 1, 2 ** 32, HIGH));
    const agent = deletable({ memories, store });
    await agent.remove();
    await agent.end();
    expect(store.ids()).toEqual([]);
    expect(store.deletions.length).toBeLessThan(30);
  });
});

/** Returns the removal of the agent that owns the memories, on the same database. */
function deletable({ memories, store: index }: ReturnType<typeof world>) {
  let binding: VectorIndex | null = index;
  const { database, keyValue, clock } = memories;
  const store = new AgentStore({ database, keyValue }, () => OWNER.id);
  const at = toIso(clock.now());
  store.create({
    ...OWNER,
    persona: { library: "lib", id: "keeper" },
    projectIds: [],
    createdAt: at,
    updatedAt: at,
  });
  const ports = {
    database,
    keyValue,
    clock,
    store,
    wakeup: { arm: async () => undefined, disarm: () => undefined },
    stores: () => ownedStores({ rows: null, objects: null, events: null, vectors: binding }),
    retainVectors: () => memories.index.retainForRemoval(),
    forgetMail: () => true,
    conversation: async () => ({ removeAgent: async () => ({ ok: true, value: null }) }),
  } satisfies AgentRemovalPorts;
  let removal = new AgentRemoval(ports);
  async function runUntil(wake: number | null) {
    const isReached = async () => {
      await clock.advance(1_000);
      expect(removal.wake()).toBe(wake);
    };
    await vi.waitFor(isReached, { timeout: 20_000, interval: 1 });
    await clock.advance(120_000);
  }
  return {
    remove: () => removal.remove(),
    /** Begins a life with another binding of the store. */
    bind(next: VectorIndex | null) {
      binding = next;
      removal = new AgentRemoval(ports);
    },
    /** Runs the removal until the actor is idle, and a minute more. */
    end: () => runUntil(null),
    /** Runs the removal until the actor waits for a store. */
    waits: () => runUntil(DAY_MS),
    /** The tables of the agent's own. */
    tables: () =>
      database
        .all<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table'")
        .map(({ name }) => name)
        .filter(
          (name) => name.startsWith("memory") || name.startsWith("removed") || name === "conversations",
        ),
  };
}
