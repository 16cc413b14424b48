/** Agents with a store of vectors such as Vectorize: its content, its queries, and its deletions. */
import { describe, expect, test } from "vitest";
import {
  deleteVectors,
  retainedVectors,
  vectorNamespace,
} from "../../src/memory/corpus/index/owned-vectors.ts";
import { IndexPool } from "../../src/memory/corpus/index/pool.ts";
import type { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import { VectorizeVectorIndex } from "../../src/ports/workers/vectorize-index.ts";
import { IndexedMemories, someMemory } from "../support/indexed-memories.ts";
import { WordEmbedder } from "../support/test-embedders.ts";
import { VectorizeDouble } from "../support/vectorize-double.ts";

const MINUTE = 60_000;

/** A double with the lag of ten seconds, on a clock that its agents share. */
class Deployment {
  readonly double: VectorizeDouble;
  readonly vectors: VectorizeVectorIndex;
  clock!: VirtualClock;

  constructor(dimensions = 100) {
    this.double = new VectorizeDouble(dimensions, {
      clock: { now: () => this.clock.now() },
      milliseconds: 10_000,
    });
    this.vectors = new VectorizeVectorIndex(this.double);
  }

  agent(id: string, tenant = "acme", embedder = new WordEmbedder(100, true)): IndexedMemories {
    const memories: IndexedMemories = new IndexedMemories(embedder, {
      vectors: {
        index: () => this.vectors,
        namespace: () => vectorNamespace({ tenant, id }),
      },
    });
    this.clock ??= memories.clock;
    return memories;
  }
}

/** Lets the job run for as long as it has work. */
async function settle(deployment: Deployment, memories: IndexedMemories): Promise<void> {
  for (let round = 0; round < 50; round++) {
    await memories.pumpAll();
    const { waitMs } = memories.index;
    if (waitMs === undefined) return;
    await memories.clock.advance(waitMs);
    if (deployment.clock !== memories.clock) await deployment.clock.advance(waitMs);
  }
  throw new Error("The store stays behind.");
}

async function fill(memories: IndexedMemories, count: number): Promise<void> {
  for (let first = 1; first <= count; first += 100)
    await memories.put(
      ...Array.from({ length: Math.min(100, count - first + 1) }, (_, at) => someMemory(first + at)),
    );
}

const QUERIES = [
  "topic7 winter letter",
  "coffee in the garden",
  "topic12",
  "topic30 river summer",
  "nothing known",
];

/** Compares with an index on the same rows that has no store. */
async function checkRightNow(memories: IndexedMemories, deployment: Deployment): Promise<void> {
  const found = [];
  for (const query of QUERIES) found.push(await memories.found(query));
  const { queries } = deployment.double;
  const port = memories.ports.vectors;
  memories.restarted({ vectors: { index: () => null, namespace: async () => "" } });
  const exact = [];
  for (const query of QUERIES) exact.push(await memories.found(query));
  expect(found).toEqual(exact);
  expect(deployment.double.queries).toBe(queries);
  memories.restarted(port && { vectors: port });
}

describe("Vectorize with its caps and a lag of ten seconds", () => {
  test("MEMVECTORS-1 MEMNEAREST-3 results are right at every time, with and without the vectors in memory", async () => {
    const deployment = new Deployment();
    const memories = deployment.agent("keeper");
    const { double } = deployment;
    await fill(memories, 3_000);
    await checkRightNow(memories, deployment);
    expect(double.queries).toBe(0);

    await settle(deployment, memories);
    expect(double.seen()).toHaveLength(3_000);
    expect(memories.index.status().vectors).toEqual({ pending: 0 });
    const pool = new IndexPool();
    memories.restarted({ pool });
    await memories.found("coffee");
    expect(pool.bytes, "the vectors are not in memory").toBeLessThan(600_000);
    await checkRightNow(memories, deployment);
    expect(double.queries).toBe(1 + QUERIES.length);

    // New and changed memories are found before the store shows them.
    await memories.put(
      someMemory(3_001, { text: "a zebra in the attic" }),
      someMemory(7, { text: "zebra zebra" }),
    );
    memories.remove(8);
    expect((await memories.found("zebra")).slice(0, 2).sort()).toEqual([3_001, 7]);
    await checkRightNow(memories, deployment);
    await memories.pumpAll();
    await checkRightNow(memories, deployment);
    await settle(deployment, memories);
    await checkRightNow(memories, deployment);
    expect(double.seen()).toHaveLength(3_000);
  });

  test("MEMVECTORS-5 MEMNEAREST-2 agents with equal keys in one index find only their own vectors, and only vectors in a reader's scope", async () => {
    const deployment = new Deployment();
    const [one, other] = [deployment.agent("same"), deployment.agent("same", "umbrella")];
    await fill(one, 1_200);
    for (let n = 1; n <= 1_200; n++) other.entries.set(n, someMemory(n));
    await other.put(
      ...Array.from({ length: 1_200 }, (_, n) => someMemory(n + 1, { text: `secret number${n} winter` })),
    );
    await settle(deployment, one);
    await settle(deployment, other);
    expect(new Set(deployment.double.seen().map(({ namespace }) => namespace)).size).toBe(2);
    for (const { namespace = "", id } of deployment.double.seen()) {
      expect(namespace).toMatch(/^[0-9a-f]{64}$/);
      expect(`${namespace}${id}`).not.toMatch(/acme|umbrella|same/);
    }
    one.restarted();
    other.restarted();
    const queries = deployment.double.queries;
    const texts = async (memories: IndexedMemories, query: Parameters<IndexedMemories["found"]>[1] = {}) =>
      (await memories.found("secret winter", query)).map((n) => memories.entries.get(n));
    expect((await texts(one)).some((entry) => entry?.text.includes("secret"))).toBe(false);
    expect((await texts(other)).every((entry) => entry?.text.includes("secret"))).toBe(true);
    expect(deployment.double.queries).toBe(queries + 2);
    const scoped = await texts(one, { limit: 100, visible: { scope: "user", userId: "user-3" } });
    expect(scoped.length).toBe(100);
    expect(new Set(scoped.map((entry) => entry?.userId))).toEqual(new Set(["user-3"]));
    expect(deployment.double.queries, "too few of the nearest are the reader's").toBe(queries + 2);
  });

  test("MEMNEAREST-1 few memories are compared without a question", async () => {
    const deployment = new Deployment();
    const memories = deployment.agent("small");
    await fill(memories, 500);
    await settle(deployment, memories);
    await memories.found("coffee");
    expect([deployment.double.seen().length, deployment.double.queries]).toEqual([500, 0]);
  });

  test("MEMVECTORS-2 a vector is deleted and restored with its memory", async () => {
    const deployment = new Deployment();
    const memories = deployment.agent("keeper");
    await fill(memories, 50);
    await settle(deployment, memories);
    const entry = someMemory(7);
    memories.remove(7, 8);
    await memories.pumpAll();
    await memories.put(entry);
    await memories.pumpAll();
    await memories.clock.advance(10_000);
    expect(deployment.double.seen()).toHaveLength(48);
    await settle(deployment, memories);
    expect(deployment.double.seen()).toHaveLength(49);
    await memories.put(someMemory(9, { text: "…" }));
    await settle(deployment, memories);
    expect(deployment.double.seen(), "a text without a word has no vector").toHaveLength(48);
  });

  test("MEMVECTORS-3 MEMVECTORS-4 a store that is down delays vectors, and is reported; searches continue", async () => {
    const deployment = new Deployment();
    const memories = deployment.agent("keeper");
    const { double } = deployment;
    await fill(memories, 1_200);
    double.failure = new Error("down");
    await memories.pumpAll();
    const since = memories.clock.now();
    const error = { message: "The index failed: down", since };
    expect(memories.index.status().vectors).toMatchObject({ error });
    expect(memories.index.waitMs).toBe(15_000);
    expect(await memories.found("topic7")).not.toEqual([]);
    await memories.clock.advance(15_000);
    await memories.pumpAll();
    expect([memories.index.waitMs, memories.index.status().vectors]).toMatchObject([30_000, { error }]);
    double.failure = null;
    await settle(deployment, memories);
    expect(memories.index.status().vectors).toEqual({ pending: 0 });
    expect(double.seen()).toHaveLength(1_200);

    memories.restarted();
    double.failure = new Error("down again");
    const [first, second] = [await memories.search("topic7"), await memories.search("topic7")];
    expect([first.semantic, first.matches[0]?.n, second]).toEqual(["all", expect.any(Number), first]);
    expect(double.queries, "it is not asked again at once").toBe(1);
    double.failure = null;
    await memories.clock.advance(MINUTE);
    memories.restarted();
    expect((await memories.search("topic7")).matches[0]?.n).toBe(first.matches[0]?.n);
    expect(double.queries).toBe(2);
  });

  test("MEMVECTORS-1 a new embedder replaces the vectors of the old embedder", async () => {
    const deployment = new Deployment();
    const old = new WordEmbedder(100, true, "old");
    const memories = deployment.agent("keeper", "acme", old);
    await fill(memories, 1_100);
    await settle(deployment, memories);
    const before = deployment.double.seen().map(({ id }) => id);
    memories.former = old;
    memories.embedder = new WordEmbedder(100, true, "new");
    memories.restarted();
    await settle(deployment, memories);
    const after = deployment.double.seen().map(({ id }) => id);
    expect(after).toHaveLength(1_100);
    expect(after.filter((id) => before.includes(id))).toEqual([]);
    expect((await memories.search("topic7 winter")).semantic).toBe("all");
  });

  test("MEMVECTORS-6 with the agent all of its vectors go, in pieces, and no others", async () => {
    const deployment = new Deployment();
    const [one, other] = [deployment.agent("one"), deployment.agent("other")];
    await fill(one, 2_500);
    await fill(other, 10);
    await settle(deployment, one);
    await settle(deployment, other);
    expect(deployment.double.seen()).toHaveLength(2_510);
    const published = one.index.retainForRemoval();
    expect(published?.spaces).toEqual([{ number: 1, perRow: expect.any(Number) }]);
    const rows = retainedVectors(one.database, published ?? { spaces: [] });
    const owner = { tenant: "acme", id: "one" };
    let pieces = 0;
    let from: number | undefined = 0;
    while (from !== undefined) {
      from = await deleteVectors(deployment.vectors, owner, rows, from);
      pieces += 1;
    }
    await deployment.clock.advance(10_000);
    expect([pieces, deployment.double.seen().length]).toEqual([2, 10]);
  });
});

describe("work at a deployment", () => {
  test("MEMJOBS-5 a search of an idle agent starts the filling of a new embedder's index, once in a life", async () => {
    let started = 0;
    const memories = new IndexedMemories(new WordEmbedder(100, true), {
      awaken: () => {
        started += 1;
      },
    });
    await memories.put(someMemory(1));
    await memories.found("coffee");
    expect(started).toBe(0);
    memories.embedder = new WordEmbedder(50, true);
    memories.restarted();
    await memories.found("coffee");
    await memories.found("coffee");
    expect(started).toBe(1);
  });

  test("POOL-3 a bound that is no number of bytes is refused", () => {
    expect(() => new IndexPool(-1)).toThrow("memory.indexBytes");
    expect(new IndexPool(0).hold({ unload: () => undefined }, 1)).toBe(false);
  });
});
