/** The tombstones of erased memories: an id, a time, and the hash of a text that extractions may not bring back. */
import type { SqlDatabase } from "../../ports/sql-database.ts";
import { numberOf } from "./memory-id.ts";

const PUT = "INSERT OR REPLACE INTO memory_tombstones (n, id, at, erased, hash) VALUES (?, ?, ?, ?, ?)";
const ERASED = "SELECT id FROM memory_tombstones WHERE n = ? AND erased = 1";
const GET = "SELECT id FROM memory_tombstones WHERE n = ?";
const WITH_HASH = "SELECT 1 AS found FROM memory_tombstones WHERE hash = ? LIMIT 1";

export interface Tombstone {
  n: number;
  id: string;
  /** Milliseconds since the epoch. */
  at: number;
  /** Somebody erased it, so that nothing may be learned from replies that used it. Otherwise its agent gave it up. */
  isErased: boolean;
  hash: string | null;
}

export class Tombstones {
  constructor(private readonly database: SqlDatabase) {}

  put({ n, id, at, isErased, hash }: Tombstone): void {
    this.database.run(PUT, n, id, at, isErased ? 1 : 0, hash);
  }

  /** Returns the id of a memory that is gone. */
  find(n: number): string | undefined {
    return this.database.all<{ id: string }>(GET, n)[0]?.id;
  }

  /** Reports whether somebody erased one of these memories. */
  hasErased(ids: readonly string[]): boolean {
    return ids.some((id) => {
      const n = numberOf(id);
      return n !== null && this.database.all<{ id: string }>(ERASED, n)[0]?.id === id;
    });
  }

  /** Reports whether a text with this hash was erased. */
  hasHash(hash: string): boolean {
    return this.database.all(WITH_HASH, hash).length > 0;
  }
}
