/** SQL statements that read an agent's memory in pages for its export. */
import type { SqlDatabase } from "../../ports/sql-database.ts";
import type { MemoryLogEntry } from "../../protocol/memory-schemas.ts";
import { type MemoryStore, type SourceRow, type StatedSource, toSource } from "./memory-store.ts";

const NEXT = "SELECT n FROM memories WHERE n > ? AND hidden = 0 ORDER BY n LIMIT 1";
const SOURCES = `SELECT conversation_id, turn_id, entries, stated_version FROM memory_sources
  WHERE n = ?1 AND (conversation_id, turn_id) > (?2, ?3) ORDER BY conversation_id, turn_id LIMIT ?4`;
const PARTS = "SELECT part, part_id FROM memory_parts WHERE n = ? AND part > ? ORDER BY part LIMIT ?";

const PAGE = 50;
/** Maximum length of the JSON of a line's lists, unless a single member is longer. It keeps each line within the limits of an import. */
const MAX_LISTS = 64 * 1024;

export interface Lists {
  sources: StatedSource[];
  parts: string[];
  log: MemoryLogEntry[];
}

export class BackupRows {
  constructor(
    private readonly database: SqlDatabase,
    private readonly memories: MemoryStore,
  ) {}

  /** Returns the number of the memory after `n`, if any. */
  next(n: number): number | undefined {
    return this.database.all<{ n: number }>(NEXT, n)[0]?.n;
  }

  /** Yields the sources, the parts and the log of a memory in bounded pieces, at least once. */
  *lists(n: number): Generator<Lists> {
    let [lists, length] = [none(), 0];
    for (const item of this.#items(n)) {
      const size = JSON.stringify(item).length;
      if (length > 0 && length + size > MAX_LISTS) {
        yield lists;
        [lists, length] = [none(), 0];
      }
      length += size;
      if (typeof item === "string") lists.parts.push(item);
      else if ("change" in item) lists.log.push(item);
      else lists.sources.push(item);
    }
    yield lists;
  }

  *#items(n: number): Generator<StatedSource | string | MemoryLogEntry> {
    for (let [conversation, turn] = ["", ""]; ; ) {
      const rows = this.database.all<SourceRow>(SOURCES, n, conversation, turn, PAGE);
      for (const row of rows) yield toSource(row);
      const last = rows.at(-1);
      if (last === undefined) break;
      [conversation, turn] = [last.conversation_id, last.turn_id];
    }
    for (let after = 0; ; ) {
      const rows = this.database.all<{ part: number; part_id: string }>(PARTS, n, after, PAGE);
      for (const row of rows) yield row.part_id;
      const last = rows.at(-1);
      if (last === undefined) break;
      after = last.part;
    }
    yield* this.memories.pagedLog(n);
  }
}

function none(): Lists {
  return { sources: [], parts: [], log: [] };
}
