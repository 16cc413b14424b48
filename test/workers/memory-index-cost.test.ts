/** Rows of the memory's index, counted on the storage of a Durable Object. */
import { runInDurableObject } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import { expect, test } from "vitest";
import { IndexPool } from "../../src/memory/corpus/index/pool.ts";
import { SearchIndex } from "../../src/memory/corpus/index/search-index.ts";
import type { IndexEntry } from "../../src/memory/corpus/memory-index.ts";
import { systemClock } from "../../src/ports/system.ts";
import { durableStorage } from "../../src/ports/workers/durable-storage.ts";
import { CostCounter } from "../support/counting.ts";
import { countingStorage } from "../support/counting-storage.ts";
import { WordEmbedder } from "../support/test-embedders.ts";

const MEMORIES = 3_000;

const memory = (n: number): IndexEntry => ({
  n,
  text: `word${n % 50} and word${n % 7}`,
  type: "fact",
  session: `s${n % 9}`,
  time: n,
  significance: 0.5,
  changedAt: n,
});

test.each([100, 768])(
  "MEMINDEX-2 MEMROWS-1 rows that writes, removals and searches read and write: %i dimensions",
  async (dimensions) => {
    const stub = exports.Agent.getByName(`index-cost-${dimensions}`);
    await runInDurableObject(stub, async (_, { storage }) => {
      const counter = new CostCounter();
      const { database, keyValue } = durableStorage(countingStorage(storage, counter));
      const embedder = new WordEmbedder(dimensions, true);
      const entries = new Map<number, IndexEntry>();
      const fresh = () =>
        new SearchIndex({
          ...{ database, keyValue, clock: systemClock, pool: new IndexPool() },
          embedder: async () => embedder,
          entriesAfter: (n, limit) => [...entries.values()].filter((one) => one.n > n).slice(0, limit),
        });
      const index = fresh();
      index.create();
      const put = async (...some: IndexEntry[]) => {
        const prepared = await index.prepare(some.map(({ text }) => text));
        for (const one of some) entries.set(one.n, one);
        database.transaction(() => index.put(some, prepared));
      };
      for (let first = 1; first <= MEMORIES; first += 100)
        await put(...Array.from({ length: 100 }, (_, at) => memory(first + at)));
      const indexRows = () =>
        storage.sql.exec("SELECT count(*) AS rows FROM memory_index").one().rows as number;
      /** Rows that the statements on the index's own table write, without rows of the full text. */
      const written: number[] = [];
      const rows = indexRows();
      counter.reset();
      const { n } = memory(MEMORIES + 1);
      const before = storage.sql.exec("SELECT key, data FROM memory_index").toArray();
      await put(memory(n));
      const old = new Map(before.map(({ key, data }) => [key, String(new Uint8Array(data as ArrayBuffer))]));
      for (const { key, data } of storage.sql.exec("SELECT key, data FROM memory_index"))
        if (old.get(key) !== String(new Uint8Array(data as ArrayBuffer))) written.push(Number(key));
      expect(written).toHaveLength(dimensions === 100 ? 1 : 2);
      expect(counter.cost.rowsWritten).toBeLessThanOrEqual(written.length + 10);
      expect(indexRows() - rows).toBeLessThanOrEqual(2);

      counter.reset();
      database.transaction(() => index.remove([n]));
      entries.delete(n);
      expect(counter.cost.rowsWritten).toBeLessThanOrEqual(written.length + 10);

      const load = async (of: SearchIndex) => {
        counter.reset();
        const query = { text: "word3", now: 1, limit: 5, minRelevance: 0, weights: {}, filter: {} };
        await of.search({ ...query, visible: "all" });
        return counter.cost.rowsRead;
      };
      const cold = fresh();
      const first = await load(cold);
      const again = await load(cold);
      // The full text reads the same rows both times; the index reads its rows once.
      expect(first - again).toBeGreaterThanOrEqual(indexRows());
      expect(first - again).toBeLessThanOrEqual(indexRows() + MEMORIES + 200);
    });
  },
);
