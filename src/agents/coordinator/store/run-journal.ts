/**
 * The table `run_journal`: one packed row a commit.
 *
 * RUNJOURNAL-1  Entry numbers are gapless: the first number of a row is one more than the last of the row before it.
 * RUNJOURNAL-2  One statement reads any number of rows. Only one row at a time is in memory, or the rows of one slice.
 */
import type { LongText, PackedText } from "../../../memory/session/long-text.ts";
import type { SqlDatabase } from "../../../ports/sql-database.ts";
import type { RunEntry, RunEntryType } from "../../../protocol/workflow-run.ts";
import { defined } from "../../../shared/defined.ts";
import { type JournalRowOf, lastSeq } from "../../../shared/journal-row.ts";
import type { Json } from "../../../shared/json.ts";
import type { Head } from "../core/head.ts";

export type RunJournalRow = JournalRowOf<RunEntry>;

const INSERT = "INSERT INTO run_journal (seq, at, body) VALUES (?, ?, ?)";
const NEWEST = "SELECT seq, at, body FROM run_journal ORDER BY seq DESC LIMIT 1";
const ONE = "SELECT seq, at, body FROM run_journal WHERE seq = ?";
/** An entry is in the last row that begins at or before it. */
const HOLDING = "SELECT seq, at, body FROM run_journal WHERE seq <= ? ORDER BY seq DESC LIMIT 1";
const FROM = `SELECT seq, at, body FROM run_journal
  WHERE seq >= (SELECT MAX(seq) FROM run_journal WHERE seq <= ?) ORDER BY seq`;

type Row = { seq: number; at: number; body: PackedText };
/** Length of the rows of one slice as text, in UTF-16 units. */
const MAX_SLICE = 1024 * 1024;

type PackedEntry = [type: RunEntryType, token?: number | null, node?: string | null, data?: Json];

export class RunJournal {
  constructor(
    private readonly database: SqlDatabase,
    private readonly texts: LongText,
  ) {}

  append({ seq, at, entries }: RunJournalRow, head: Head): void {
    const text = JSON.stringify([head, ...entries.map(packEntry)]);
    this.database.run(INSERT, seq, at, this.texts.pack(keyOf(seq), text));
  }

  newest(): { row: RunJournalRow; head: Head } | null {
    const [stored] = this.database.all<Row>(NEWEST);
    return stored === undefined ? null : this.#unpack(stored);
  }

  at(seq: number): RunJournalRow {
    const [stored] = this.database.all<Row>(ONE, seq);
    if (stored === undefined) throw new Error(`The journal has no row ${seq}.`);
    return this.#unpack(stored).row;
  }

  holding(seq: number): RunJournalRow | undefined {
    const [stored] = this.database.all<Row>(HOLDING, seq);
    const row = stored && this.#unpack(stored).row;
    return row !== undefined && lastSeq(row) >= seq ? row : undefined;
  }

  /** Yields the row with an entry and the rows after it. For a later entry it yields the newest row. */
  *from(seq: number): Generator<RunJournalRow> {
    for (const stored of this.database.each<Row>(FROM, seq)) yield this.#unpack(stored).row;
  }

  /** Returns at most `limit` rows from the row with entry `from` on: the first, and further rows up to `MAX_SLICE`. */
  forward(from: number, limit: number): RunJournalRow[] {
    const rows: RunJournalRow[] = [];
    let length = 0;
    for (const stored of this.database.each<Row>(FROM, from)) {
      const text = this.#text(stored);
      length += text.length;
      if (rows.length > 0 && length > MAX_SLICE) break;
      rows.push(unpack(stored, text).row);
      if (rows.length === limit) break;
    }
    return rows;
  }

  #unpack(stored: Row): { row: RunJournalRow; head: Head } {
    return unpack(stored, this.#text(stored));
  }

  #text({ seq, body }: Row): string {
    return this.texts.unpack(keyOf(seq), body);
  }
}

function unpack({ seq, at }: Row, text: string): { row: RunJournalRow; head: Head } {
  // SAFETY: only `append` writes this column.
  const [head, ...packed] = JSON.parse(text) as [Head, ...PackedEntry[]];
  return { row: { seq, at, entries: packed.map(unpackEntry) }, head };
}

function keyOf(seq: number): string {
  return `run-journal:${seq}`;
}

function packEntry({ type, token, node, data }: RunEntry): PackedEntry {
  if (data !== undefined) return [type, token ?? null, node ?? null, data];
  if (node !== undefined) return [type, token ?? null, node];
  return token === undefined ? [type] : [type, token];
}

function unpackEntry([type, token, node, data]: PackedEntry): RunEntry {
  return { type, ...defined({ token: token ?? undefined, node: node ?? undefined, data }) };
}
