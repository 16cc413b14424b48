/**
 * Stores long text behind a column of any row. Short text stays in the column. Longer text is cut into pieces in a table
 * of its own, which is created when first needed, and the column holds a small handle.
 *
 * LONG-1  `unpack` returns exactly the text that was passed to `pack`.
 * LONG-2  Short text costs no statement, neither to write nor to read.
 * LONG-3  No piece, and no row within `INLINE_BYTES`, exceeds the platform's limit for a row.
 */
import type { SqlDatabase } from "../../ports/sql-database.ts";
import { DramatisError } from "../../shared/errors.ts";
import { fitsUtf8, splitUtf8, utf8Length } from "../../shared/utf8.ts";

/** Maximum size of text that stays in its row, in bytes (UTF-8). */
export const INLINE_BYTES = 1_500_000;

/** Maximum size of a stored text, in bytes (UTF-8). */
export const MAX_TEXT_BYTES = 32 * 1024 * 1024;

const PIECE_BYTES = 1_500_000;

/** The value of a text column: the text, or the handle of a text in pieces. */
export type PackedText = string | Uint8Array;

const CREATE = `CREATE TABLE IF NOT EXISTS cf_agents_long_text (
  key TEXT NOT NULL, piece INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (key, piece)) WITHOUT ROWID`;
const EXISTS = "SELECT 1 AS found FROM sqlite_master WHERE type = 'table' AND name = 'cf_agents_long_text'";
const INSERT = "INSERT INTO cf_agents_long_text (key, piece, text) VALUES (?, ?, ?)";
const SELECT = "SELECT text FROM cf_agents_long_text WHERE key = ? ORDER BY piece";
const DELETE = "DELETE FROM cf_agents_long_text WHERE key = ?";
const DELETE_PREFIX = "DELETE FROM cf_agents_long_text WHERE key >= ?1 AND instr(key, ?1) = 1";

export class LongText {
  constructor(private readonly db: SqlDatabase) {}

  /**
   * Returns the value for a column. `key` names the text, unique in the database. Text above `inlineBytes` goes into
   * pieces, which replace earlier ones of this key: call `pack` in the transaction that writes the row. Throws
   * `TOO_LARGE` above `MAX_TEXT_BYTES`.
   *
   * @example
   * db.run("UPDATE turns SET body = ? WHERE n = ?", longText.pack(`turn:${n}`, body), n);
   */
  pack(key: string, text: string, inlineBytes = INLINE_BYTES): PackedText {
    if (fitsUtf8(text, inlineBytes)) return text;
    const bytes = utf8Length(text);
    if (bytes > MAX_TEXT_BYTES) {
      throw new DramatisError(
        "TOO_LARGE",
        `The text has ${bytes} bytes, but at most ${MAX_TEXT_BYTES} are allowed. Store a reference instead.`,
      );
    }
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
    if (utf8Length(text) !== packedBytes(packed)) {
      throw new DramatisError("INTERNAL_ERROR", `Pieces of the text "${key}" are missing.`);
    }
    return text;
  }

  /** Deletes the pieces of a key, if any. Call it when the row is deleted or its text becomes short. */
  discard(key: string): void {
    if (this.exists()) this.db.run(DELETE, key);
  }

  /** Deletes the pieces of all keys with this prefix. */
  discardAll(prefix: string): void {
    if (this.exists()) this.db.run(DELETE_PREFIX, prefix);
  }

  private exists(): boolean {
    return this.db.all(EXISTS).length > 0;
  }
}

/** Returns the size of a column's text in bytes (UTF-8), without reading its pieces. */
export function packedBytes(packed: PackedText): number {
  if (typeof packed === "string") return utf8Length(packed);
  return new DataView(packed.buffer, packed.byteOffset, packed.byteLength).getUint32(0);
}

function handleOf(bytes: number): Uint8Array {
  const handle = new Uint8Array(4);
  new DataView(handle.buffer).setUint32(0, bytes);
  return handle;
}
