/**
 * Text of any length in one column of someone else's row. What fits stays in the column as it is. What does not is
 * cut into pieces in a table of their own, made when first needed, and the column holds a small handle instead.
 *
 * LONG-1  `unpack` gives back exactly what `pack` was given.
 * LONG-2  Text that fits costs no statement, neither written nor read.
 * LONG-3  No piece, and no row that keeps within `INLINE_BYTES`, exceeds the platform's limit for a row.
 */
import type { SqlDatabase } from "../../ports/sql-database.ts";
import { DramatisError } from "../../shared/errors.ts";
import { fitsUtf8, splitUtf8, utf8Length } from "../../shared/utf8.ts";

/** Text of up to this many bytes (UTF-8) stays in its row. */
export const INLINE_BYTES = 1_500_000;

/** The longest text that is stored, in bytes (UTF-8). */
export const MAX_TEXT_BYTES = 32 * 1024 * 1024;

const PIECE_BYTES = 1_500_000;

/** What a text column holds: the text itself, or the handle of one that stands in pieces. */
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
   * The value for the column of the row that `key` names (unique over all users of the database). Text above
   * `inlineBytes` goes into pieces, in place of any that stood there under this key; call it inside the transaction
   * that writes the row. Throws `TOO_LARGE` above `MAX_TEXT_BYTES`.
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
        `A text has ${bytes} bytes; ${MAX_TEXT_BYTES} are allowed: store a reference.`,
      );
    }
    this.db.run(CREATE);
    this.db.run(DELETE, key);
    let piece = 0;
    for (const part of splitUtf8(text, PIECE_BYTES)) this.db.run(INSERT, key, piece++, part);
    return handleOf(bytes);
  }

  /** The text behind a column's value; `key` as it was packed. */
  unpack(key: string, packed: PackedText): string {
    if (typeof packed === "string") return packed;
    let text = "";
    for (const row of this.db.each<{ text: string }>(SELECT, key)) text += row.text;
    if (utf8Length(text) !== packedBytes(packed)) {
      throw new DramatisError("INTERNAL_ERROR", `The pieces of the text "${key}" are not complete.`);
    }
    return text;
  }

  /** Deletes the pieces of `key`, if there are any: when its row goes, or its text has become short. */
  discard(key: string): void {
    if (this.exists()) this.db.run(DELETE, key);
  }

  /** Deletes the pieces of every key that starts with `prefix`. */
  discardAll(prefix: string): void {
    if (this.exists()) this.db.run(DELETE_PREFIX, prefix);
  }

  private exists(): boolean {
    return this.db.all(EXISTS).length > 0;
  }
}

/** Size of the text behind a column's value, in bytes (UTF-8), without reading its pieces. */
export function packedBytes(packed: PackedText): number {
  if (typeof packed === "string") return utf8Length(packed);
  return new DataView(packed.buffer, packed.byteOffset, packed.byteLength).getUint32(0);
}

function handleOf(bytes: number): Uint8Array {
  const handle = new Uint8Array(4);
  new DataView(handle.buffer).setUint32(0, bytes);
  return handle;
}
