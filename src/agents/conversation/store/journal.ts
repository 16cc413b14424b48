/**
 * The table `journal`: one packed row per commit, with the commit's entries and the head after it.
 *
 * JOURNAL-1  Entry numbers are gapless: a row's first number is one more than the last of the row before it.
 */

import type { UsageTotals } from "../../../model/usage.ts";
import type { SqlDatabase } from "../../../ports/sql-database.ts";
import type { EntryType } from "../../../protocol/journal.ts";
import { defined } from "../../../shared/defined.ts";
import type { Json } from "../../../shared/json.ts";
import type { JournalEntry, JournalRow } from "../core/journal-entry.ts";
import type { Head } from "../core/state.ts";

export const CREATE_JOURNAL =
  "CREATE TABLE IF NOT EXISTS journal (seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, body TEXT NOT NULL)";

const INSERT = "INSERT INTO journal (seq, at, body) VALUES (?, ?, ?)";
const NEWEST = "SELECT seq, at, body FROM journal ORDER BY seq DESC LIMIT 1";
/** The row with an entry is the last one that begins at or before the entry. */
const FORWARD = `SELECT seq, at, body FROM journal
  WHERE seq >= coalesce((SELECT max(seq) FROM journal WHERE seq <= ?), 0) ORDER BY seq LIMIT ?`;
const BACKWARD = "SELECT seq, at, body FROM journal WHERE seq <= ? ORDER BY seq DESC LIMIT ?";

type Row = { seq: number; at: number; body: string };

export class Journal {
  constructor(private readonly database: SqlDatabase) {}

  append({ seq, at, entries }: JournalRow, head: Head): void {
    this.database.run(INSERT, seq, at, JSON.stringify([packHead(head), ...entries.map(packEntry)]));
  }

  /** Returns the newest row with its head; `null` for an empty journal. */
  newest(): { row: JournalRow; head: Head } | null {
    const [stored] = this.database.all<Row>(NEWEST);
    return stored === undefined ? null : unpack(stored);
  }

  /** Returns at most `limit` rows, ascending, from the row with entry `from` on. */
  forward(from: number, limit: number): JournalRow[] {
    return this.#rows(FORWARD, from, limit);
  }

  /** Returns at most `limit` rows, descending, from the last row that begins at or before entry `from`. */
  backward(from: number, limit: number): JournalRow[] {
    return this.#rows(BACKWARD, from, limit);
  }

  #rows(statement: string, from: number, limit: number): JournalRow[] {
    return this.database.all<Row>(statement, from, limit).map((stored) => unpack(stored).row);
  }
}

type PackedUsage = [calls: number, input: number, cached: number, output: number, nanoDollars: number];
type PackedHead = [turns: number, sessions: Head["sessions"], active: number[], usage?: PackedUsage];
type PackedEntry = [type: EntryType, turn?: number | null, item?: number | null, data?: Json];

function packHead({ turns, sessions, active, usage }: Head): PackedHead {
  if (usage === undefined || usage.calls === 0) return [turns, sessions, active];
  const { calls, inputTokens, cachedInputTokens, outputTokens, nanoDollars } = usage;
  return [turns, sessions, active, [calls, inputTokens, cachedInputTokens, outputTokens, nanoDollars]];
}

function unpackHead([turns, sessions, active, packed]: PackedHead): Head {
  return { turns, sessions, active, ...defined({ usage: packed && unpackUsage(packed) }) };
}

function unpackUsage(packed: PackedUsage): UsageTotals {
  const [calls, inputTokens, cachedInputTokens, outputTokens, nanoDollars] = packed;
  return { calls, inputTokens, cachedInputTokens, outputTokens, nanoDollars };
}

function packEntry({ type, turn, item, data }: JournalEntry): PackedEntry {
  if (data !== undefined) return [type, turn ?? null, item ?? null, data];
  if (item !== undefined) return [type, turn ?? null, item];
  return turn === undefined ? [type] : [type, turn];
}

function unpack({ seq, at, body }: Row): { row: JournalRow; head: Head } {
  // SAFETY: only `append` writes this column.
  const [head, ...packed] = JSON.parse(body) as [PackedHead, ...PackedEntry[]];
  const entries = packed.map(([type, turn, item, data]) => ({
    type,
    ...defined({ turn: turn ?? undefined, item: item ?? undefined, data }),
  }));
  return { row: { seq, at, entries }, head: unpackHead(head) };
}
