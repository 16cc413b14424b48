/**
 * Writes a decision in the caller's transaction: the memory, its log and sources, its text, its index entry, and its pending mark.
 *
 * MEMBATCH-1  A batch of memories is one change of the index and one change of the counts. It writes each index row once.
 * MEMBATCH-2  The counts of memories are stored, so the state of a memory is read without counting rows.
 * MEMBATCH-3  If a change keeps the text, the index keeps its words and its vector. This holds even if the actor has only the beginning of
 *             the text.
 */
import type { ActorDatabase } from "../../ports/sql-database.ts";
import { defined } from "../../shared/defined.ts";
import type { Decided } from "./decide.ts";
import { ErasedSourceRows } from "./erased-sources.ts";
import { MemoryCounts } from "./memory-counts.ts";
import type { IndexEntry, MemoryIndex } from "./memory-index.ts";
import { MemoryStore } from "./memory-store.ts";
import { Pending } from "./pending.ts";
import { Requests } from "./requests.ts";
import { isFound, type StoredMemory } from "./stored-memory.ts";
import { Tombstones } from "./tombstones.ts";

/** Index changes that `together` makes at its end, by memory. `null` removes the entry. */
type Waiting = Map<number, { entry: IndexEntry; prepared: unknown } | null>;

export class CorpusRows {
  #waiting: Waiting | null = null;
  readonly memories: MemoryStore;
  readonly pending: Pending;
  readonly tombstones: Tombstones;
  readonly counts: MemoryCounts;
  readonly requests: Requests;
  readonly erased: ErasedSourceRows;

  constructor(
    private readonly database: ActorDatabase,
    private readonly index: MemoryIndex,
    private readonly objectKey: (memory: Pick<StoredMemory, "id" | "version">) => string,
  ) {
    this.memories = new MemoryStore(database);
    this.pending = new Pending(database);
    this.tombstones = new Tombstones(database);
    this.requests = new Requests(database);
    this.counts = new MemoryCounts(database);
    this.erased = new ErasedSourceRows(database);
  }

  /** The number of erasures in this instance, including erasures that rolled back. */
  get erasures(): number {
    return this.tombstones.puts + this.erased.puts;
  }

  /** Runs `body`, then makes all its index changes together (MEMBATCH-1). Use `attempt` for a part that may roll back. */
  together<Value>(body: () => Value): Value {
    if (this.#waiting !== null) return body();
    this.#waiting = new Map();
    let value: Value;
    let waiting: Waiting;
    try {
      value = this.counts.together(body);
      waiting = this.#waiting;
    } finally {
      this.#waiting = null;
    }
    const puts = [...waiting.values()].filter((one) => one !== null);
    for (const prepared of new Set(puts.map((one) => one.prepared))) {
      const entries = puts.filter((one) => one.prepared === prepared).map(({ entry }) => entry);
      this.index.put(entries, prepared);
    }
    const removed = [...waiting].filter(([, one]) => one === null).map(([n]) => n);
    if (removed.length > 0) this.index.remove(removed);
    return value;
  }

  /** Runs a part of the changes. If it throws, only this part rolls back. */
  attempt<Value>(body: () => Value): Value {
    const before = this.#waiting && new Map(this.#waiting);
    try {
      return this.counts.attempt(() => this.database.transaction(body));
    } catch (error) {
      this.#waiting = before;
      throw error;
    }
  }

  /**
   * Stores a decision. `before` is the memory before the change. `prepared` is the index data of the new text, or of `known`: the whole
   * text of a restored memory.
   */
  apply(
    { memory, log, text, isStated }: Decided,
    before: StoredMemory | undefined,
    prepared: unknown,
    known?: string,
  ): StoredMemory {
    const { n } = memory;
    this.memories.put(memory);
    this.counts.changed(before, memory);
    this.memories.addLog(n, log);
    const statedVersion = isStated ? { statedVersion: log.version } : {};
    for (const source of log.sources) this.memories.addSource(n, { ...source, ...statedVersion });
    const objects = text === undefined || before === undefined ? [] : this.#objectsOf(before);
    if (text !== undefined && memory.long) this.memories.putText(n, memory.version, text);
    // The key belongs to an older text that waits in the actor (MEMCOPY-5).
    else if (objects.length > 0) this.memories.removeText(n);
    this.#indexed(memory, before, text ?? known, prepared);
    this.pending.note(n, objects);
    return memory;
  }

  restore(memory: StoredMemory): void {
    this.memories.put(memory);
    this.counts.changed(undefined, memory);
  }

  /** Hides a memory from searches or ends it, without a new version. */
  hide(memory: StoredMemory, change: Partial<Pick<StoredMemory, "hidden" | "state">>): void {
    this.memories.put({ ...memory, ...change });
    this.counts.changed(memory, { ...memory, ...change });
    this.#notFound(memory.n);
    this.pending.note(memory.n);
  }

  /** Erases a memory and leaves a tombstone. With a `hash`, extractions cannot restore its text. */
  erase(
    memory: StoredMemory,
    now: number,
    { isErased, hash }: { isErased: boolean; hash: string | null },
  ): void {
    const { n, id } = memory;
    this.pending.note(n, this.#objectsOf(memory));
    this.memories.remove(n);
    this.counts.changed(memory, undefined);
    this.#notFound(n);
    this.requests.forget(id);
    this.tombstones.put({ n, id, at: now, isErased, hash });
  }

  /** Returns the keys of the objects that a text has, or may have if a put was interrupted. */
  #objectsOf(memory: StoredMemory): string[] {
    if (memory.ref !== null) return [memory.ref];
    const text = this.memories.text(memory.n);
    return text === undefined ? [] : [this.objectKey({ id: memory.id, version: text.version })];
  }

  #indexed(
    memory: StoredMemory,
    before: StoredMemory | undefined,
    text: string | undefined,
    prepared: unknown,
  ): void {
    if (isFound(memory)) {
      const entry = indexEntry(memory, text ?? this.memories.text(memory.n)?.text);
      if (this.#waiting === null) this.index.put([entry], prepared);
      else this.#waiting.set(memory.n, { entry, prepared });
    } else if (before !== undefined && isFound(before)) {
      this.#notFound(memory.n);
    }
  }

  #notFound(n: number): void {
    if (this.#waiting === null) this.index.remove([n]);
    else this.#waiting.set(n, null);
  }
}

/** Returns the index entry of a memory. `text` is the whole text, if the row keeps only its beginning. */
export function indexEntry(memory: StoredMemory, text?: string): IndexEntry {
  return {
    n: memory.n,
    text: text ?? memory.content,
    ...(memory.long && text === undefined && { isCut: true as const }),
    type: memory.type,
    time: memory.time ?? memory.createdAt,
    significance: memory.significance,
    changedAt: memory.updatedAt,
    ...defined({
      userId: memory.userId ?? undefined,
      conversationId: memory.conversationId ?? undefined,
      speaker: memory.speaker ?? undefined,
      session: memory.session ?? undefined,
      sequence: memory.sequence ?? undefined,
    }),
  };
}
