/**
 * The storage of a mailbox in its actor's database. An actor without envelopes has no storage cost: outbox entries are keys, and the first
 * write creates a table.
 *
 * MAIL-9  An envelope that is delivered at the first attempt costs its sender two rows (the entry and its removal) and its
 *         receiver one (the receipt; its removal follows much later, in batches).
 */
import type { z } from "zod";
import type { KeyValue } from "../../../ports/key-value.ts";
import type { SqlDatabase } from "../../../ports/sql-database.ts";
import type { Envelope } from "../../../protocol/envelope.ts";
import { bothOrders, MAX_PAGE_BYTES, type Page } from "../../../shared/page.ts";
import { utf8Length } from "../../../shared/utf8.ts";
import type { DeadLetter, deadLetterPageSchema } from "./dead-letter.ts";
import {
  MAX_DEAD_LETTER_BYTES,
  MAX_DEAD_LETTERS,
  MAX_OUTBOX_ENVELOPES,
  OWED_ENVELOPES,
  TRIM_BATCH,
} from "./mailbox-limits.ts";
import type { OutboxEntry } from "./outbox-entry.ts";
import type { Receipt } from "./receipt.ts";

const OUTBOX = "mailbox:out:";
const UNPUBLISHED = "mailbox:unpublished:";
const KEY_DIGITS = 15;
/** Notes in one batch of deletions. */
const FORGET_BATCH = 500;

const EXISTS = "SELECT 1 AS found FROM sqlite_master WHERE type = 'table' AND name = ?";
const CREATE = {
  mailbox_inbox: `CREATE TABLE IF NOT EXISTS mailbox_inbox (
  operation_id TEXT PRIMARY KEY, refused_attempt INTEGER, answer TEXT NOT NULL) WITHOUT ROWID`,
  mailbox_dead_letters: `CREATE TABLE IF NOT EXISTS mailbox_dead_letters (
  operation_id TEXT PRIMARY KEY, letter TEXT NOT NULL) WITHOUT ROWID`,
};

const GET_RECEIPT = "SELECT refused_attempt, answer FROM mailbox_inbox WHERE operation_id = ?";
const PUT_RECEIPT = `INSERT INTO mailbox_inbox (operation_id, refused_attempt, answer) VALUES (?, ?, ?)
  ON CONFLICT (operation_id) DO UPDATE SET refused_attempt = excluded.refused_attempt, answer = excluded.answer`;
/** Operation ids ascend by time. */
const TRIM_RECEIPTS = `DELETE FROM mailbox_inbox WHERE operation_id IN
  (SELECT operation_id FROM mailbox_inbox WHERE operation_id < ? ORDER BY operation_id LIMIT ${TRIM_BATCH})`;

const PUT_LETTER = `INSERT INTO mailbox_dead_letters (operation_id, letter) VALUES (?, ?)
  ON CONFLICT (operation_id) DO UPDATE SET letter = excluded.letter`;
const GET_LETTER = "SELECT letter FROM mailbox_dead_letters WHERE operation_id = ?";
const DELETE_LETTER = "DELETE FROM mailbox_dead_letters WHERE operation_id = ?";
const NAMING = "SELECT letter FROM mailbox_dead_letters WHERE instr(letter, ?) > 0";
const NEWEST_OF = `SELECT letter FROM mailbox_dead_letters
  WHERE json_extract(letter, '$.envelope.type') IN (SELECT value FROM json_each(?))
  ORDER BY operation_id DESC LIMIT ?`;
const OUTDATED = `SELECT operation_id FROM (
  SELECT operation_id,
    row_number() OVER newest AS number, sum(octet_length(letter)) OVER newest AS bytes
  FROM mailbox_dead_letters WINDOW newest AS (ORDER BY operation_id DESC))
  WHERE operation_id < ? OR number > ${MAX_DEAD_LETTERS} OR bytes > ${MAX_DEAD_LETTER_BYTES}`;
const LETTERS = bothOrders(
  (comparison, order) => `SELECT letter FROM mailbox_dead_letters
  WHERE operation_id ${comparison} ? ORDER BY operation_id ${order} LIMIT ?`,
);
const AFTER_ALL = "op~";

type Table = keyof typeof CREATE;

/** An outbox entry under its key. Keys ascend in the order of sending. */
export interface StoredEntry {
  key: string;
  entry: OutboxEntry;
  /** Bytes of the envelope as JSON. */
  size: number;
}

/** An entry as stored, with the envelope as text, so that its size is known and bounded. */
type EntryRow = Omit<OutboxEntry, "envelope"> & { text: string };
type ReceiptRow = { refused_attempt: number | null; answer: string };
type LetterRow = { letter: string };

export class MailboxStore {
  /** The tables that this life has checked, and whether they exist. */
  readonly #tables = new Map<Table, boolean>();
  #lastNumber = 0;

  constructor(
    private readonly database: SqlDatabase,
    private readonly keyValue: KeyValue,
  ) {}

  /** Runs `body` in one transaction. A rollback may remove tables that `body` has created. */
  transaction<Result>(body: () => Result): Result {
    try {
      return this.database.transaction(body);
    } catch (error) {
      this.#tables.clear();
      throw error;
    }
  }

  /** Returns the outbox, in the order of sending. */
  entries(): StoredEntry[] {
    const rows = this.keyValue.list<EntryRow>(OUTBOX, MAX_OUTBOX_ENVELOPES + OWED_ENVELOPES);
    this.#lastNumber = Number(rows.at(-1)?.[0].slice(OUTBOX.length) ?? 0);
    return rows.map(([key, { text, ...entry }]) => ({
      key,
      // SAFETY: only `putEntry` writes these rows.
      entry: { ...entry, envelope: JSON.parse(text) as Envelope },
      size: utf8Length(text),
    }));
  }

  /** Appends an entry. Call it after the first call of `entries`. Returns its key. */
  addEntry(entry: OutboxEntry): string {
    const key = `${OUTBOX}${String(++this.#lastNumber).padStart(KEY_DIGITS, "0")}`;
    this.putEntry(key, entry);
    return key;
  }

  hasEntry(key: string): boolean {
    return this.keyValue.get(key) !== undefined;
  }

  putEntry(key: string, { envelope, ...entry }: OutboxEntry): void {
    this.keyValue.put<EntryRow>(key, { ...entry, text: JSON.stringify(envelope) });
  }

  deleteEntry(key: string): boolean {
    return this.keyValue.delete(key);
  }

  receipt(operationId: string): Receipt | undefined {
    if (!this.#exists("mailbox_inbox")) return undefined;
    const [row] = this.database.all<ReceiptRow>(GET_RECEIPT, operationId);
    if (row === undefined) return undefined;
    // SAFETY: only `putReceipt` writes this column, with the member that `refused_attempt` determines.
    const answer = JSON.parse(row.answer) as never;
    return row.refused_attempt === null
      ? { type: "done", result: answer }
      : { type: "refused", attempt: row.refused_attempt, error: answer };
  }

  putReceipt(operationId: string, receipt: Receipt): void {
    const [attempt, answer] =
      receipt.type === "done" ? [null, receipt.result] : [receipt.attempt, receipt.error];
    this.#create("mailbox_inbox");
    this.database.run(PUT_RECEIPT, operationId, attempt, JSON.stringify(answer));
  }

  /** Deletes a batch of receipts with operation ids before `before`. */
  trimReceipts(before: string): void {
    this.database.run(TRIM_RECEIPTS, before);
  }

  keep(letter: DeadLetter): void {
    this.#create("mailbox_dead_letters");
    this.database.run(PUT_LETTER, letter.envelope.operationId, JSON.stringify(letter));
  }

  /** Deletes dead letters with ids before `before`, and the oldest letters beyond a limit. Returns their ids. */
  trimDeadLetters(before: string): string[] {
    const outdated = this.database.all<{ operation_id: string }>(OUTDATED, before);
    for (const { operation_id } of outdated) this.database.run(DELETE_LETTER, operation_id);
    return outdated.map(({ operation_id }) => operation_id);
  }

  deadLetter(operationId: string): DeadLetter | undefined {
    if (!this.#exists("mailbox_dead_letters")) return undefined;
    const [row] = this.database.all<LetterRow>(GET_LETTER, operationId);
    return row === undefined ? undefined : letterOf(row);
  }

  deadLettersNaming(operationId: string): DeadLetter[] {
    if (!this.#exists("mailbox_dead_letters")) return [];
    return this.database.all<LetterRow>(NAMING, JSON.stringify(operationId)).map(letterOf);
  }

  newestDeadLetters(types: readonly string[], limit: number): DeadLetter[] {
    if (!this.#exists("mailbox_dead_letters")) return [];
    return this.database.all<LetterRow>(NEWEST_OF, JSON.stringify(types), limit).map(letterOf);
  }

  removeDeadLetter(operationId: string): void {
    this.database.run(DELETE_LETTER, operationId);
  }

  /** Returns at most `limit` dead letters after `cursor`, an operation id. The page ends once it has `MAX_PAGE_BYTES`. */
  deadLetters({ limit, cursor, order }: z.output<typeof deadLetterPageSchema>): Page<DeadLetter> {
    const items: DeadLetter[] = [];
    if (!this.#exists("mailbox_dead_letters")) return { items };
    const start = cursor ?? (order === "asc" ? "" : AFTER_ALL);
    let bytes = 0;
    for (const row of this.database.each<LetterRow>(LETTERS[order], start, limit + 1)) {
      const last = items.at(-1);
      if (last !== undefined && (items.length === limit || bytes > MAX_PAGE_BYTES))
        return { items, nextCursor: last.envelope.operationId };
      items.push(letterOf(row));
      bytes += utf8Length(row.letter);
    }
    return { items };
  }

  /** Notes an operation that the directory lacks. `mark` distinguishes this note from later notes. */
  markUnpublished(operationId: string, mark: string): void {
    this.keyValue.put(UNPUBLISHED + operationId, mark);
  }

  unpublished(limit: number): [operationId: string, mark: string][] {
    return this.keyValue
      .list<string>(UNPUBLISHED, limit)
      .map(([key, mark]) => [key.slice(UNPUBLISHED.length), mark]);
  }

  /** Deletes the note of an operation, unless a later note replaced it. */
  published(operationId: string, mark: string): void {
    const key = UNPUBLISHED + operationId;
    if (this.keyValue.get<string>(key) === mark) this.keyValue.delete(key);
  }

  forget(): void {
    for (
      let notes = this.unpublished(FORGET_BATCH);
      notes.length > 0;
      notes = this.unpublished(FORGET_BATCH)
    ) {
      for (const [operationId] of notes) this.keyValue.delete(UNPUBLISHED + operationId);
    }
    if (this.#exists("mailbox_dead_letters")) this.database.run("DELETE FROM mailbox_dead_letters");
    if (this.#exists("mailbox_inbox")) this.database.run("DELETE FROM mailbox_inbox");
  }

  #exists(table: Table): boolean {
    const exists = this.#tables.get(table) ?? this.database.all(EXISTS, table).length > 0;
    this.#tables.set(table, exists);
    return exists;
  }

  #create(table: Table): void {
    if (!this.#exists(table)) this.database.run(CREATE[table]);
    this.#tables.set(table, true);
  }
}

function letterOf({ letter }: LetterRow): DeadLetter {
  // SAFETY: only `keep` writes this column.
  return JSON.parse(letter) as DeadLetter;
}
