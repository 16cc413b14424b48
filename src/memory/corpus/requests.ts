/**
 * Idempotency keys and the memories written under them. Kept for a week (MEMPRUNE-1).
 *
 * MEMKEY-1  A key belongs to its author. The key of a tool, a task or a run also belongs to its user and conversation.
 * MEMKEY-2  Keys and contents are stored as salted hashes. Erasing a memory deletes the hash of its contents. A repeated request then finds
 *           an erased memory and does not write it again.
 */
import type { SqlDatabase } from "../../ports/sql-database.ts";
import type { MemoryWriter } from "../../protocol/memory.ts";
import { DramatisError } from "../../shared/errors.ts";
import { canonicalJson } from "../../shared/json.ts";
import type { ContentHash } from "./content-hash.ts";
import { dayOf, RETAINED_DAYS } from "./pruning.ts";

const GET = `SELECT hash, id FROM memory_requests WHERE key = ? AND day IN (${RETAINED_DAYS}) ORDER BY day DESC`;
const PUT = "INSERT OR REPLACE INTO memory_requests (day, key, hash, id) VALUES (?, ?, ?, ?)";

const FORGET = "UPDATE memory_requests SET hash = '' WHERE id = ?";

/** The key of a write with its author, and a hash of the contents. */
export interface MemoryRequest {
  key: string;
  hash: string;
}

export class Requests {
  constructor(private readonly database: SqlDatabase) {}

  static async of(
    hash: ContentHash,
    { author, subject }: Pick<MemoryWriter, "author" | "subject">,
    key: string,
    input: object,
  ): Promise<MemoryRequest> {
    const { userId, conversationId } = subject ?? {};
    const owner =
      author.kind === "principal"
        ? author.subject
        : [userId, conversationId, "runId" in author ? author.runId : undefined];
    // SAFETY: a checked input is plain data.
    const text = canonicalJson(JSON.parse(JSON.stringify(input)));
    const owned = JSON.stringify([author.kind, owner, key]);
    return { key: await hash.exact(owned), hash: await hash.exact(text) };
  }

  /** Returns the id from the first write, if any. Throws `IDEMPOTENCY_CONFLICT` if the contents differ. */
  find({ key, hash }: MemoryRequest, now: number): string | undefined {
    const [row] = this.database.all<{ hash: string; id: string }>(GET, key, dayOf(now));
    if (row === undefined || row.hash === hash || row.hash === "") return row?.id;
    throw new DramatisError(
      "IDEMPOTENCY_CONFLICT",
      "Another memory was written under this idempotency key. Use a new key.",
    );
  }

  /** Deletes the content hash of an erased memory, in the current transaction. */
  forget(id: string): void {
    this.database.run(FORGET, id);
  }

  put({ key, hash }: MemoryRequest, id: string, now: number): void {
    this.database.run(PUT, dayOf(now), key, hash, id);
  }
}
