/**
 * Keeps rows for some days: idempotency keys, and offers to extractions. A row starts with its day, so old rows are found without an index
 * on time.
 *
 * MEMPRUNE-1  Idempotency keys and offers are kept for seven days. The first change of the memory on a later day deletes them. Each
 *             commit deletes a bounded number.
 */
import type { SqlDatabase } from "../../ports/sql-database.ts";

const DAY_MS = 86_400_000;
/** Days that a row is kept at least. */
const KEPT = 7;
/** Rows per table and commit. */
const AT_ONCE = 500;
/** Pause between checks while no row has expired. */
const PAUSE_MS = 3_600_000;

const prune = (table: string, key: string) =>
  `DELETE FROM ${table} WHERE (day, ${key}) IN (
    SELECT day, ${key} FROM ${table} WHERE day < ? ORDER BY day LIMIT ${AT_ONCE}) RETURNING 1`;
const PRUNES = [prune("memory_requests", "key"), prune("memory_offers", "operation_id")];

export function dayOf(time: number): number {
  return Math.floor(time / DAY_MS);
}

/** The days that count, for a statement with today as its second value. */
export const RETAINED_DAYS = Array.from({ length: KEPT + 1 }, (_, ago) => `?2 - ${ago}`).join(", ");

export class Pruning {
  #nextAt = 0;

  constructor(private readonly database: SqlDatabase) {}

  /** Deletes some expired rows. If no row is left, pauses before the next check. */
  prune(now: number): void {
    if (now < this.#nextAt) return;
    const counts = PRUNES.map((statement) => this.database.all(statement, dayOf(now) - KEPT).length);
    if (Math.max(...counts) < AT_ONCE) this.#nextAt = now + PAUSE_MS;
  }
}
