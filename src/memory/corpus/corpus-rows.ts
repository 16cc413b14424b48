/**
 * Writes decisions into the rows of a memory: the memory, its log and sources, its text, its entry of the index, and the mark that
 * its copies are behind. Everything in one transaction, the caller's.
 *
 * MEMBATCH-1  Memories that are written together are one change of the index, which writes each of its rows once, and one of the counts.
 * MEMBATCH-2  The numbers of memories are kept beside them, so that the state of a memory is read without counting its rows.
 * MEMBATCH-3  A change that leaves a text as it is leaves the text's words and its vector in the index, also where the actor has only its beginning.
 */
import type { ActorDatabase } from "../../ports/sql-database.ts";
import { defined } from "../../shared/defined.ts";
import type { Decided } from "./decide.ts";
import { ErasedMarks } from "./erased-sources.ts";
import { MemoryCounts } from "./memory-counts.ts";
import type { IndexEntry, MemoryIndex } from "./memory-index.ts";
import { MemoryStore } from "./memory-store.ts";
import { Pending } from "./pending.ts";
import { Requests } from "./requests.ts";
import { isFound, type StoredMemory } from "./stored-memory.ts";
import { Tombstones } from "./tombstones.ts";

/** The changes to make in the index at the end of `together`, by memory; `null` removes. */
type Waiting = Map<number, { entry: IndexEntry; prepared: unknown } | null>;

export class CorpusRows {
  #waiting: Waiting | null = null;
  readonly memories: MemoryStore;
  readonly pending: Pending;
  readonly tombstones: Tombstones;
  readonly counts: MemoryCounts;
  readonly requests: Requests;
  readonly erased: ErasedMarks;

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
    this.erased = new ErasedMarks(database);
  }

  /** The number of erasures in this life, with those that were rolled back. */
  get erasures(): number {
    return this.tombstones.puts + this.erased.puts;
  }

  /** Does all that `body` does to the index at its end (MEMBATCH-1). What may be rolled back alone in it is an `attempt`. */
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

  /** Runs a part of the changes, which rolls back alone where it throws. */
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
   * Stores a decision. `before` is the memory that it changes. `prepared` is that of the index for the new text, or for `known`: the whole text
   * of a memory that comes back to searches.
   */
  apply(
    { memory, log, text, isSaid }: Decided,
    before: StoredMemory | undefined,
    prepared: unknown,
    known?: string,
  ): StoredMemory {
    const { n } = memory;
    this.memories.put(memory);
    this.counts.changed(before, memory);
    this.memories.addLog(n, log);
    const said = isSaid ? { said: log.version } : {};
    for (const source of log.sources) this.memories.addSource(n, { ...source, ...said });
    const objects = text === undefined || before === undefined ? [] : this.#objectsOf(before);
    if (text !== undefined && memory.long) this.memories.putText(n, memory.version, text);
    // A text that waits in the actor has a key. Whatever was before, it was not this one (MEMCOPY-5).
    else if (objects.length > 0) this.memories.removeText(n);
    this.#indexed(memory, before, text ?? known, prepared);
    this.pending.note(n, objects);
    return memory;
  }

  /** Stores a memory of an import. */
  restore(memory: StoredMemory): void {
    this.memories.put(memory);
    this.counts.changed(undefined, memory);
  }

  /** Takes a memory out of searches, or ends it, without a new version. */
  hide(memory: StoredMemory, change: Partial<Pick<StoredMemory, "hidden" | "state">>): void {
    this.memories.put({ ...memory, ...change });
    this.counts.changed(memory, { ...memory, ...change });
    this.#notFound(memory.n);
    this.pending.note(memory.n);
  }

  /** Erases a memory and leaves a tombstone. With a `hash`, extractions do not bring its text back. */
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

  /** Returns the keys of the objects that a text has, or may have where a put was interrupted. */
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

/** Returns the index entry of a memory. `text` is the whole text where the row has only its beginning and it is known. */
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
