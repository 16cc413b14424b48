/** The memories that extractions were offered, and the outcomes of what they did, by operation. */
import type { SqlDatabase } from "../../ports/sql-database.ts";
import type { MemoryOutcome } from "../../protocol/memory.ts";

const GET = "SELECT body FROM memory_offers WHERE operation_id = ?";
const PUT = "INSERT OR REPLACE INTO memory_offers (operation_id, body) VALUES (?, ?)";

export interface Offer {
  /** Ids with the versions that the extraction saw. */
  offered: [id: string, version: number][];
  /** Its outcomes; absent until then. */
  outcomes?: MemoryOutcome[];
}

export class Offers {
  constructor(private readonly database: SqlDatabase) {}

  find(operationId: string): Offer | undefined {
    const [row] = this.database.all<{ body: string }>(GET, operationId);
    // SAFETY: only `put` writes the column.
    return row === undefined ? undefined : (JSON.parse(row.body) as Offer);
  }

  put(operationId: string, offer: Offer): void {
    this.database.run(PUT, operationId, JSON.stringify(offer));
  }
}
