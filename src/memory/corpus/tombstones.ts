/** The tombstones of erased memories: an id, a time, and the hash of a text that extractions must not restore. */
import type { SqlDatabase } from "../../ports/sql-database.ts";
import { numberOf } from "./memory-id.ts";

const PUT = "INSERT OR REPLACE INTO memory_tombstones (n, id, at, erased, hash) VALUES (?, ?, ?, ?, ?)";
const ERASED = "SELECT id FROM memory_tombstones WHERE n = ? AND erased = 1";
const GET = "SELECT id FROM memory_tombstones WHERE n = ?";
const AFTER = "SELECT n, id, at, erased, hash FROM memory_tombstones WHERE n > ? ORDER BY n LIMIT ?";
const WITH_HASH = "SELECT 1 AS found FROM memory_tombstones WHERE hash = ? LIMIT 1";

const PAGE = 200;

type TombstoneRow = { n: number; id: string; at: number; erased: number; hash: string | null };

export interface Tombstone {
  n: number;
  id: string;
  /** Milliseconds since the epoch. */
  at: number;
  /** Set if a person erased the memory, so replies that used it teach nothing. Unset if the agent deleted it. */
  isErased: boolean;
  hash: string | null;
}

export class Tombstones {
  /** Calls of `put` in this instance. */
  puts = 0;

  constructor(private readonly database: SqlDatabase) {}

  put({ n, id, at, isErased, hash }: Tombstone): void {
    this.puts += 1;
    this.database.run(PUT, n, id, at, isErased ? 1 : 0, hash);
  }

  /** Yields all tombstones, ascending by number. */
  *all(): Generator<Tombstone> {
    for (let after = 0; ; ) {
      const rows = this.database.all<TombstoneRow>(AFTER, after, PAGE);
      for (const { erased, ...row } of rows) yield { ...row, isErased: erased === 1 };
      const last = rows.at(-1);
      if (last === undefined) return;
      after = last.n;
    }
  }

  /** Returns the id of an erased memory. */
  find(n: number): string | undefined {
    return this.database.all<{ id: string }>(GET, n)[0]?.id;
  }

  /** Reports whether a person erased one of these memories. */
  hasErased(ids: readonly string[]): boolean {
    return ids.some((id) => {
      const n = numberOf(id);
      return n !== null && this.database.all<{ id: string }>(ERASED, n)[0]?.id === id;
    });
  }

  hasHash(hash: string): boolean {
    return this.database.all(WITH_HASH, hash).length > 0;
  }
}
