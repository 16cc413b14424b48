/** An index that compares words, until the one with full text and vectors takes its place. */
import type { SqlDatabase } from "../../ports/sql-database.ts";
import type { IndexEntry, IndexQuery, MemoryIndex } from "./memory-index.ts";

const CREATE = "CREATE TABLE IF NOT EXISTS memory_words (n INTEGER PRIMARY KEY, entry TEXT NOT NULL)";
const PUT = "INSERT OR REPLACE INTO memory_words (n, entry) VALUES (?, ?)";
const REMOVE = "DELETE FROM memory_words WHERE n = ?";
const ALL = "SELECT entry FROM memory_words";

export class PlainIndex implements MemoryIndex<null> {
  constructor(private readonly database: SqlDatabase) {}

  create(): void {
    this.database.run(CREATE);
  }

  async prepare(): Promise<null> {
    return null;
  }

  put(entries: readonly IndexEntry[]): void {
    for (const entry of entries) this.database.run(PUT, entry.n, JSON.stringify(entry));
  }

  remove(ns: readonly number[]): void {
    for (const n of ns) this.database.run(REMOVE, n);
  }

  async search(query: IndexQuery) {
    const words = wordsOf(query.text);
    const matches = this.database
      .all<{ entry: string }>(ALL)
      // SAFETY: only `put` writes the column.
      .map(({ entry }) => JSON.parse(entry) as IndexEntry)
      .filter((entry) => isWanted(entry, query))
      .map((entry) => {
        const found = wordsOf(entry.text);
        const terms = [...words].filter((word) => found.has(word));
        const relevance = words.size === 0 ? 0 : terms.length / words.size;
        return { n: entry.n, score: { total: relevance, relevance, parts: { lexical: relevance }, terms } };
      })
      .filter(({ score }) => score.relevance > 0 && score.relevance >= query.minRelevance)
      .sort((a, b) => b.score.total - a.score.total || b.n - a.n)
      .slice(0, query.limit);
    return { matches, semantic: "none" as const };
  }
}

function isWanted(entry: IndexEntry, { filter, visible, allowed }: IndexQuery): boolean {
  if (allowed !== undefined && !allowed.has(entry.n)) return false;
  if (visible !== "all" && visible.scope !== "agent") {
    const isUnowned = entry.userId === undefined && entry.conversationId === undefined;
    const isOwn =
      visible.scope === "user"
        ? entry.userId !== undefined && entry.userId === visible.userId
        : entry.conversationId !== undefined && entry.conversationId === visible.conversationId;
    if (!isUnowned && !isOwn) return false;
  }
  const { types, speaker, session, from, before, userId, conversationId } = filter;
  return (
    (types === undefined || types.includes(entry.type)) &&
    (speaker === undefined || entry.speaker === speaker) &&
    (session === undefined || entry.session === session) &&
    (from === undefined || entry.time >= from) &&
    (before === undefined || entry.time < before) &&
    (userId === undefined || entry.userId === userId) &&
    (conversationId === undefined || entry.conversationId === conversationId)
  );
}

function wordsOf(text: string): Set<string> {
  return new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []);
}
