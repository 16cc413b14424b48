/**
 * What a mailbox keeps in its actor's database. An actor that never sends or receives pays nothing: outbox entries are
 * keys, and the two tables are made when they are first needed.
 *
 * MAIL-9  An envelope that is delivered at the first attempt costs its sender two rows (its entry, and the entry's
 *         removal) and its receiver one (the receipt, whose removal follows much later, in batches).
 */
import type { KeyValue } from "../../../ports/key-value.ts";
import type { SqlDatabase } from "../../../ports/sql-database.ts";
import type { Envelope } from "../../../protocol/envelope.ts";
import type { PageOptions } from "../../../shared/page.ts";
import { utf8Length } from "../../../shared/utf8.ts";
import type { DeadLetter } from "./dead-letter.ts";
import {
  MAX_DEAD_LETTER_BYTES,
  MAX_DEAD_LETTERS,
  MAX_OUTBOX_ENVELOPES,
  MAX_PAGE_BYTES,
  TRIM_BATCH,
} from "./limits.ts";
import type { OutboxEntry } from "./outbox-entry.ts";
import type { Receipt } from "./receipt.ts";

const OUTBOX = "mailbox:out:";
const UNPUBLISHED = "mailbox:unpublished:";
const KEY_DIGITS = 15;

const CREATE_INBOX = `CREATE TABLE IF NOT EXISTS mailbox_inbox (
  operation_id TEXT PRIMARY KEY, refused_attempt INTEGER, answer TEXT NOT NULL) WITHOUT ROWID`;
const GET_RECEIPT = "SELECT refused_attempt, answer FROM mailbox_inbox WHERE operation_id = ?";
const PUT_RECEIPT = `INSERT INTO mailbox_inbox (operation_id, refused_attempt, answer) VALUES (?, ?, ?)
  ON CONFLICT (operation_id) DO UPDATE SET refused_attempt = excluded.refused_attempt, answer = excluded.answer`;
/** Operation ids ascend by time. */
const TRIM_RECEIPTS = `DELETE FROM mailbox_inbox WHERE operation_id IN
  (SELECT operation_id FROM mailbox_inbox WHERE operation_id < ? ORDER BY operation_id LIMIT ${TRIM_BATCH})`;

const EXISTS = "SELECT 1 AS found FROM sqlite_master WHERE type = 'table' AND name = ?";

const CREATE_DEAD = `CREATE TABLE IF NOT EXISTS mailbox_dead_letters (
  operation_id TEXT PRIMARY KEY, letter TEXT NOT NULL) WITHOUT ROWID`;
const PUT_LETTER = `INSERT INTO mailbox_dead_letters (operation_id, letter) VALUES (?, ?)
  ON CONFLICT (operation_id) DO UPDATE SET letter = excluded.letter`;
const GET_LETTER = "SELECT letter FROM mailbox_dead_letters WHERE operation_id = ?";
const DELETE_LETTER = "DELETE FROM mailbox_dead_letters WHERE operation_id = ?";
const OUTDATED = `SELECT operation_id FROM (
  SELECT operation_id,
    row_number() OVER newest AS number, sum(octet_length(letter)) OVER newest AS bytes
  FROM mailbox_dead_letters WINDOW newest AS (ORDER BY operation_id DESC))
  WHERE operation_id < ? OR number > ${MAX_DEAD_LETTERS} OR bytes > ${MAX_DEAD_LETTER_BYTES}`;
const LETTERS = {
  asc: "SELECT letter FROM mailbox_dead_letters WHERE operation_id > ? ORDER BY operation_id LIMIT ?",
  desc: "SELECT letter FROM mailbox_dead_letters WHERE operation_id < ? ORDER BY operation_id DESC LIMIT ?",
};
const AFTER_ALL = "op~";

/** An outbox entry under its key; keys ascend in the order of sending. */
export interface StoredEntry {
  key: string;
  entry: OutboxEntry;
  /** Bytes of the envelope as JSON. */
  size: number;
}

/** As it is stored: the envelope as text, so that its size is known and bounded. */
type EntryRow = Omit<OutboxEntry, "envelope"> & { text: string };
type ReceiptRow = { refused_attempt: number | null; answer: string };
type LetterRow = { letter: string };

export class MailboxStore {
  /** `null` where that is not known. */
  #hasInbox: boolean | null = null;
  #hasDeadLetters: boolean | null = null;

  constructor(
    private readonly database: SqlDatabase,
    private readonly keyValue: KeyValue,
  ) {}

  /** The outbox, in the order of sending. */
  entries(): StoredEntry[] {
    return this.keyValue.list<EntryRow>(OUTBOX, MAX_OUTBOX_ENVELOPES).map(([key, row]) => stored(key, row));
  }

  /** The `n`th key of an outbox. */
  entryKey(n: number): string {
    return `${OUTBOX}${String(n).padStart(KEY_DIGITS, "0")}`;
  }

  /** The number of a key. */
  entryNumber(key: string): number {
    return Number(key.slice(OUTBOX.length));
  }

  hasEntry(key: string): boolean {
    return this.keyValue.get(key) !== undefined;
  }

  putEntry(key: string, { envelope, ...entry }: OutboxEntry, text = JSON.stringify(envelope)): void {
    this.keyValue.put<EntryRow>(key, { ...entry, text });
  }

  /** Answers whether the entry was there. */
  deleteEntry(key: string): boolean {
    return this.keyValue.delete(key);
  }

  /** After a transaction that rolled back, what it created is not there. */
  forgetTables(): void {
    this.#hasInbox = null;
    this.#hasDeadLetters = null;
  }

  receipt(operationId: string): Receipt | undefined {
    if (!this.#inboxExists()) return undefined;
    const [row] = this.database.all<ReceiptRow>(GET_RECEIPT, operationId);
    if (row === undefined) return undefined;
    // SAFETY: only `putReceipt` writes this column, from the part that `refused_attempt` tells apart.
    const answer = JSON.parse(row.answer) as never;
    return row.refused_attempt === null
      ? { type: "done", result: answer }
      : { type: "refused", attempt: row.refused_attempt, error: answer };
  }

  putReceipt(operationId: string, receipt: Receipt): void {
    const [attempt, answer] =
      receipt.type === "done" ? [null, receipt.result] : [receipt.attempt, receipt.error];
    if (!this.#inboxExists()) this.database.run(CREATE_INBOX);
    this.#hasInbox = true;
    this.database.run(PUT_RECEIPT, operationId, attempt, JSON.stringify(answer));
  }

  /** Forgets a batch of operations whose id is smaller than `before`. */
  trimReceipts(before: string): void {
    this.database.run(TRIM_RECEIPTS, before);
  }

  keep(letter: DeadLetter): void {
    if (!this.#deadLettersExist()) this.database.run(CREATE_DEAD);
    this.#hasDeadLetters = true;
    this.database.run(PUT_LETTER, letter.envelope.operationId, JSON.stringify(letter));
  }

  /** Lets go of dead letters whose id is smaller than `before`, and of the oldest that exceed a limit. Answers their ids. */
  trimDeadLetters(before: string): string[] {
    const outdated = this.database.all<{ operation_id: string }>(OUTDATED, before);
    for (const { operation_id } of outdated) this.database.run(DELETE_LETTER, operation_id);
    return outdated.map(({ operation_id }) => operation_id);
  }

  deadLetter(operationId: string): DeadLetter | undefined {
    if (!this.#deadLettersExist()) return undefined;
    const [row] = this.database.all<LetterRow>(GET_LETTER, operationId);
    return row === undefined ? undefined : letterOf(row);
  }

  removeDeadLetter(operationId: string): void {
    this.database.run(DELETE_LETTER, operationId);
  }

  /**
   * Dead letters after `cursor`, an operation id: at most `limit`, and no more once they hold `MAX_PAGE_BYTES`; `more`
   * says whether others follow.
   */
  deadLetters(
    limit: number,
    { cursor, order = "asc" }: Omit<PageOptions, "limit">,
  ): { letters: DeadLetter[]; more: boolean } {
    const letters: DeadLetter[] = [];
    if (!this.#deadLettersExist()) return { letters, more: false };
    const start = cursor ?? (order === "asc" ? "" : AFTER_ALL);
    let bytes = 0;
    for (const row of this.database.each<LetterRow>(LETTERS[order], start, limit + 1)) {
      if (letters.length === limit || bytes > MAX_PAGE_BYTES) return { letters, more: true };
      letters.push(letterOf(row));
      bytes += utf8Length(row.letter);
    }
    return { letters, more: false };
  }

  /** Notes that the directory has to be told of this operation; `mark` tells this note from a later one. */
  markUnpublished(operationId: string, mark: string): void {
    this.keyValue.put(UNPUBLISHED + operationId, mark);
  }

  /** Up to `limit` operations that the directory has to be told of. */
  unpublished(limit: number): [operationId: string, mark: string][] {
    return this.keyValue
      .list<string>(UNPUBLISHED, limit)
      .map(([key, mark]) => [key.slice(UNPUBLISHED.length), mark]);
  }

  /** The directory was told, unless there was a further change since. */
  published(operationId: string, mark: string): void {
    const key = UNPUBLISHED + operationId;
    if (this.keyValue.get<string>(key) === mark) this.keyValue.delete(key);
  }

  #deadLettersExist(): boolean {
    this.#hasDeadLetters ??= this.database.all(EXISTS, "mailbox_dead_letters").length > 0;
    return this.#hasDeadLetters;
  }

  #inboxExists(): boolean {
    this.#hasInbox ??= this.database.all(EXISTS, "mailbox_inbox").length > 0;
    return this.#hasInbox;
  }
}

function stored(key: string, { text, ...entry }: EntryRow): StoredEntry {
  // SAFETY: only `putEntry` writes these rows.
  return { key, entry: { ...entry, envelope: JSON.parse(text) as Envelope }, size: utf8Length(text) };
}

function letterOf({ letter }: LetterRow): DeadLetter {
  // SAFETY: only `bury` writes this column.
  return JSON.parse(letter) as DeadLetter;
}
