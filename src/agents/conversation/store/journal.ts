/**
 * The table `journal`: one packed row per commit. A row holds the commit's entries and the head after it.
 *
 * JOURNAL-1  Entry numbers are gapless: a row's first number is one more than the last of the row before it.
 */

import type { UsageTotals } from "../../../model/usage.ts";
import type { SqlDatabase } from "../../../ports/sql-database.ts";
import { defined } from "../../../shared/defined.ts";
import type { Json } from "../../../shared/json.ts";
import type { EntryType, JournalEntry, JournalRow } from "../core/journal-entry.ts";
import type { Head } from "../core/state.ts";

export const CREATE_JOURNAL =
  "CREATE TABLE IF NOT EXISTS journal (seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, body TEXT NOT NULL)";

const INSERT = "INSERT INTO journal (seq, at, body) VALUES (?, ?, ?)";
const NEWEST = "SELECT seq, at, body FROM journal ORDER BY seq DESC LIMIT 1";
/** The row that holds an entry is the last one that begins at or before it. */
const FORWARD = `SELECT seq, at, body FROM journal
  WHERE seq >= coalesce((SELECT max(seq) FROM journal WHERE seq <= ?), 0) ORDER BY seq LIMIT ?`;
const BACKWARD = "SELECT seq, at, body FROM journal WHERE seq <= ? ORDER BY seq DESC LIMIT ?";

type Row = { seq: number; at: number; body: string };

export class Journal {
  constructor(private readonly database: SqlDatabase) {}

  append(row: JournalRow, head: Head): void {
    this.database.run(
      INSERT,
      row.seq,
      row.at,
      JSON.stringify([packHead(head), ...row.entries.map(packEntry)]),
    );
  }

  /** The newest row with the head it carries; `null` in an empty journal. */
  newest(): { row: JournalRow; head: Head } | null {
    const [stored] = this.database.all<Row>(NEWEST);
    return stored === undefined ? null : unpack(stored);
  }

  /** Rows from the one that holds entry `from` on, ascending, at most `limit`. */
  forward(from: number, limit: number): JournalRow[] {
    return this.database.all<Row>(FORWARD, from, limit).map((stored) => unpack(stored).row);
  }

  /** Rows that begin at or before entry `from`, descending, at most `limit`. */
  backward(from: number, limit: number): JournalRow[] {
    return this.database.all<Row>(BACKWARD, from, limit).map((stored) => unpack(stored).row);
  }
}

/** Number of a row's last entry. */
export function lastSeq(row: JournalRow): number {
  return row.seq + row.entries.length - 1;
}

type PackedHead = [
  turns: number,
  sessions: Record<string, number>,
  active: number[],
  usage?: [calls: number, input: number, cached: number, output: number, nanoDollars: number],
];
type PackedEntry = [type: EntryType, turn?: number | null, item?: number | null, data?: Json];

function packHead({ turns, sessions, active, usage }: Head): PackedHead {
  if (usage === undefined || usage.calls === 0) return [turns, sessions, active];
  const { calls, inputTokens, cachedInputTokens, outputTokens, nanoDollars } = usage;
  return [turns, sessions, active, [calls, inputTokens, cachedInputTokens, outputTokens, nanoDollars]];
}

function unpackHead([turns, sessions, active, packed]: PackedHead): Head {
  if (packed === undefined) return { turns, sessions, active };
  const [calls, inputTokens, cachedInputTokens, outputTokens, nanoDollars] = packed;
  const usage: UsageTotals = { calls, inputTokens, cachedInputTokens, outputTokens, nanoDollars };
  return { turns, sessions, active, usage };
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
    ...(turn == null ? {} : { turn }),
    ...(item == null ? {} : { item }),
    ...defined({ data }),
  }));
  return { row: { seq, at, entries }, head: unpackHead(head) };
}
