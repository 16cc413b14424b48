/**
 * Memories on Node's SQLite that are ranked without an actor: full text, columns, and vectors if there is an embedder.
 */
import { FullText } from "../../src/memory/corpus/full-text.ts";
import { analyzeQuery } from "../../src/memory/ranking/analyze-query.ts";
import { type ColumnEntry, MemoryColumns } from "../../src/memory/ranking/columns.ts";
import { describeText } from "../../src/memory/ranking/describe-text.ts";
import { type Ranked, rank } from "../../src/memory/ranking/rank.ts";
import type { RankInput } from "../../src/memory/ranking/rank-input.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";

/** A memory to rank. Its key is its index unless it names one. */
export interface TestMemory extends Partial<ColumnEntry> {
  text: string;
}

export interface RankedMemories {
  database: NodeSqlDatabase;
  fullText: FullText;
  columns: MemoryColumns;
  /** Returns the results of a query. */
  search(query: string, options?: Partial<RankInput>): Ranked[];
  /** Returns the texts of the results. */
  texts(query: string, options?: Partial<RankInput>): string[];
}

/** 12 June 2024, noon. */
export const NOW = Date.UTC(2024, 5, 12, 12);

/** Stores the memories. */
export function rankedMemories(memories: readonly (string | TestMemory)[]): RankedMemories {
  const database = new NodeSqlDatabase();
  const fullText = new FullText(database);
  const columns = new MemoryColumns();
  const texts = new Map<number, string>();
  fullText.create();
  database.transaction(() => {
    for (const [index, memory] of memories.entries()) {
      const { text, ...fields } = typeof memory === "string" ? { text: memory } : memory;
      const entry = { n: index, type: "fact", time: NOW, changedAt: NOW, significance: 0.5, ...fields };
      texts.set(entry.n, text);
      fullText.put(entry.n, text);
      columns.put({ ...entry, ...describeText(text) });
    }
  });
  const search = (text: string, options: Partial<RankInput> = {}) => {
    const query = analyzeQuery(text, NOW, columns.speakers);
    return rank({ columns, query, lexical: fullText.search(query.terms), now: NOW, limit: 10, ...options });
  };
  return {
    database,
    fullText,
    columns,
    search,
    texts: (query, options) => search(query, options).map(({ n }) => texts.get(n) ?? ""),
  };
}
