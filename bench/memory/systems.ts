/** The compared systems on Node's SQLite: an agent's memory, by its public writes and searches, and plain FTS5. */
import { Corpus } from "../../src/memory/corpus/corpus.ts";
import { indexEntry } from "../../src/memory/corpus/corpus-rows.ts";
import { IndexPool } from "../../src/memory/corpus/index/pool.ts";
import { SearchIndex } from "../../src/memory/corpus/index/search-index.ts";
import type { Embedder } from "../../src/memory/embedders/embedder.ts";
import { queryTerms } from "../../src/memory/ranking/words.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { seededIds } from "../../src/ports/node/seeded-ids.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { MemoryReader } from "../../src/protocol/memory.ts";
import type { Item } from "./corpora.ts";

/** The results of a search: indexes of items, the best first, with their relevance. */
export type Search = (query: string, now: string) => Promise<{ index: number; relevance: number }[]>;

/** Stores the items and returns a search for ten of them. */
export type System = (items: readonly Item[]) => Promise<Search>;

const LIMIT = 10;
const BATCH = 100;
const READER: MemoryReader = { principal: { subject: "ada", tenant: "acme", roles: ["author"] } };

/** The memory of an agent. */
export function dramatis(embedder: Embedder | null): System {
  return async (items) => {
    const database = new NodeSqlDatabase();
    const keyValue = new NodeKeyValue(database);
    const clock = new VirtualClock();
    const index: SearchIndex = new SearchIndex({
      database,
      keyValue,
      clock,
      pool: new IndexPool(),
      embedder: async () => embedder,
      entriesAfter: (n, limit) => corpus.rows.memories.after(n, limit).map((memory) => indexEntry(memory)),
    });
    const corpus = new Corpus({
      database,
      keyValue,
      clock,
      ids: seededIds(1, clock),
      index,
      objects: () => null,
      agent: () => ({ id: "keeper", tenant: "acme" }),
      noted: async () => undefined,
      committed: () => undefined,
    });
    const indexes = new Map<string, number>();
    const writer = { reader: READER, author: { kind: "principal" as const, subject: "ada" } };
    for (let at = 0; at < items.length; at += BATCH) {
      // Distinct metadata keep memories with equal texts apart, like the rows of FTS5.
      const inputs = items
        .slice(at, at + BATCH)
        .map(({ input }, offset) => ({ ...input, metadata: { ...input.metadata, item: at + offset } }));
      const written = await corpus.write(writer, inputs);
      for (const [offset, { id }] of written.entries()) indexes.set(id, at + offset);
    }
    return async (query, now) => {
      const { matches } = await corpus.search(READER, { query, now, limit: LIMIT });
      return matches.map(({ memory, score }) => ({
        index: indexes.get(memory.id) ?? -1,
        relevance: score.relevance,
      }));
    };
  };
}

/** FTS5 with porter stemming and its own score. It gets the same terms of a query as the memory, without function words and repeated stems. */
export const fts5: System = async (items) => {
  const database = new NodeSqlDatabase();
  database.run('CREATE VIRTUAL TABLE plain USING fts5(text, tokenize = "porter unicode61")');
  database.transaction(() => {
    for (const [index, { input }] of items.entries()) {
      database.run("INSERT INTO plain (rowid, text) VALUES (?, ?)", index, input.content);
    }
  });
  return async (query) => {
    const match = queryTerms(query)
      .map(({ word }) => `"${word}"`)
      .join(" OR ");
    return database
      .all<{ index: number }>(
        'SELECT rowid AS "index" FROM plain WHERE plain MATCH ? ORDER BY rank LIMIT ?',
        match,
        LIMIT,
      )
      .map(({ index }) => ({ index, relevance: 0 }));
  };
};
