/**
 * Keys of idempotency, and the memories that were written under them. Kept for a week (MEMPRUNE-1).
 *
 * MEMKEY-1  A key belongs to its author, and of a tool, a task or a run to its user and conversation, too.
 * MEMKEY-2  Keys and contents are kept as salted hashes. Of an erased memory the hash of its contents goes, and what repeats the request finds the
 *           memory gone: it is not written again.
 */
import type { SqlDatabase } from "../../ports/sql-database.ts";
import type { MemoryWriter } from "../../protocol/memory.ts";
import { DramatisError } from "../../shared/errors.ts";
import { canonicalJson } from "../../shared/json.ts";
import type { ContentHash } from "./content-hash.ts";
import { dayOf, KEPT_DAYS } from "./kept-days.ts";

const GET = `SELECT hash, id FROM memory_requests WHERE key = ? AND day IN (${KEPT_DAYS}) ORDER BY day DESC`;
const PUT = "INSERT OR REPLACE INTO memory_requests (day, key, hash, id) VALUES (?, ?, ?, ?)";

const FORGET = "UPDATE memory_requests SET hash = '' WHERE id = ?";

/** A write with a key of idempotency: the key with its author, and a hash of what is written. */
export interface MemoryRequest {
  key: string;
  hash: string;
}

export class Requests {
  constructor(private readonly database: SqlDatabase) {}

  /** Returns the request of a writer. */
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

  /** Returns the id that the first write had; `undefined` if there was none. Throws `IDEMPOTENCY_CONFLICT` for other contents. */
  find({ key, hash }: MemoryRequest, now: number): string | undefined {
    const [row] = this.database.all<{ hash: string; id: string }>(GET, key, dayOf(now));
    if (row === undefined || row.hash === hash || row.hash === "") return row?.id;
    throw new DramatisError(
      "IDEMPOTENCY_CONFLICT",
      "Another memory was written under this idempotency key. Use a new key.",
    );
  }

  /** Forgets the contents of an erased memory, in the current transaction. */
  forget(id: string): void {
    this.database.run(FORGET, id);
  }

  put({ key, hash }: MemoryRequest, id: string, now: number): void {
    this.database.run(PUT, dayOf(now), key, hash, id);
  }
}
