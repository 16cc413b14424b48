/** Keys of idempotency, and the memories that were written under them. A key belongs to its author, and is kept for a week (MEMPRUNE-1). */
import type { SqlDatabase } from "../../ports/sql-database.ts";
import type { MemoryAuthor } from "../../protocol/memory.ts";
import { DramatisError } from "../../shared/errors.ts";
import { canonicalJson } from "../../shared/json.ts";
import { sha256Hex } from "../../shared/sha256.ts";
import { dayOf, KEPT_DAYS } from "./kept-days.ts";

const GET = `SELECT hash, id FROM memory_requests WHERE key = ? AND day IN (${KEPT_DAYS}) ORDER BY day DESC`;
const PUT = "INSERT OR REPLACE INTO memory_requests (day, key, hash, id) VALUES (?, ?, ?, ?)";

/** A write with a key of idempotency: the key with its author, and a hash of what is written. */
export interface MemoryRequest {
  key: string;
  hash: string;
}

export class Requests {
  constructor(private readonly database: SqlDatabase) {}

  /** Returns the request of an author. */
  static async of(author: MemoryAuthor, key: string, input: object): Promise<MemoryRequest> {
    const owner = author.kind === "principal" ? author.subject : "runId" in author ? author.runId : "";
    // SAFETY: a checked input is plain data.
    const text = canonicalJson(JSON.parse(JSON.stringify(input)));
    return { key: JSON.stringify([author.kind, owner, key]), hash: await sha256Hex(text) };
  }

  /** Returns the id that the first write had; `undefined` if there was none. Throws `IDEMPOTENCY_CONFLICT` for other contents. */
  find({ key, hash }: MemoryRequest, now: number): string | undefined {
    const [row] = this.database.all<{ hash: string; id: string }>(GET, key, dayOf(now));
    if (row === undefined || row.hash === hash) return row?.id;
    throw new DramatisError(
      "IDEMPOTENCY_CONFLICT",
      "Another memory was written under this idempotency key. Use a new key.",
    );
  }

  put({ key, hash }: MemoryRequest, id: string, now: number): void {
    this.database.run(PUT, dayOf(now), key, hash, id);
  }
}
