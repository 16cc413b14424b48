/**
 * Rows about a vector store with the time of the last request: blocks with vectors that the store may lack, memories with vectors to
 * delete, and blocks of a withdrawn space.
 */
import type { SqlDatabase } from "../../../ports/sql-database.ts";
import {
  DELETED_VECTORS,
  keyOf,
  SPAN,
  type SpaceRows,
  type UNSENT_BLOCKS,
  type WITHDRAWN_BLOCKS,
} from "./space-rows.ts";

const ADD = "INSERT OR REPLACE INTO memory_index (key, data) VALUES (?, ?)";
const ADD_ALL =
  "INSERT OR REPLACE INTO memory_index (key, data) SELECT key + ?, x'' FROM memory_index WHERE key >= ? AND key < ?";
const REMOVE = "DELETE FROM memory_index WHERE key = ?";
const RANGE = "SELECT key, data FROM memory_index WHERE key >= ? AND key < ? ORDER BY key LIMIT ?";
const COUNT = "SELECT COUNT(*) AS count FROM memory_index WHERE key >= ? AND key < ?";

/** The number of a block or a memory, and when it was sent, in milliseconds since the epoch. `null` before. */
export interface PublicationRow {
  at: number;
  sentAt: number | null;
}

export type PublicationKind = typeof UNSENT_BLOCKS | typeof DELETED_VECTORS | typeof WITHDRAWN_BLOCKS;

export class PublicationRows {
  constructor(
    private readonly database: SqlDatabase,
    private readonly space: number,
  ) {}

  put(kind: PublicationKind, { at, sentAt }: PublicationRow): void {
    const data = sentAt === null ? new Uint8Array() : new Uint8Array(new Float64Array([sentAt]).buffer);
    this.database.run(ADD, keyOf(this.space, kind, at), data);
  }

  remove(kind: PublicationKind, at: number): void {
    this.database.run(REMOVE, keyOf(this.space, kind, at));
  }

  putAll(kind: PublicationKind, rows: SpaceRows): void {
    const [from, to] = rows.vectorKeys;
    this.database.run(ADD_ALL, keyOf(this.space, kind, 0) - from, from, to);
  }

  /** Returns rows from `from` to below `to`, ascending. */
  list(kind: PublicationKind, limit: number, from = 0, to = SPAN): PublicationRow[] {
    const range = [keyOf(this.space, kind, from), keyOf(this.space, kind, to), limit];
    return this.database.all<{ key: number; data: Uint8Array }>(RANGE, ...range).map(({ key, data }) => ({
      at: key % SPAN,
      sentAt: data.length === 0 ? null : new DataView(data.buffer, data.byteOffset).getFloat64(0, true),
    }));
  }

  /** Returns the memories of a block with vectors that the store must delete first. */
  deletedIn(first: number, perRow: number): Set<number> {
    return new Set(this.list(DELETED_VECTORS, perRow, first, first + perRow).map(({ at }) => at));
  }

  count(kind: PublicationKind): number {
    const range = [keyOf(this.space, kind, 0), keyOf(this.space, kind + 1, 0)];
    return this.database.all<{ count: number }>(COUNT, ...range)[0]?.count ?? 0;
  }
}
