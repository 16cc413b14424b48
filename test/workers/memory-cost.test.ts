/**
 * Statements and rows of an agent's memory, counted at its ports on real Durable Object storage: the corpus, its index, and the marks of
 * copies that are behind. The wake-ups of jobs, and the SDK's own statements, are not in these numbers.
 *
 * MEMCOST-1  An operation on one memory costs as much, however many there are.
 * MEMCOST-2  A search reads rows of the full text for the memories that have its words, and no rows of others.
 *
 * MEMBATCH-1 shows in "write a hundred": each block of the index is written once.
 */
import { runInDurableObject } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { describe, expect, test } from "vitest";
import { D1Memories } from "../../src/d1/memories.ts";
import { Copies } from "../../src/memory/corpus/copies.ts";
import { Corpus } from "../../src/memory/corpus/corpus.ts";
import { indexEntry } from "../../src/memory/corpus/corpus-rows.ts";
import { eraseSources } from "../../src/memory/corpus/erasures.ts";
import { Extractions } from "../../src/memory/corpus/extraction.ts";
import { IndexPool } from "../../src/memory/corpus/index/pool.ts";
import { SearchIndex } from "../../src/memory/corpus/index/search-index.ts";
import { extractedSchema } from "../../src/memory/corpus/schemas.ts";
import { staticEmbedder } from "../../src/memory/embedders/loaded-embedder.ts";
import { WORD_TABLE_FILE } from "../../src/memory/embedders/word-table.ts";
import { systemClock, systemIds } from "../../src/ports/system.ts";
import { durableStorage } from "../../src/ports/workers/durable-storage.ts";
import { staticFile } from "../../src/ports/workers/static-files.ts";
import type { MemoryReader, MemoryWriter } from "../../src/protocol/memory.ts";
import type { MemoryInput } from "../../src/protocol/memory-requests.ts";
import { CostCounter } from "../support/counting.ts";
import { countingStorage } from "../support/counting-storage.ts";
import { ADA } from "./world.ts";

const embedder = staticEmbedder(() => staticFile(env.ASSETS, WORD_TABLE_FILE), systemClock);

const READER: MemoryReader = { principal: ADA };
const WRITER: MemoryWriter = { reader: READER, author: { kind: "principal", subject: ADA.subject } };
const PLACES = ["harbour", "library", "orchard", "tower", "market", "bridge", "garden", "station"];

/** A memory with eight words, one of them unique. */
function input(n: number): MemoryInput {
  const [place, other] = [PLACES[n % 8], PLACES[Math.floor(n / 8) % 8]];
  return { content: `The ${place} number${n} opens early and the ${other} closes late.` };
}

/** The memory of an agent over real storage, its ports counted. */
class CountedMemory {
  readonly #counter = new CostCounter();
  readonly copies: Copies;
  corpus: Corpus;
  index!: SearchIndex;
  #ids: string[] = [];

  constructor(private readonly storage: DurableObjectStorage) {
    this.corpus = this.#open();
    this.copies = new Copies(
      this.corpus,
      () => new D1Memories(env.DB),
      async () => 0,
    );
  }

  /** Opens the corpus as after a wake, with an empty memory. */
  reopen(): void {
    this.corpus = this.#open();
  }

  /** Writes memories in batches of a hundred. */
  async fill(count: number): Promise<void> {
    for (let from = 0; from < count; from += 100) {
      const inputs = Array.from({ length: Math.min(100, count - from) }, (_, n) => input(from + n));
      for (const { id } of await this.corpus.write(WRITER, inputs)) this.#ids.push(id);
    }
  }

  id(at: number): string {
    return this.#ids[at] ?? "";
  }

  async costOf(action: () => Promise<unknown>) {
    this.#counter.reset();
    await action();
    return this.#counter.cost;
  }

  /** The cost of deleting 700 idempotency keys that are weeks old, in pieces of 500. */
  async costOfPruning() {
    const old = JSON.stringify(Array.from({ length: 700 }, (_, n) => `old ${n}`));
    this.storage.sql.exec(
      "INSERT INTO memory_requests (day, key, hash, id) SELECT 1, value, '', '' FROM json_each(?)",
      old,
    );
    this.reopen();
    return this.costOf(async () => {
      for (let piece = 0; piece < 3; piece++) this.corpus.prune();
    });
  }

  #ports() {
    return durableStorage(countingStorage(this.storage, this.#counter));
  }

  #open(): Corpus {
    const ports = { ...this.#ports(), clock: systemClock };
    this.index = new SearchIndex({
      ...ports,
      pool: new IndexPool(),
      embedder: () => embedder(),
      entriesAfter: (n, limit) => corpus.rows.memories.after(n, limit).map((memory) => indexEntry(memory)),
    });
    const corpus: Corpus = new Corpus({
      ...ports,
      ids: systemIds,
      index: this.index,
      objects: () => null,
      agent: () => ({ id: "assistant", tenant: ADA.tenant }),
      noted: async () => undefined,
      committed: () => undefined,
    });
    return corpus;
  }
}

/** Runs `body` on the memory of a new actor with so many memories. */
async function withMemories<Value>(
  count: number,
  body: (memory: CountedMemory) => Promise<Value>,
): Promise<Value> {
  return runInDurableObject(
    exports.PortHost.getByName(crypto.randomUUID()),
    async (_instance, { storage }) => {
      const memory = new CountedMemory(storage);
      await memory.fill(count);
      await memory.copies.bringUpToDate();
      return body(memory);
    },
  );
}

const QUERY = { query: "Is the harbour number17 open?" };

/** The cost of each operation in an actor with so many memories. */
function costs(count: number) {
  return withMemories(count, async (memory) => {
    const { corpus, copies } = memory;
    const costOf = (action: () => Promise<unknown>) => memory.costOf(action);
    const hundred = Array.from({ length: 100 }, (_, n) => input(6_000 + n));
    return {
      write: await costOf(() => corpus.write(WRITER, [input(5_000)])),
      copied: await costOf(() => copies.bringUpToDate()),
      "write a hundred": await costOf(() => corpus.write(WRITER, hundred)),
      "copied a hundred": await costOf(() => copies.bringUpToDate()),
      "nothing to copy": await costOf(() => copies.bringUpToDate()),
      "write with keys": await costOf(() =>
        corpus.write(WRITER, [{ ...input(7_000), key: "a", idempotencyKey: "b" }]),
      ),
      update: await costOf(() => corpus.update(WRITER, memory.id(3), { content: "It is closed." })),
      read: await costOf(() => corpus.read(READER, memory.id(5))),
      list: await costOf(() => corpus.list(READER, { limit: 20, order: "desc" })),
      why: await costOf(() => corpus.why(READER, memory.id(5))),
      delete: await costOf(() => corpus.delete(WRITER, memory.id(7))),
      archive: await costOf(() => corpus.archive(WRITER, memory.id(8))),
      status: await costOf(async () => [corpus.status(), memory.index.status()]),
      prune: await memory.costOfPruning(),
    };
  });
}

describe("MEMCOST-1 MEMBATCH-1 MEMBATCH-2 MEMPRUNE-1 an operation costs as much among a thousand memories as among fifty", () => {
  test.each([50, 1_000])("exact numbers, with %i memories", async (count) => {
    expect(await costs(count)).toEqual({
      write: { statements: 13, rowsWritten: 7, rowsRead: 8 },
      copied: { statements: 7, rowsWritten: 1, rowsRead: 8 },
      "write a hundred": { statements: 809, rowsWritten: 504, rowsRead: 507 },
      "copied a hundred": { statements: 306, rowsWritten: 100, rowsRead: 701 },
      "nothing to copy": { statements: 2, rowsWritten: 0, rowsRead: 1 },
      "write with keys": { statements: 18, rowsWritten: 10, rowsRead: 17 },
      update: { statements: 13, rowsWritten: 6, rowsRead: 8 },
      read: { statements: 1, rowsWritten: 0, rowsRead: 1 },
      list: { statements: 2, rowsWritten: 0, rowsRead: 23 },
      why: { statements: 4, rowsWritten: 0, rowsRead: 4 },
      delete: { statements: 17, rowsWritten: 8, rowsRead: 13 },
      archive: { statements: 10, rowsWritten: 7, rowsRead: 7 },
      status: { statements: 4, rowsWritten: 0, rowsRead: 6 },
      prune: { statements: 5, rowsWritten: 700, rowsRead: 3537 },
    });
  });
});

test("MEMCOST-2 a search among a thousand memories reads the index of its words, including a word in every text, and writes no row", async () => {
  await withMemories(1_000, async (memory) => {
    const search = () => memory.costOf(() => memory.corpus.search(READER, QUERY));
    const [first, second] = [await search(), await search()];
    const empty = await memory.costOf(() => memory.corpus.search(READER, { query: "zzz" }));
    memory.reopen();
    expect({ first, second, empty, woken: await search() }).toEqual({
      first: { statements: 17, rowsWritten: 0, rowsRead: 3763 },
      second: { statements: 15, rowsWritten: 0, rowsRead: 3746 },
      empty: { statements: 6, rowsWritten: 0, rowsRead: 3 },
      woken: { statements: 18, rowsWritten: 0, rowsRead: 3791 },
    });
  });
});

test("MEMCOST-1 a write under a key costs as much, however many users have the key", async () => {
  const of = (count: number) =>
    withMemories(0, async (memory) => {
      const mood = (user: number, content = "calm") => ({
        content,
        key: "mood",
        subject: { userId: `user-${user}` },
      });
      for (let from = 0; from < count; from += 100)
        await memory.corpus.write(
          WRITER,
          Array.from({ length: 100 }, (_, user) => mood(from + user)),
        );
      return {
        update: await memory.costOf(() => memory.corpus.write(WRITER, [mood(count - 1, "merry")])),
        first: await memory.costOf(() => memory.corpus.write(WRITER, [mood(count)])),
      };
    });
  expect(await of(1_000)).toEqual(await of(100));
});

test("MEMBATCH-1 an extraction, and an erasure, write each row of the index once", async () => {
  const costs = await withMemories(0, async (memory) => {
    const { corpus } = memory;
    const { database } = corpus.ports;
    const extractions = new Extractions(corpus);
    const body = extractedSchema.parse({
      ...{ operationId: "op_1", scope: "user", subject: { userId: "ada" }, used: [] },
      source: { conversationId: "conv_1", turnId: "turn_1" },
      time: "2025-06-01T10:00:00.000Z",
      operations: Array.from({ length: 100 }, (_, n) => ({ op: "write", ...input(n) })),
    });
    const prepared = await extractions.prepare(body);
    return {
      extraction: await memory.costOf(async () =>
        database.transaction(() => void extractions.apply(body, prepared)),
      ),
      erasure: await memory.costOf(async () =>
        database.transaction(() => void eraseSources(corpus, { conversationId: "conv_1" })),
      ),
    };
  });
  expect(costs).toEqual({
    extraction: { statements: 1039, rowsWritten: 743, rowsRead: 647 },
    erasure: { statements: 1712, rowsWritten: 804, rowsRead: 2331 },
  });
});
