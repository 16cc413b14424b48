/**
 * Brings the copies of an agent's memories up to date: long texts in the object store, then records in the directory, then vectors. The
 * actor is the source of truth. Its reads need no copy except for long texts.
 *
 * MEMCOPY-1  A change adds its memory to the pending entries in its own transaction. The entry stays until every copy has the change. A store failure
 *            or a crash delays a copy and loses no change.
 * MEMCOPY-2  A record never refers to a missing object. A text is put before its record. An object is deleted after its record. A text
 *            leaves the actor when its object is stored.
 * MEMCOPY-3  Each text has an object of its own. The object of a replaced or erased text is deleted.
 * MEMCOPY-5  A text that waits in the actor for its object belongs to one version of the memory. A new text replaces it, and a late put has
 *            no effect.
 * MEMCOPY-4  An unanswered request may still take effect later. Deletions after such a request are repeated after a minute, and only the
 *            repetition counts.
 * MEMCOPY-6  If the actor wakes with pending entries, it treats them as unanswered requests, because it may have stopped during a request.
 */
import type { ObjectStore } from "../../ports/object-store.ts";
import { DramatisError } from "../../shared/errors.ts";
import type { Corpus } from "./corpus.ts";
import type { PendingMemory } from "./pending.ts";
import { excerptOf, type StoredMemory } from "./stored-memory.ts";

const BATCH = 50;
/** Concurrent puts of texts. */
const TEXTS_AT_A_TIME = 6;
/** An unanswered request takes effect within this many milliseconds, or never. */
export const LATE_MS = 60_000;

const STATE_KEY = "memory:copies";

export interface MemoryRecord extends Omit<StoredMemory, "n" | "long" | "hash" | "hidden" | "own"> {
  tenant: string;
  agentId: string;
}

/** The directory of all agents' memories. Identical writes are no-ops, and an older version never replaces a newer version. */
export interface MemoryRecords {
  write(
    owner: { tenant: string; agentId: string },
    records: MemoryRecord[],
    deleted: string[],
  ): Promise<void>;
}

/** The last failure of a store while a copy is pending. Times are milliseconds since the epoch. */
interface CopyState {
  /** Requests before this time may be unanswered. */
  failedAt: number;
  error?: string;
  since?: number;
}

export class Copies {
  /** `pump` brings vectors up to date, and returns the number of pending vectors. */
  constructor(
    private readonly corpus: Corpus,
    private readonly records: () => MemoryRecords | null,
    private readonly pump: () => Promise<number>,
  ) {}

  isBehind(): boolean {
    return this.corpus.exists && this.corpus.rows.pending.list(0, 1).length > 0;
  }

  /** Returns the last failure of a store that left copies pending, if any. */
  failure(): { error?: string; since?: number } {
    const { error, since } = this.#state ?? {};
    return { ...(error !== undefined && { error }), ...(since !== undefined && { since }) };
  }

  /** Brings all copies up to date. Rejects if a copy is still pending. A later call continues. */
  async bringUpToDate(): Promise<void> {
    if (!this.corpus.exists) return;
    this.#noteEarlierEntries();
    const errors: unknown[] = [];
    const attempt = async (step: () => Promise<unknown>) => {
      try {
        await step();
        return true;
      } catch (error) {
        errors.push(error);
        this.#failed(error);
        return false;
      }
    };
    let after = 0;
    for (;;) {
      const batch = this.corpus.rows.pending.list(after, BATCH);
      const last = batch.at(-1);
      if (last === undefined) break;
      after = last.n;
      if (!(await this.#copy(batch, attempt))) break;
    }
    await attempt(this.pump);
    this.corpus.prune();
    if (errors.length > 0) throw errors[0];
    this.#succeeded();
  }

  /** Copies a batch. Returns whether the records were written. If not, further batches wait. */
  async #copy(
    batch: PendingMemory[],
    attempt: (step: () => Promise<unknown>) => Promise<boolean>,
  ): Promise<boolean> {
    const { corpus } = this;
    const objects = corpus.ports.objects();
    if (batch.some(({ n }) => corpus.rows.memories.find(n) === undefined)) await attempt(this.pump);
    if (objects !== null) {
      for (let start = 0; start < batch.length; start += TEXTS_AT_A_TIME) {
        const some = batch.slice(start, start + TEXTS_AT_A_TIME);
        const puts = some.map(({ n }) => this.#putText(objects, n));
        if (!(await attempt(() => Promise.all(puts)))) break;
      }
    }
    // An entry that is read now covers every change in the records below.
    const ready = batch.filter(({ n }) => objects === null || corpus.rows.memories.text(n) === undefined);
    const entries = ready.flatMap(({ n }) => corpus.rows.pending.find(n) ?? []);
    const { puts, deleted } = this.#recordsOf(entries);
    const deletes = ({ n, objects }: PendingMemory) => deleted.has(n) || objects.length > 0;
    const isCertain = !entries.some(deletes) || this.#isCertain;
    const isWritten = await attempt(() => this.#writeRecords(puts, [...deleted.values()]));
    if (!isWritten) return false;
    const isDeleted = await attempt(() => this.#deleteObjects(objects, entries));
    corpus.ports.database.transaction(() => {
      for (const entry of entries) {
        if (!deletes(entry) || (isDeleted && isCertain)) corpus.rows.pending.done(entry);
        else if (isDeleted && !entry.isDeleted) corpus.rows.pending.deleted(entry);
      }
    });
    await attempt(async () => {
      if (!isCertain) throw new NotYetCertain();
    });
    return true;
  }

  /** Puts a text that waits in the actor, then removes it from the actor. */
  async #putText(objects: ObjectStore, n: number): Promise<void> {
    const { memories } = this.corpus.rows;
    const memory = memories.find(n);
    const text = memories.text(n);
    if (memory === undefined || text === undefined) return;
    const key = this.corpus.texts.objectKey({ id: memory.id, version: text.version });
    await objects.put(key, new TextEncoder().encode(text.text), { mediaType: "text/plain; charset=utf-8" });
    this.corpus.ports.database.transaction(() => {
      const now = memories.find(n);
      if (now === undefined || memories.text(n)?.version !== text.version) return;
      const content = excerptOf(text.text);
      memories.put({ ...now, content, long: content !== text.text, ref: key });
      memories.removeText(n);
    });
  }

  /** Returns the records to write, and the ids of the records to delete by memory number. */
  #recordsOf(entries: PendingMemory[]): { puts: MemoryRecord[]; deleted: Map<number, string> } {
    const { tenant, id: agentId } = this.corpus.ports.agent();
    const { memories, tombstones } = this.corpus.rows;
    const stored = memories.byNumbers(entries.map(({ n }) => n));
    const deleted = new Map<number, string>();
    const puts: MemoryRecord[] = [];
    for (const { n, isDeleted } of entries) {
      const memory = stored.get(n);
      const id = memory === undefined ? tombstones.find(n) : memory.id;
      if (memory !== undefined && !memory.hidden) {
        const { n: _, long, hash: __, own: ___, hidden: ____, ...record } = memory;
        const whole = long ? (memories.text(n)?.text ?? "") : memory.content;
        const content = memory.ref === null ? whole : "";
        if (!isDeleted) puts.push({ ...record, tenant, agentId, content });
      } else if (id !== undefined) {
        deleted.set(n, id);
      }
    }
    return { puts, deleted };
  }

  async #writeRecords(puts: MemoryRecord[], deleted: string[]): Promise<void> {
    const records = this.records();
    if (records === null || puts.length + deleted.length === 0) return;
    const { tenant, id: agentId } = this.corpus.ports.agent();
    await records.write({ tenant, agentId }, puts, deleted);
  }

  async #deleteObjects(objects: ObjectStore | null, entries: PendingMemory[]): Promise<void> {
    if (objects === null) return;
    const keys = entries.flatMap((entry) => entry.objects);
    await Promise.all(keys.map((key) => objects.delete(key)));
  }

  /** Reports whether all unanswered requests have expired, so a deletion is final (MEMCOPY-4). */
  get #isCertain(): boolean {
    const failedAt = this.#state?.failedAt;
    return failedAt === undefined || this.corpus.ports.clock.now() - failedAt >= LATE_MS;
  }

  /** Treats entries that an earlier instance left as unanswered requests (MEMCOPY-6). */
  #noteEarlierEntries(): void {
    const { pending } = this.corpus.rows;
    if (pending.hasEarlierEntries())
      this.corpus.ports.keyValue.put<CopyState>(STATE_KEY, {
        ...this.#state,
        failedAt: this.corpus.ports.clock.now(),
      });
    pending.clearEarlierEntries();
  }

  #failed(error: unknown): void {
    if (error instanceof NotYetCertain) return;
    const now = this.corpus.ports.clock.now();
    const message = error instanceof DramatisError ? error.message : "A store failed.";
    this.corpus.ports.keyValue.put<CopyState>(STATE_KEY, {
      failedAt: now,
      error: message,
      since: this.#state?.since ?? now,
    });
  }

  #succeeded(): void {
    const state = this.#state;
    if (state === undefined) return;
    const isOver = this.corpus.ports.clock.now() - state.failedAt >= LATE_MS;
    if (isOver) this.corpus.ports.keyValue.delete(STATE_KEY);
    else if (state.error !== undefined)
      this.corpus.ports.keyValue.put(STATE_KEY, { failedAt: state.failedAt });
  }

  get #state(): CopyState | undefined {
    return this.corpus.ports.keyValue.get<CopyState>(STATE_KEY);
  }
}

/** The deletion must be repeated, because an earlier request may still take effect. */
class NotYetCertain extends DramatisError {
  constructor() {
    super("UNAVAILABLE", "A store did not answer an earlier request. The deletion is repeated.", {
      retriable: true,
    });
  }
}
