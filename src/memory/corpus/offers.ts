/** The memories offered to extractions, and the outcomes of their operations. Kept for a week (MEMPRUNE-1). */
import type { SqlDatabase } from "../../ports/sql-database.ts";
import type { MemoryOutcome } from "../../protocol/memory-schemas.ts";
import { dayOf, RETAINED_DAYS } from "./pruning.ts";

const GET = `SELECT body FROM memory_offers WHERE operation_id = ? AND day IN (${RETAINED_DAYS}) ORDER BY day DESC`;
const PUT = "INSERT OR REPLACE INTO memory_offers (day, operation_id, body) VALUES (?, ?, ?)";

export interface Offer {
  /** Ids with the versions that the extraction saw. */
  offered: [id: string, version: number][];
  /** Some of the memories are tainted, so the extraction is tainted (RECALL-8). */
  tainted?: true;
  /** Absent until the extraction has been applied. */
  outcomes?: MemoryOutcome[];
}

export class Offers {
  constructor(private readonly database: SqlDatabase) {}

  find(operationId: string, now: number): Offer | undefined {
    const [row] = this.database.all<{ body: string }>(GET, operationId, dayOf(now));
    // SAFETY: only `put` writes the column.
    return row === undefined ? undefined : (JSON.parse(row.body) as Offer);
  }

  put(operationId: string, offer: Offer, now: number): void {
    this.database.run(PUT, dayOf(now), operationId, JSON.stringify(offer));
  }
}
