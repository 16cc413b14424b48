/**
 * Rows that the memory keeps for some days: keys of idempotency, and offers to extractions. Rows begin with their day, so that old ones are found and
 * deleted without an index of their times.
 *
 * MEMPRUNE-1  Keys of idempotency and offers are kept for seven days, and deleted within the next one that the memory is changed on. Each commit
 *             deletes a bounded number.
 */
import type { SqlDatabase } from "../../ports/sql-database.ts";

const DAY_MS = 86_400_000;
/** Days that a row is kept at least. */
const KEPT = 7;
/** Rows of a table that one commit deletes. */
const AT_ONCE = 500;
/** Milliseconds between two looks at the tables, while there is nothing left to delete. */
const PAUSE_MS = 3_600_000;

const prune = (table: string, key: string) =>
  `DELETE FROM ${table} WHERE (day, ${key}) IN (
    SELECT day, ${key} FROM ${table} WHERE day < ? ORDER BY day LIMIT ${AT_ONCE}) RETURNING 1`;
const PRUNES = [prune("memory_requests", "key"), prune("memory_offers", "operation_id")];

/** Returns the day of a time in milliseconds since the epoch. */
export function dayOf(time: number): number {
  return Math.floor(time / DAY_MS);
}

/** The days of rows that count, in a statement whose second value is the present day. */
export const KEPT_DAYS = Array.from({ length: KEPT + 1 }, (_, ago) => `?2 - ${ago}`).join(", ");

/** Deletes rows that are too old. */
export class Pruning {
  #nextAt = 0;

  constructor(private readonly database: SqlDatabase) {}

  /** Deletes some. Looks again only after a while where none are left. */
  prune(now: number): void {
    if (now < this.#nextAt) return;
    const counts = PRUNES.map((statement) => this.database.all(statement, dayOf(now) - KEPT).length);
    if (Math.max(...counts) < AT_ONCE) this.#nextAt = now + PAUSE_MS;
  }
}
