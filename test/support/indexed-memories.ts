/** An index of memories on Node's SQLite, with rows of memories in a map. */

import type { Corpus } from "../../src/memory/corpus/corpus.ts";
import { indexEntry } from "../../src/memory/corpus/corpus-rows.ts";
import { IndexPool } from "../../src/memory/corpus/index/pool.ts";
import { SearchIndex, type SearchIndexPorts } from "../../src/memory/corpus/index/search-index.ts";
import type { IndexEntry, IndexQuery } from "../../src/memory/corpus/memory-index.ts";
import type { Embedder } from "../../src/memory/embedders/embedder.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import { systemClock } from "../../src/ports/system.ts";
import { MortalClock } from "../simulation/clocks.ts";

export const NOW = Date.UTC(2026, 10, 1);

export class IndexedMemories {
  readonly database = new NodeSqlDatabase();
  readonly keyValue = new NodeKeyValue(this.database);
  readonly clock = new VirtualClock(NOW);
  readonly entries = new Map<number, IndexEntry>();
  embedder: Embedder | null;
  former: Embedder | null = null;
  index: SearchIndex;
  #options: Partial<SearchIndexPorts>;
  #life = new MortalClock(this.clock);

  constructor(embedder: Embedder | null, options: Partial<SearchIndexPorts> = {}) {
    this.embedder = embedder;
    this.#options = options;
    this.index = this.restarted();
    this.index.create();
  }

  /** The ports that differ from the default. */
  get ports(): Partial<SearchIndexPorts> {
    return this.#options;
  }

  /** Returns an index with empty memory, as after a restart of the actor. No timer of the life before fires. */
  restarted(options: Partial<SearchIndexPorts> = {}): SearchIndex {
    this.#life.die();
    this.#life = new MortalClock(this.clock);
    this.#options = { ...this.#options, ...options };
    this.index = new SearchIndex({
      database: this.database,
      keyValue: this.keyValue,
      clock: this.#life,
      pool: new IndexPool(),
      embedder: async () => this.embedder,
      formerEmbedder: async () => this.former,
      entriesAfter: (n, limit) =>
        [...this.entries.values()]
          .filter((entry) => entry.n > n)
          .sort((one, other) => one.n - other.n)
          .slice(0, limit),
      ...this.#options,
    });
    return this.index;
  }

  async put(...entries: IndexEntry[]): Promise<void> {
    const prepared = await this.index.prepare(entries.map(({ text }) => text));
    this.database.transaction(() => {
      for (const entry of entries) this.entries.set(entry.n, entry);
      this.index.put(entries, prepared);
    });
  }

  remove(...ns: number[]): void {
    this.database.transaction(() => {
      for (const n of ns) this.entries.delete(n);
      this.index.remove(ns);
    });
  }

  /** Returns the keys of the matches of a search. */
  async found(text: string, query: Partial<IndexQuery> = {}): Promise<number[]> {
    return (await this.search(text, query)).matches.map(({ n }) => n);
  }

  search(text: string, query: Partial<IndexQuery> = {}) {
    return this.index.search({
      text,
      now: NOW,
      limit: 10,
      minRelevance: 0,
      weights: {},
      filter: {},
      visible: "all",
      ...query,
    });
  }

  async pumpAll(): Promise<void> {
    while ((await this.index.pump()) > 0);
  }
}

const WORDS = "garden coffee train river music winter letter doctor market window summer bridge".split(" ");

/** Returns a memory of five words that depend on its key, and of a rare one. */
export function someMemory(n: number, changes: Partial<IndexEntry> = {}): IndexEntry {
  const words = Array.from(
    { length: 5 },
    (_, at) => WORDS[(n * (at + 1) * 7 + (n >> (at + 1))) % WORDS.length],
  );
  return {
    n,
    text: `${words.join(" ")} topic${n % 97}`,
    type: n % 3 === 0 ? "event" : "fact",
    userId: `user-${n % 5}`,
    conversationId: `conversation-${n % 50}`,
    speaker: n % 2 === 0 ? "Alice" : "Bob",
    session: `session-${Math.floor(n / 20)}`,
    sequence: n % 20,
    time: NOW - n * 60_000,
    significance: (n % 10) / 10,
    changedAt: NOW,
    ...changes,
  };
}

/** Returns an index for the corpus of `rows`; without vectors, unless other ports supply them. */
export function indexOf(
  { database, keyValue }: Pick<SearchIndexPorts, "database" | "keyValue">,
  rows: () => Corpus["rows"],
  ports: Partial<SearchIndexPorts> = {},
): SearchIndex {
  return new SearchIndex({
    database,
    keyValue,
    clock: systemClock,
    pool: new IndexPool(),
    embedder: async () => null,
    entriesAfter: (n, limit) =>
      rows()
        .memories.after(n, limit)
        .map((memory) => indexEntry(memory, rows().memories.text(memory.n)?.text)),
    ...ports,
  });
}
