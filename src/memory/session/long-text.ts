/**
 * Stores long text in pieces in a separate table, which is created when first needed. A column of any row holds a short text or a small
 * handle (`pack` and `unpack`). A text may also have its own key, so several rows can refer to it (`write` and `read`).
 *
 * LONG-1  `unpack` returns exactly the text that was passed to `pack`, and `read` the text that was passed to `write`.
 * LONG-2  Short text is written and read without an extra statement.
 * LONG-3  No piece, and no row within `INLINE_BYTES`, exceeds the platform's limit for a row.
 * LONG-4  One statement reads any number of texts by their keys.
 */
import { textBatches } from "../../ports/sql-batches.ts";
import type { SqlDatabase } from "../../ports/sql-database.ts";
import { DramatisError, tooLarge } from "../../shared/errors.ts";
import { fitsUtf8, splitUtf8, utf8Length } from "../../shared/utf8.ts";

/** Maximum size of text that stays in its row, in bytes (UTF-8). */
export const INLINE_BYTES = 1_500_000;

/** Maximum size of a stored text, in bytes (UTF-8). */
export const MAX_TEXT_BYTES = 32 * 1024 * 1024;

const PIECE_BYTES = 1_500_000;

/** Size of the handles of `pack`. */
const HANDLE_BYTES = 4;

/** The value of a text column: the text, or the handle of a text in pieces. */
export type PackedText = string | Uint8Array;

/** The key of a stored text and its size in bytes (UTF-8). */
export interface TextReference {
  key: string;
  bytes: number;
}

const CREATE = `CREATE TABLE IF NOT EXISTS cf_agents_long_text (
  key TEXT NOT NULL, piece INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (key, piece)) WITHOUT ROWID`;
const EXISTS = "SELECT 1 AS found FROM sqlite_master WHERE type = 'table' AND name = 'cf_agents_long_text'";
const INSERT = "INSERT INTO cf_agents_long_text (key, piece, text) VALUES (?, ?, ?)";
const REPLACE = "INSERT OR REPLACE INTO cf_agents_long_text (key, piece, text) VALUES (?, ?, ?)";
const SELECT = "SELECT text FROM cf_agents_long_text WHERE key = ? ORDER BY piece";
const SELECT_KEYS = `SELECT key, text FROM cf_agents_long_text
  WHERE key IN (SELECT value FROM json_each(?)) ORDER BY key, piece`;
const DELETE = "DELETE FROM cf_agents_long_text WHERE key = ?";
const DELETE_KEYS = "DELETE FROM cf_agents_long_text WHERE key IN (SELECT value FROM json_each(?))";
const DELETE_RANGE = "DELETE FROM cf_agents_long_text WHERE key >= ? AND key < ?";

export class LongText {
  constructor(private readonly db: SqlDatabase) {}

  /**
   * Returns the value for a column. `key` names the text and is unique in the database. Text above `inlineBytes` is stored in pieces, which
   * replace earlier pieces of this key. Call `pack` in the transaction that writes the row. Throws `TOO_LARGE` above `MAX_TEXT_BYTES`.
   *
   * @example
   * db.run("UPDATE turns SET body = ? WHERE n = ?", longText.pack(`turn:${n}`, body), n);
   */
  pack(key: string, text: string, inlineBytes = INLINE_BYTES): PackedText {
    if (fitsUtf8(text, inlineBytes)) return text;
    const bytes = checkedBytes(text);
    this.db.run(CREATE);
    this.db.run(DELETE, key);
    let piece = 0;
    for (const part of splitUtf8(text, PIECE_BYTES)) this.db.run(INSERT, key, piece++, part);
    return handleOf(bytes);
  }

  /** Returns the text of a column's value that was packed with this key. */
  unpack(key: string, packed: PackedText): string {
    if (typeof packed === "string") return packed;
    let text = "";
    for (const row of this.db.each<{ text: string }>(SELECT, key)) text += row.text;
    if (utf8Length(text) !== packedBytes(packed)) throw missing(key);
    return text;
  }

  /**
   * Stores texts under their keys. Before storing a shorter text under an existing key, discard the key. Throws `TOO_LARGE` above
   * `MAX_TEXT_BYTES`.
   */
  write(texts: ReadonlyMap<string, string>): void {
    if (texts.size === 0) return;
    this.db.run(CREATE);
    for (const [key, text] of texts) {
      checkedBytes(text);
      let piece = 0;
      for (const part of splitUtf8(text, PIECE_BYTES)) this.db.run(REPLACE, key, piece++, part);
    }
  }

  /** Returns the texts of keys, by key (LONG-4). Throws `INTERNAL_ERROR` if a text is missing or incomplete. */
  read(references: readonly TextReference[]): ReadonlyMap<string, string> {
    const texts = new Map<string, string>();
    if (references.length === 0) return texts;
    const keys = JSON.stringify(references.map(({ key }) => key));
    for (const { key, text } of this.db.each<{ key: string; text: string }>(SELECT_KEYS, keys))
      texts.set(key, (texts.get(key) ?? "") + text);
    for (const { key, bytes } of references)
      if (utf8Length(texts.get(key) ?? "") !== bytes) throw missing(key);
    return texts;
  }

  discardKeys(keys: readonly string[]): void {
    for (const batch of textBatches(keys)) this.db.run(DELETE_KEYS, batch);
  }

  /** Deletes the pieces of a key, if any. Call it when the row is deleted or its text becomes short. */
  discard(key: string): void {
    if (this.exists()) this.db.run(DELETE, key);
  }

  /** Deletes the pieces of all keys with this prefix, which ends with an ASCII character. */
  discardAll(prefix: string): void {
    if (this.exists()) this.db.run(DELETE_RANGE, prefix, afterAll(prefix));
  }

  private exists(): boolean {
    return this.db.all(EXISTS).length > 0;
  }
}

/** Returns the size of a column's text in bytes (UTF-8), without reading its pieces. */
export function packedBytes(packed: PackedText): number {
  if (typeof packed === "string") return utf8Length(packed);
  const reference = referenceOf(packed);
  if (reference !== undefined) return reference.bytes;
  return new DataView(packed.buffer, packed.byteOffset, packed.byteLength).getUint32(0);
}

/** Returns the text form of a key's handle. It is longer than any handle of `pack`. */
export function referenceText({ key, bytes }: TextReference): string {
  return `${bytes} ${key}`;
}

/** Returns the reference in a column. `undefined` if the column holds a text or a handle of `pack`. */
export function referenceOf(packed: PackedText | null): TextReference | undefined {
  if (packed === null || typeof packed === "string" || packed.byteLength <= HANDLE_BYTES) return undefined;
  const text = new TextDecoder().decode(packed);
  const end = text.indexOf(" ");
  return { key: text.slice(end + 1), bytes: Number(text.slice(0, end)) };
}

/** Returns the text after all texts with this prefix, in the order of the database. */
function afterAll(prefix: string): string {
  return prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);
}

function handleOf(bytes: number): Uint8Array {
  const handle = new Uint8Array(HANDLE_BYTES);
  new DataView(handle.buffer).setUint32(0, bytes);
  return handle;
}

function checkedBytes(text: string): number {
  const bytes = utf8Length(text);
  if (bytes <= MAX_TEXT_BYTES) return bytes;
  throw tooLarge(
    `The text has ${bytes} bytes, but at most ${MAX_TEXT_BYTES} are allowed. Store a reference instead.`,
  );
}

function missing(key: string): DramatisError {
  return new DramatisError("INTERNAL_ERROR", `Pieces of the text "${key}" are missing.`);
}
