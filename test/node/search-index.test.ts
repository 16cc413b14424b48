/** The index of memories: storage, search, and rebuild. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  decodeFacts,
  encodeFacts,
  UnreadableBlock,
  VectorBlock,
} from "../../src/memory/corpus/index/blocks.ts";
import { factsOf, quantize } from "../../src/memory/corpus/index/entry.ts";
import { IndexPool } from "../../src/memory/corpus/index/pool.ts";
import { activeSpace, filled, NO_SPACES, unreadable, wanting } from "../../src/memory/corpus/index/spaces.ts";
import { CostCounter, countingDatabase } from "../support/counting.ts";
import { IndexedMemories, NOW, someMemory } from "../support/indexed-memories.ts";
import { WordEmbedder, wordVector } from "../support/test-embedders.ts";

describe("blocks", () => {
  const name = fc.string({ unit: "grapheme", maxLength: 12 });
  const members = {
    type: fc.string(),
    userId: name,
    conversationId: name,
    speaker: name,
    session: name,
    sequence: fc.integer(),
    time: fc.integer(),
    changedAt: fc.integer(),
    significance: fc.double({ min: 0, max: 1, noNaN: true }),
    text: fc.string(),
  };
  const entry = fc.record(members, {
    requiredKeys: ["type", "time", "changedAt", "significance", "text"],
  });

  test("MEMBLOCK-1 a block is read as written, with holes", () => {
    fc.assert(
      fc.property(fc.array(fc.option(entry, { nil: undefined }), { maxLength: 40 }), (entries) => {
        const block = entries.map((one, place) => {
          return one === undefined ? undefined : factsOf({ ...one, n: 64 + place });
        });
        expect([...decodeFacts(encodeFacts(block), 64)]).toEqual(block);
      }),
    );
  });

  test("MEMBLOCK-1 a vector is read back; a removed vector leaves no bytes", () => {
    const vector = quantize(wordVector("some words", 10) ?? new Float32Array());
    const block = VectorBlock.empty(10).withPlaces(3);
    block.put(2, 77, vector);
    const read = VectorBlock.decode(block.encode());
    expect([read.has(2, 77), read.has(2, 78), read.has(1, 0)]).toEqual([true, false, false]);
    expect([...read.values.subarray(20)]).toEqual([...vector.values]);
    read.remove(2);
    expect(read.isEmpty && read.values.every((value) => value === 0)).toBe(true);
  });

  test("MEMBLOCK-2 other forms and cut blocks are refused", () => {
    const bytes = encodeFacts([factsOf(someMemory(0))]);
    expect(() => decodeFacts(bytes.subarray(0, bytes.length - 1), 0)).toThrow(UnreadableBlock);
    expect(() => decodeFacts(bytes.subarray(0, 5), 0)).toThrow(UnreadableBlock);
    const other = bytes.slice();
    other[0] = 99;
    expect(() => decodeFacts(other, 0)).toThrow(UnreadableBlock);
    expect(() => VectorBlock.decode(other)).toThrow(UnreadableBlock);
  });
});

describe("the index", () => {
  test("MEMINDEX-1 stored texts are found; replaced or removed texts are not", async () => {
    const memories = new IndexedMemories(new WordEmbedder(100, true));
    await memories.put(someMemory(1, { text: "Alice likes tea" }), someMemory(2, { text: "Bob fears dogs" }));
    expect((await memories.found("who fears dogs"))[0]).toBe(2);
    await memories.put(someMemory(2, { text: "Bob fears cats" }));
    expect(
      (await memories.search("dogs")).matches.filter(({ score }) => score.terms.includes("dogs")),
    ).toEqual([]);
    memories.remove(2);
    expect(await memories.found("cats")).not.toContain(2);
    memories.restarted();
    expect(await memories.found("cats")).not.toContain(2);
    expect(await memories.found("tea")).toContain(1);
  });

  test.each([100, 768])(
    "MEMINDEX-1 after a rollback the index equals the rows: %i dimensions",
    async (dimensions) => {
      const memories = new IndexedMemories(new WordEmbedder(dimensions, true));
      await memories.put(someMemory(1, { text: "old words about tea" }));
      const before = await memories.search("tea coffee");
      const prepared = await memories.index.prepare(["new words about coffee"]);
      expect(() =>
        memories.database.transaction(() => {
          memories.index.put(
            [
              someMemory(1, { text: "new words about coffee" }),
              someMemory(2, { text: "new words about coffee" }),
            ],
            prepared,
          );
          memories.index.remove([1]);
          throw new Error("rolled back");
        }),
      ).toThrow("rolled back");
      expect(await memories.search("tea coffee")).toEqual(before);
      memories.restarted();
      expect(await memories.search("tea coffee")).toEqual(before);
    },
  );

  test("MEMINDEX-3 without an embedder memories are found by their words", async () => {
    const memories = new IndexedMemories(null);
    await memories.put(someMemory(1, { text: "tea in the garden" }), someMemory(2, { text: "nothing" }));
    const { semantic, matches } = await memories.search("garden");
    expect([semantic, matches[0]?.n]).toEqual(["none", 1]);
  });

  test("MEMINDEX-4 rows that cannot be read are built again from the memories", async () => {
    const memories = new IndexedMemories(new WordEmbedder(100, true));
    await memories.put(...Array.from({ length: 600 }, (_, at) => someMemory(at + 1)));
    const before = await memories.search("topic5 coffee");
    memories.database.run("UPDATE memory_index SET data = substr(data, 1, 100)");
    memories.restarted();
    expect(await memories.search("topic5 coffee")).toEqual(before);
    memories.keyValue.delete("memory:index");
    memories.database.run("DELETE FROM memory_index");
    memories.restarted();
    expect(await memories.search("topic5 coffee")).toEqual(before);
  });

  test("searches see no memories of others, and keep to the filter", async () => {
    const memories = new IndexedMemories(new WordEmbedder(100, true));
    await memories.put(...Array.from({ length: 300 }, (_, at) => someMemory(at + 1)));
    const {
      userId: _,
      conversationId: __,
      ...unowned
    } = someMemory(301, { text: "coffee without a subject" });
    await memories.put(unowned);
    const of = async (query: Parameters<IndexedMemories["found"]>[1]) =>
      (await memories.found("coffee", { limit: 100, ...query })).map((n) => memories.entries.get(n));
    const seen = await of({ visible: { scope: "user", userId: "user-3" } });
    expect(seen.length).toBeGreaterThan(5);
    expect(new Set(seen.map((one) => one?.userId))).toEqual(new Set(["user-3", undefined]));
    const own = await of({ visible: { scope: "conversation", conversationId: "conversation-7" } });
    expect(new Set(own.map((one) => one?.conversationId))).toEqual(new Set(["conversation-7", undefined]));
    expect(new Set((await of({ visible: { scope: "user" } })).map((one) => one?.n))).toEqual(new Set([301]));
    const filtered = await of({ filter: { types: ["event"], speaker: "Bob", before: NOW - 100 * 60_000 } });
    expect(filtered.length).toBeGreaterThan(0);
    for (const one of filtered) {
      expect(one).toMatchObject({ type: "event", speaker: "Bob" });
      expect(one?.time).toBeLessThan(NOW - 100 * 60_000);
    }
    expect(await memories.found("coffee", { allowed: new Set([7]), limit: 5 })).toEqual([7]);
    expect(await memories.found("coffee", { filter: { speaker: "Nobody" } })).toEqual([]);
  });
});

describe("rows of the index", () => {
  const rows = ({ database }: IndexedMemories) =>
    new Map(
      database
        .all<{ key: number; data: string }>("SELECT key, hex(data) AS data FROM memory_index")
        .map(({ key, data }) => [key, data]),
    );

  /** Returns how many rows a change has written. */
  async function written(memories: IndexedMemories, change: () => unknown): Promise<number> {
    const before = rows(memories);
    await change();
    return [...rows(memories)].filter(([key, data]) => before.get(key) !== data).length;
  }

  test("MEMINDEX-2 MEMROWS-1 a write, and a removal, of a memory with a short vector write one row", async () => {
    const memories = new IndexedMemories(new WordEmbedder(100, true));
    await memories.put(...Array.from({ length: 1_000 }, (_, at) => someMemory(at + 1)));
    expect(await written(memories, () => memories.put(someMemory(1_001)))).toBe(1);
    expect(await written(memories, () => memories.put(someMemory(7, { text: "a new text" })))).toBe(1);
    expect(await written(memories, () => memories.remove(500))).toBe(1);
  });

  test("MEMROWS-1 a long vector has a separate row, and a change of facts leaves it unchanged", async () => {
    const memories = new IndexedMemories(new WordEmbedder(768, true));
    await memories.put(...Array.from({ length: 100 }, (_, at) => someMemory(at + 1)));
    expect(await written(memories, () => memories.put(someMemory(101)))).toBe(2);
    expect(await written(memories, () => memories.put(someMemory(7, { significance: 1 })))).toBe(1);
  });
});

describe("the spaces of an index", () => {
  const words = { id: "words", dimensions: 100 };

  test("MEMSPACE-2 without a space that can be read, one with all memories answers before it has all vectors", () => {
    const old = filled(wanting(NO_SPACES, words, false), 1, null, true);
    expect(activeSpace(old)?.number).toBe(1);
    const next = wanting(unreadable(old, 1), words, false);
    expect(activeSpace(next)).toBeUndefined();
    expect(activeSpace(filled(next, 2, 40, false))).toBeUndefined();
    expect(activeSpace(filled(next, 2, null, false))?.number).toBe(2);
  });

  test("MEMSPACE-1 a new space answers only when it has all memories and all vectors", () => {
    const old = filled(wanting(NO_SPACES, words, false), 1, null, true);
    const both = wanting(old, { id: "other", dimensions: 100 }, false);
    expect(activeSpace(filled(both, 2, null, false))?.number).toBe(1);
    expect(filled(both, 2, null, true)).toMatchObject({ active: 2, dropped: [1] });
  });
});

describe("the pool", () => {
  test("POOL-1 many indexes stay within the bound together, and answer as if each were alone", async () => {
    const pool = new IndexPool(400_000);
    const many = Array.from({ length: 12 }, () => new IndexedMemories(new WordEmbedder(100, true), { pool }));
    for (const [of, memories] of many.entries())
      await memories.put(...Array.from({ length: 400 }, (_, at) => someMemory(at + 1 + of)));
    for (let round = 0; round < 2; round++) {
      for (const memories of many) {
        const shared = await memories.search("topic7 winter");
        expect(pool.bytes).toBeGreaterThan(0);
        expect(pool.bytes).toBeLessThanOrEqual(400_000);
        memories.restarted({ pool: new IndexPool() });
        expect(await memories.search("topic7 winter")).toEqual(shared);
        memories.restarted({ pool });
      }
    }
  });

  test.each([
    [100, 1_000],
    [768, 1_000],
    [768, 200_000],
  ])(
    "POOL-2 MEMINDEX-5 an index beyond the bound is read from its rows, with equal results: %i dimensions",
    async (dimensions, bound) => {
      const memories = new IndexedMemories(new WordEmbedder(dimensions, true));
      await memories.put(...Array.from({ length: 1_000 }, (_, at) => someMemory(at + 1)));
      const whole = await memories.search("topic7 winter letter", { limit: 50 });
      const pool = new IndexPool(bound);
      memories.restarted({ pool });
      expect(await memories.search("topic7 winter letter", { limit: 50 })).toEqual(whole);
      expect(pool.bytes).toBeLessThanOrEqual(bound);
      await memories.put(someMemory(1_001, { text: "topic7 winter letter" }));
      expect((await memories.found("topic7 winter letter"))[0]).toBe(1_001);
    },
  );
});

describe("switching embedders", () => {
  test("MEMSPACE-1 MEMJOBS-1 10 000 memories, 100 to 768 dimensions, killed midway: the old index answers until the new index is complete", async () => {
    const old = new WordEmbedder(100, true);
    const next = new WordEmbedder(768, false);
    const memories = new IndexedMemories(old);
    for (let at = 1; at <= 10_000; at += 100)
      await memories.put(...Array.from({ length: 100 }, (_, of) => someMemory(at + of)));
    const before = await memories.search("topic7 winter");
    expect(before.semantic).toBe("all");
    expect(memories.index.status().embedder).toEqual({ id: "words-100", dimensions: 100 });

    memories.embedder = next;
    memories.former = old;
    for (let part = 0; part < 80; part++) expect(await memories.index.pump()).toBeGreaterThan(0);
    expect(next.embedded).toBeGreaterThan(1_000);
    memories.restarted();
    expect(await memories.search("topic7 winter")).toEqual(before);
    await memories.put(someMemory(10_001, { text: "a zebra in the attic" }));
    memories.remove(5);
    expect((await memories.found("zebra"))[0]).toBe(10_001);
    expect(memories.index.status()).toMatchObject({ embedder: { id: "words-100" } });

    await memories.pumpAll();
    expect(next.embedded).toBe(10_001);
    expect(memories.index.status()).toEqual({
      embedder: { id: "words-768", dimensions: 768 },
      pending: { memories: 0, isFilling: false },
    });
    memories.former = null;
    const after = await memories.search("topic7 winter");
    expect(after.semantic).toBe("all");
    memories.restarted();
    expect(await memories.search("topic7 winter")).toEqual(after);
    expect((await memories.found("zebra"))[0]).toBe(10_001);
    expect(await memories.found("topic5", { limit: 100 })).not.toContain(5);
  });

  test("MEMSPACE-2 an index that is built again for a remote embedder answers before it has vectors", async () => {
    const remote = new WordEmbedder(768, false);
    const memories = new IndexedMemories(remote);
    await memories.put(...Array.from({ length: 300 }, (_, at) => someMemory(at + 1)));
    await memories.pumpAll();
    memories.database.run("DELETE FROM memory_index");
    memories.keyValue.delete("memory:index");
    memories.restarted();
    const rebuilt = await memories.search("topic7", { minRelevance: 0.5 });
    expect([rebuilt.semantic, rebuilt.matches.map(({ n }) => n % 97)]).toEqual(["some", [7, 7, 7, 7]]);
    await memories.pumpAll();
    expect((await memories.search("topic7")).semantic).toBe("all");
  });

  test("MEMJOBS-4 the statements of a remote embedder's vectors grow with the memories, and no faster", async () => {
    const costOf = async (count: number) => {
      const memories = new IndexedMemories(new WordEmbedder(768, false));
      await memories.put(...Array.from({ length: count }, (_, at) => someMemory(at + 1)));
      const counter = new CostCounter();
      const { db } = countingDatabase(memories.database, memories.keyValue, counter);
      let read = 0;
      memories.restarted({
        database: { ...db, isInTransaction: () => memories.database.isInTransaction() },
        entriesAfter: (n, limit) => {
          const found = [...memories.entries.values()].filter((entry) => entry.n > n).slice(0, limit);
          read += found.length;
          return found;
        },
      });
      await memories.pumpAll();
      expect(memories.index.status().pending.memories).toBe(0);
      return { statements: counter.cost.statements, read };
    };
    const [some, many] = [await costOf(256), await costOf(2_048)];
    expect(many.statements).toBeLessThan(some.statements * 10);
    expect(many.read).toBeLessThan(some.read * 10);
  });

  test("MEMINDEX-6 a silent model delays one search by a second, and words answer during that time", async () => {
    const remote = new WordEmbedder(768, false);
    const memories = new IndexedMemories(remote);
    await memories.put(...Array.from({ length: 20 }, (_, at) => someMemory(at + 1)));
    await memories.pumpAll();
    let asked = 0;
    const { embedQuery } = remote;
    remote.embedQuery = () => {
      asked += 1;
      return new Promise<never>(() => undefined);
    };
    const first = memories.search("topic7");
    await expect.poll(() => asked).toBe(1);
    await memories.clock.advance(1_000);
    for (const { semantic, matches } of [await first, await memories.search("topic7")])
      expect([semantic, matches[0]?.n]).toEqual(["none", 7]);
    expect(asked).toBe(1);
    remote.embedQuery = embedQuery;
    await memories.clock.advance(10_000);
    expect((await memories.search("topic7")).semantic).toBe("all");
  });

  test("MEMJOBS-2 MEMJOBS-3 a remote embedder that fails delays vectors only, and is reported", async () => {
    const remote = new WordEmbedder(768, false);
    const memories = new IndexedMemories(remote);
    await memories.put(...Array.from({ length: 70 }, (_, at) => someMemory(at + 1)));
    const search = async () => {
      const { semantic, matches } = await memories.search("topic7");
      return [semantic, matches[0]?.n];
    };
    expect(await search()).toEqual(["some", 7]);
    remote.failure = new Error("The service is down.");
    expect(await memories.index.pump()).toBeGreaterThan(0);
    expect(memories.index.status()).toMatchObject({ error: { message: "The service is down." } });
    const { requests } = remote;
    await memories.index.pump();
    expect(remote.requests).toBe(requests);
    expect(await search()).toEqual(["none", 7]);
    remote.failure = null;
    await memories.clock.advance(60_000);
    await memories.pumpAll();
    expect(memories.index.status().error).toBeUndefined();
    expect(remote.embedded).toBe(70);
    expect(await search()).toEqual(["all", 7]);
  });
});
