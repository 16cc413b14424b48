/** The memory of an agent in Node that can be killed at any crossing of a port and wakes on the same database. */
import { Copies, type MemoryRecord, type MemoryRecords } from "../../src/memory/corpus/copies.ts";
import { Corpus } from "../../src/memory/corpus/corpus.ts";
import { Extractions } from "../../src/memory/corpus/extraction.ts";
import type { SearchIndex } from "../../src/memory/corpus/index/search-index.ts";
import type { Embedder } from "../../src/memory/embedders/embedder.ts";
import { MemoryObjectStore } from "../../src/ports/node/memory-object-store.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { seededIds } from "../../src/ports/node/seeded-ids.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { ObjectStore } from "../../src/ports/object-store.ts";
import type { VectorIndex } from "../../src/ports/vector-index.ts";
import type { MemoryReader, MemoryWriter } from "../../src/protocol/memory.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import { Crossings, crossKeyValue, crossSql, type Life } from "./crossings.ts";
import { indexOf } from "./indexed-memories.ts";
import { MemoryVectorIndex } from "./memory-vector-index.ts";

const AGENT = { id: "keeper", tenant: "acme" };
export const EDITOR: MemoryReader = {
  principal: { subject: "ada", tenant: AGENT.tenant, roles: ["author"] },
};
export const WRITER: MemoryWriter = { reader: EDITOR, author: { kind: "principal", subject: "ada" } };

/** Records as a database keeps them. */
class Records implements MemoryRecords {
  readonly rows = new Map<string, MemoryRecord>();

  async write(_: { agentId: string }, records: MemoryRecord[], gone: string[]): Promise<void> {
    for (const id of gone) this.rows.delete(id);
    for (const record of records) {
      const before = this.rows.get(record.id);
      if (before === undefined || record.version >= before.version) this.rows.set(record.id, record);
    }
  }
}

/** Stores of copies. */
type Store = "objects" | "records" | "vectors";

const DIMENSIONS = 50;

/** The behaviour of a store for the next requests. `late`: it does not answer in time, and takes effect when `settle` is called. */
export type Mood = "well" | "down" | "late";

export class MemoryWorld {
  readonly clock = new VirtualClock();
  readonly objects = new MemoryObjectStore();
  readonly records = new Records();
  readonly moods: Record<Store, Mood> = { objects: "well", records: "well", vectors: "well" };
  readonly vectors = new MemoryVectorIndex(DIMENSIONS);
  /** The objects that are there, by key. */
  readonly keys = new Set<string>();
  lives = 0;
  /** Called after each change of the corpus. */
  committed: () => void = () => undefined;
  corpus!: Corpus;
  index!: SearchIndex;
  copies!: Copies;
  extractions!: Extractions;
  readonly #database = new NodeSqlDatabase();
  readonly #keyValue = new NodeKeyValue(this.#database);
  readonly #ids = seededIds(5, this.clock);
  readonly #late: (() => Promise<void>)[] = [];

  /** `embedder`: searches go by vectors, too, which a store of vectors gets. */
  constructor(
    private readonly crossings: Crossings = new Crossings(),
    public embedder: Embedder | null = null,
  ) {
    this.wake();
  }

  /** Starts a life on the stored state. */
  wake(): void {
    this.lives += 1;
    const life = this.crossings.beginLife();
    const database = crossSql(this.#database, life);
    const keyValue = crossKeyValue(this.#keyValue, life);
    const objects = this.#objects(life);
    const index = indexOf({ database, keyValue }, () => this.corpus.rows, {
      clock: this.clock,
      embedder: async () => this.embedder,
      ...(this.embedder && { vectors: { index: () => this.#index(life), namespace: async () => "keeper" } }),
    });
    this.index = index;
    this.corpus = new Corpus({
      database,
      keyValue,
      clock: this.clock,
      ids: this.#ids,
      index,
      objects: () => objects,
      agent: () => AGENT,
      noted: () => life.cross("noted", async () => undefined),
      committed: () => this.committed(),
    });
    this.extractions = new Extractions(this.corpus);
    const records: MemoryRecords = {
      write: (...batch) => this.#answer(life, "records", () => this.records.write(...batch)),
    };
    this.copies = new Copies(
      this.corpus,
      () => records,
      async () => {
        while ((await index.pump()) > 0);
        return 0;
      },
    );
  }

  /** Requests were not answered that have not taken effect yet. */
  get isLate(): boolean {
    return this.#late.length > 0;
  }

  /** Runs a separate commit. */
  transaction<Result>(body: () => Result): Result {
    return this.corpus.ports.database.transaction(body);
  }

  /** The names of all tables. */
  tables(): string[] {
    return this.#database
      .all<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table'")
      .map(({ name }) => name);
  }

  /** Lets requests take effect that were not answered. */
  async settle(): Promise<void> {
    for (const effect of this.#late.splice(0)) await effect();
  }

  /** Brings the copies up to date, whatever keeps them behind for a while. */
  async repair(): Promise<void> {
    for (let attempt = 0; attempt < 20; attempt++) {
      try {
        await this.copies.bringUpToDate();
        if (!this.copies.isBehind() && !this.index.isBehind) return;
      } catch (error) {
        if (!(error instanceof DramatisError)) throw error;
      }
      await this.clock.advance(15_000);
    }
    throw new Error("The copies stay behind.");
  }

  /** Rows of a table, or of a shadow table of an index. */
  rows(table: string): Record<string, unknown>[] {
    return this.#database.all(`SELECT * FROM ${table}`);
  }

  #index(life: Life): VectorIndex {
    const { vectors } = this;
    return {
      query: (...query) => this.#answer(life, "vectors", () => vectors.query(...query)),
      upsert: (...batch) => this.#answer(life, "vectors", () => vectors.upsert(...batch)),
      delete: (...batch) => this.#answer(life, "vectors", () => vectors.delete(...batch)),
    };
  }

  #objects(life: Life): ObjectStore {
    const { objects, keys } = this;
    return {
      ...objects,
      head: (key) => objects.head(key),
      list: (...args) => objects.list(...args),
      get: (key, range) => this.#answer(life, "objects", () => objects.get(key, range)),
      put: (key, bytes, facts) =>
        this.#answer(life, "objects", async () => {
          await objects.put(key, bytes, facts);
          keys.add(key);
        }),
      delete: (key) =>
        this.#answer(life, "objects", async () => {
          await objects.delete(key);
          keys.delete(key);
        }),
    };
  }

  async #answer<Value>(life: Life, store: Store, effect: () => Promise<Value>): Promise<Value> {
    const mood = this.moods[store];
    if (mood === "well") return life.cross(store, effect);
    if (mood === "late") this.#late.push(async () => void (await effect()));
    throw new DramatisError("UNAVAILABLE", `The ${store} are ${mood}.`, { retriable: true });
  }
}
