/**
 * Erased sources. Extractions must not learn from these conversations, turns and entries.
 *
 * MEMSRC-5  An erased source stays erased. Memories from it are refused, even if they arrive before the erasure. Exports and imports keep
 *           them.
 */
import type { SqlDatabase } from "../../ports/sql-database.ts";
import type { MemorySource } from "../../protocol/memory-schemas.ts";
import { conflict, type DramatisError } from "../../shared/errors.ts";
import type { ErasedSources } from "./schemas.ts";

/** `turn_id` is empty for a whole conversation. `entries` is `NULL` for a whole turn. */
export const ERASED_TABLE = `CREATE TABLE IF NOT EXISTS memory_erased (
  conversation_id TEXT NOT NULL, turn_id TEXT NOT NULL, entries TEXT, PRIMARY KEY (conversation_id, turn_id)) WITHOUT ROWID`;
const HAS_TABLE = "SELECT 1 AS found FROM sqlite_master WHERE type = 'table' AND name = 'memory_erased'";
const OF = "SELECT turn_id, entries FROM memory_erased WHERE conversation_id = ?1 AND turn_id IN ('', ?2)";
const PUT = "INSERT OR REPLACE INTO memory_erased (conversation_id, turn_id, entries) VALUES (?, ?, ?)";
const REMOVE = "DELETE FROM memory_erased WHERE conversation_id = ?";
const AFTER = `SELECT conversation_id, turn_id, entries FROM memory_erased
  WHERE (conversation_id, turn_id) > (?, ?) ORDER BY conversation_id, turn_id LIMIT ?`;

const WHOLE = "";
const PAGE = 200;

type ErasedRow = { conversation_id: string; turn_id: string; entries: string | null };

export type ErasedSource = Pick<MemorySource, "conversationId"> &
  Partial<Omit<MemorySource, "conversationId">>;

export class ErasedSourceRows {
  /** Calls of `put` in this instance. */
  puts = 0;

  constructor(private readonly database: SqlDatabase) {}

  /** Marks sources as erased. Creates the table, because an erasure may arrive before the first memory. */
  put({ conversationId, turns }: ErasedSources): void {
    this.puts += 1;
    this.database.run(ERASED_TABLE);
    if (turns === undefined) {
      this.database.run(REMOVE, conversationId);
      this.database.run(PUT, conversationId, WHOLE, null);
      return;
    }
    for (const { turnId, entries } of turns) {
      const known = this.#of(conversationId, turnId);
      if (known.has(WHOLE)) return;
      const before = known.get(turnId);
      const isWhole = entries === undefined || before === null;
      const all = isWhole ? null : [...new Set([...(before ?? []), ...entries])].sort((a, b) => a - b);
      this.database.run(PUT, conversationId, turnId, all === null ? null : JSON.stringify(all));
    }
  }

  /** Reports whether a part of a source was erased. The tables must exist. */
  has({ conversationId, turnId, entries }: MemorySource): boolean {
    const known = this.#of(conversationId, turnId);
    if (known.has(WHOLE)) return true;
    const erased = known.get(turnId);
    return erased !== undefined && overlaps(entries ?? null, erased);
  }

  *all(): Generator<ErasedSource> {
    if (this.database.all(HAS_TABLE).length === 0) return;
    for (let [conversation, turn] = ["", WHOLE]; ; ) {
      const rows = this.database.all<ErasedRow>(AFTER, conversation, turn, PAGE);
      for (const { conversation_id: conversationId, turn_id, entries } of rows)
        yield {
          conversationId,
          ...(turn_id !== WHOLE && { turnId: turn_id }),
          ...(entries !== null && { entries: entriesOf(entries) }),
        };
      const last = rows.at(-1);
      if (last === undefined) return;
      [conversation, turn] = [last.conversation_id, last.turn_id];
    }
  }

  #of(conversationId: string, turnId: string): Map<string, number[] | null> {
    const rows = this.database.all<Omit<ErasedRow, "conversation_id">>(OF, conversationId, turnId);
    return new Map(
      rows.map(({ turn_id, entries }) => [turn_id, entries === null ? null : entriesOf(entries)]),
    );
  }
}

/** Reports whether a source uses erased entries of its turn. `null` means the whole turn. */
export function overlaps(entries: readonly number[] | null, erased: readonly number[] | null): boolean {
  return entries === null || erased === null || entries.some((entry) => erased.includes(entry));
}

/** The error for a write that comes from an erased conversation, turn or entry. */
export function erasedSource(): DramatisError {
  return conflict("The source of this memory was erased. Use a source that still exists.");
}

function entriesOf(entries: string): number[] {
  // SAFETY: only `put` writes the column.
  return JSON.parse(entries) as number[];
}
