/**
 * The memory of one agent, in its actor's database. The actor is the only writer and the source of truth.
 *
 * MEMSTORE-1  A call is one transaction of rows, log, index and pending marks. A batch is written as a whole or not at all. Searches find
 *             its memories as soon as the call returns.
 * MEMSTORE-2  A second write with the same key and subject updates the memory. A repeated write with the same idempotency key returns the
 *             first result. If its contents differ, it is refused.
 * MEMSTORE-3  Invalid input leaves the memory unchanged.
 * MEMSTORE-4  An erased memory leaves only its id, a time and a hash. Its texts and its log are deleted.
 */
import type { MemoryFilter, MemoryReader, MemoryWriter } from "../../protocol/memory.ts";
import type { MemoryChange, MemoryInput, MemoryQuery } from "../../protocol/memory-requests.ts";
import type { Memory, MemorySearchResult, MemoryWhy } from "../../protocol/memory-schemas.ts";
import { defined } from "../../shared/defined.ts";
import { notFound } from "../../shared/errors.ts";
import { type Page, type PageOptions, pageOf } from "../../shared/page.ts";
import { validate } from "../../shared/validation.ts";
import { ContentHash } from "./content-hash.ts";
import { MAX_LOG } from "./corpus-limits.ts";
import type { CorpusPorts } from "./corpus-ports.ts";
import { CorpusRows } from "./corpus-rows.ts";
import { archived, type Cause, changed, isDirect, staleVersion, written } from "./decide.ts";
import { type Erasure, eraseWithDerived, outlivesSource } from "./erase.ts";
import { erasedSource } from "./erased-sources.ts";
import { indexQuery } from "./index-query.ts";
import { memoryId, numberOf } from "./memory-id.ts";
import type { IndexResult } from "./memory-index.ts";
import { MemoryTexts } from "./memory-texts.ts";
import { type PreparedInput, prepareInput } from "./prepared-input.ts";
import { Pruning } from "./pruning.ts";
import { Rights, type TextSubject, textSubject } from "./rights.ts";
import {
  type CheckedFilter,
  type CheckedInput,
  changeSchema,
  checkSizes,
  inputsSchema,
  listSchema,
  querySchema,
} from "./schemas.ts";
import { isLong, type StoredMemory, toMemory } from "./stored-memory.ts";
import { createTables } from "./tables.ts";
import { checkChange, checkMayWrite, sees, shownScore, type Visible, visibleTo } from "./visibility.ts";

export class Corpus {
  readonly rows: CorpusRows;
  readonly hash: ContentHash;
  readonly texts: MemoryTexts;
  readonly rights: Rights;
  readonly #pruning: Pruning;
  #exists = false;

  constructor(readonly ports: CorpusPorts) {
    this.rows = new CorpusRows(ports.database, ports.index, (memory) => this.texts.objectKey(memory));
    this.texts = new MemoryTexts(ports, this.rows.memories);
    this.rights = new Rights(this.rows.memories);
    this.hash = new ContentHash(ports.keyValue);
    this.#pruning = new Pruning(ports.database);
  }

  /** Reports whether the agent has ever had a memory. */
  get exists(): boolean {
    if (this.#exists) return true;
    const exists = this.rows.memories.exists();
    // If the transaction rolls back, its tables roll back too.
    this.#exists = exists && !this.ports.database.isInTransaction();
    return exists;
  }

  /** Clears cached state after the tables were dropped. */
  forget(): void {
    this.#exists = false;
    this.ports.index.unload();
  }

  async write(writer: MemoryWriter, inputs: MemoryInput[]): Promise<Memory[]> {
    const { id } = this.ports.agent();
    this.visibleTo(writer.reader);
    checkMayWrite(writer.reader);
    const checked = validate(inputsSchema, inputs, "/memories", "A memory");
    for (const [index, input] of checked.entries()) checkSizes(input, `/memories/${index}`);
    const prepared = await Promise.all(checked.map((input) => prepareInput(this.hash, writer, input)));
    const vectors = await this.ports.index.prepare(checked.map(({ content }) => content));
    const cause = this.causeOf(writer);
    const stored = await this.change(
      () => prepared.map((one) => this.#writePrepared(one, writer, cause, vectors)),
      cause,
    );
    return stored.map((memory) => toMemory(id, memory, this.texts.inRows(memory)));
  }

  async read(reader: MemoryReader, id: string): Promise<Memory> {
    const memory = this.seen(reader, id);
    return toMemory(this.ports.agent().id, memory, await this.texts.of(memory));
  }

  async list(reader: MemoryReader, options: PageOptions & MemoryFilter = {}): Promise<Page<Memory>> {
    const { id } = this.ports.agent();
    const visible = this.visibleTo(reader);
    const { limit, cursor, order, ...filter } = validate(listSchema, options, "/options");
    if (!this.exists) return { items: [] };
    await this.#endDue();
    const start = cursor === undefined ? null : numberOf(cursor);
    const after = start ?? (order === "asc" ? 0 : Number.MAX_SAFE_INTEGER);
    const rows = this.rows.memories.list(visible, filter, { order, after, limit: limit + 1 });
    return pageOf(
      rows,
      limit,
      (memory) => toMemory(id, memory),
      (memory) => memory.id,
    );
  }

  async search(reader: MemoryReader, query: MemoryQuery): Promise<MemorySearchResult> {
    const { id } = this.ports.agent();
    const { matches, semantic } = await this.find(reader, query);
    return {
      matches: matches.map(({ memory, score }) => ({
        memory: toMemory(id, memory),
        score: shownScore(reader, score),
      })),
      semantic,
    };
  }

  /** As `search`, with the memories as stored. */
  async find(reader: MemoryReader, given: MemoryQuery) {
    const visible = this.visibleTo(reader);
    const query = validate(querySchema, given, "/query");
    if (!this.exists) return { matches: [], semantic: "none" as const };
    await this.#endDue();
    const numbers = (filter: CheckedFilter) => this.rows.memories.numbers(visible, filter);
    const now = this.ports.clock.now();
    const indexed = indexQuery(query, visible, numbers, now);
    const first = await this.ports.index.search(indexed);
    const found = this.#readable(visible, first);
    if (first.matches.length < indexed.limit || found.length === first.matches.length)
      return { matches: found, semantic: first.semantic };
    // Some results were erased after the query. Search again among the rows, so other memories fill their places.
    const second = await this.ports.index.search(
      indexQuery(query, visible, numbers, now, { ofRowsOnly: true }),
    );
    return { matches: this.#readable(visible, second), semantic: second.semantic };
  }

  async update(writer: MemoryWriter, id: string, given: MemoryChange): Promise<Memory> {
    const { ifVersion, ...change } = validate(changeSchema, given, "");
    checkSizes(change);
    checkChange(writer.reader, change);
    const { userId } = this.#changeable(writer, id);
    const text = change.content;
    const hash = text === undefined ? "" : await this.hash.of(userId, text);
    const vectors = await this.ports.index.prepare(text === undefined ? [] : [text]);
    const cause = this.causeOf(writer);
    const stored = await this.change(() => {
      const memory = this.#changeable(writer, id);
      if (ifVersion !== undefined && memory.version !== ifVersion) throw staleVersion(memory, ifVersion);
      return this.applyChange(memory, change, cause, { hash, vectors });
    }, cause);
    return toMemory(this.ports.agent().id, stored, await this.texts.of(stored));
  }

  async delete(writer: MemoryWriter, id: string): Promise<null> {
    await this.change(() => {
      const memory = this.rights.changeable(writer.reader, this.seen(writer.reader, id, { hidden: true }));
      this.applyErasure(memory, { isErased: true, hash: memory.hash });
      return null;
    });
    return null;
  }

  async archive(writer: MemoryWriter, id: string): Promise<Memory> {
    const cause = this.causeOf(writer);
    const stored = await this.change(() => this.applyArchive(this.#changeable(writer, id), cause), cause);
    return toMemory(this.ports.agent().id, stored, await this.texts.of(stored));
  }

  async why(reader: MemoryReader, id: string): Promise<MemoryWhy> {
    const memory = this.seen(reader, id);
    const { memories } = this.rows;
    return {
      memory: toMemory(this.ports.agent().id, memory, await this.texts.of(memory)),
      sources: memories.sources(memory.n),
      derivedFrom: memories.parts(memory.n),
      log: [...memories.log(memory.n, MAX_LOG)],
    };
  }

  /** Returns the counts of memories and of pending copies (at most 1,000). */
  status(): { memories: number; archived: number; pending: number } {
    if (!this.exists) return { memories: 0, archived: 0, pending: 0 };
    return { ...this.rows.counts.get(), pending: this.rows.pending.count() };
  }

  prune(): void {
    if (this.exists) this.#pruning.prune(this.ports.clock.now());
  }

  visibleTo(reader: MemoryReader): Visible {
    return visibleTo(reader, this.ports.agent().tenant);
  }

  /** Returns a memory that the reader may see. A hidden memory is visible only for erasure (MEMSRC-3). Throws `NOT_FOUND`. */
  seen(reader: MemoryReader, id: string, { hidden = false } = {}): StoredMemory {
    const visible = this.visibleTo(reader);
    const memory = this.findById(id);
    if (memory !== undefined && sees(visible, memory) && (hidden || !memory.hidden)) return memory;
    throw notFound(`There is no memory "${String(id).slice(0, 40)}".`);
  }

  findById(id: string): StoredMemory | undefined {
    const n = typeof id === "string" && this.exists ? numberOf(id) : null;
    const memory = n === null ? undefined : this.rows.memories.find(n);
    return memory?.id === id ? memory : undefined;
  }

  /** Runs changes in one transaction, and resolves when their wake-up is armed. Throws `CONFLICT` if a source was erased (MEMSRC-5). */
  async change<Value>(
    body: () => Value,
    { sources }: Pick<Cause, "sources"> = { sources: [] },
  ): Promise<Value> {
    let armed: Promise<void> | undefined;
    const value = this.ports.database.transaction(() => {
      // Throws if the agent was deleted.
      this.ports.agent();
      this.createTables();
      if (sources.some((source) => this.rows.erased.has(source))) throw erasedSource();
      const result = this.rows.together(body);
      armed = this.ports.noted();
      return result;
    });
    // An outer transaction may still roll back. It has ended when a microtask runs.
    if (this.ports.database.isInTransaction()) queueMicrotask(() => this.ports.committed());
    else this.ports.committed();
    await armed;
    return value;
  }

  /** Creates missing tables in the transaction of a change. */
  createTables(): void {
    if (this.exists) return;
    createTables(this.ports.database);
    this.ports.index.create();
  }

  causeOf({ author, sources = [], tainted = false }: MemoryWriter): Cause {
    return { now: this.ports.clock.now(), by: author, sources, tainted };
  }

  applyChange(
    memory: StoredMemory,
    change: Parameters<typeof changed>[1],
    cause: Cause,
    { hash, vectors }: { hash: string; vectors: unknown },
  ): StoredMemory {
    // Rewriting the text of a hidden or archived memory restores it.
    const isVisible = !memory.hidden && memory.state !== "archived";
    const isKnown = change.content !== undefined && this.#hasText(memory, change.content, hash);
    const decided = changed(memory, change, cause, { hash, isKnown, isSame: isVisible && isKnown });
    const stored = decided === null ? memory : this.rows.apply(decided, memory, vectors);
    if (isKnown) this.#confirm(stored, cause);
    else if (decided === null)
      for (const source of cause.sources) this.rows.memories.addSource(memory.n, source);
    return stored;
  }

  /** Adds the sources of a text to the memory that already has it, in the current transaction. Returns that memory (SAMETEXT-1). */
  mergeEqualText(
    reader: MemoryReader,
    text: { hash: string; subject: TextSubject; given: Partial<StoredMemory> },
    cause: Cause,
  ): StoredMemory | undefined {
    const found = this.rights.withText(reader, { ...text, visible: this.visibleTo(reader) });
    // If the writer may only read the memory, add no sources: their removal would erase the memory.
    return found?.isOwn ? this.#confirm(found.memory, cause) : found?.memory;
  }

  applyArchive(memory: StoredMemory, cause: Cause): StoredMemory {
    const decided = archived(memory, cause);
    if (decided === null) return memory;
    // The text goes to the object store. It stays in the actor until the object is stored.
    const isInRow = memory.ref === null && !memory.long && this.ports.objects() !== null;
    if (isInRow && this.rows.memories.text(memory.n) === undefined)
      this.rows.memories.putText(memory.n, decided.memory.version, memory.content);
    return this.rows.apply(decided, memory, null);
  }

  /** Erases a memory in the current transaction, with all memories that depend only on it. */
  applyErasure(memory: StoredMemory, erasure: Erasure): void {
    eraseWithDerived(this.rows, this.ports.clock.now(), memory, erasure);
  }

  /** Hides a memory that has lost a source and marks it for rederivation. Erases it if no source or author remains. */
  lostSource(memory: StoredMemory, isErased: boolean): void {
    if (!outlivesSource(this.rows, memory)) this.applyErasure(memory, { isErased, hash: null });
  }

  applyWrite(
    subject: { userId: string | null; conversationId: string | null; hash: string },
    input: CheckedInput,
    cause: Cause,
    vectors: unknown,
  ): StoredMemory {
    const n = this.rows.memories.next();
    const identity = { n, id: memoryId(this.ports.ids.ulid(), n), ...subject };
    return this.rows.apply(written(identity, input, cause), undefined, vectors);
  }

  /** Adds the sources of a cause that repeats the text of a memory. */
  #confirm(memory: StoredMemory, cause: Cause): StoredMemory {
    const { memories } = this.rows;
    const confirmed = { ...memory, own: memory.own || isDirect(cause) };
    if (confirmed.own !== memory.own) memories.put(confirmed);
    const statedVersion = cause.isDerived ? {} : { statedVersion: memory.version };
    for (const source of cause.sources) memories.addSource(memory.n, { ...source, ...statedVersion });
    return confirmed;
  }

  #writePrepared(
    prepared: PreparedInput,
    writer: MemoryWriter,
    cause: Cause,
    vectors: unknown,
  ): StoredMemory {
    const { input, userId, conversationId, hash, request } = prepared;
    const first = request === null ? undefined : this.rows.requests.find(request, cause.now);
    if (first !== undefined) return this.#repeated(writer.reader, first);
    const { content, key, subject: _, idempotencyKey: __, agentId: ___, ...fields } = input;
    const { reader } = writer;
    const subject = textSubject(reader, { userId, conversationId });
    const known = key === undefined ? undefined : this.rights.withKey(reader, key, subject);
    const { type, significance, ...facts } = fields;
    // A model may choose another type and significance for the same text each time.
    const given = defined("principal" in reader ? { ...fields, key } : facts);
    const stored =
      known === undefined
        ? (this.mergeEqualText(reader, { hash, subject, given }, cause) ??
          this.applyWrite({ userId, conversationId, hash }, input, cause, vectors))
        : this.applyChange(known, { ...fields, key, content }, cause, { hash, vectors });
    if (request !== null) this.rows.requests.put(request, stored.id, cause.now);
    return stored;
  }

  /**
   * Returns the memory of an earlier write with the same idempotency key. A memory that was written without a source is returned even while
   * it waits for rederivation.
   */
  #repeated(reader: MemoryReader, id: string): StoredMemory {
    const memory = this.findById(id) ?? this.rows.memories.findCondemned(numberOf(id) ?? 0);
    return memory?.own && sees(this.visibleTo(reader), memory) ? memory : this.seen(reader, id);
  }

  /** Reports whether a memory has this text. If only the object store has the text, compares hashes. */
  #hasText(memory: StoredMemory, text: string, hash: string): boolean {
    const whole = this.texts.inRows(memory);
    return whole === undefined ? isLong(text) && hash === memory.hash : text === whole;
  }

  /** Returns the search results that still exist and that the reader may see. */
  #readable(visible: Visible, { matches }: IndexResult) {
    const memories = this.rows.memories.byNumbers(matches.map(({ n }) => n));
    return matches.flatMap(({ n, score }) => {
      const memory = memories.get(n);
      return memory !== undefined && sees(visible, memory) ? [{ memory, score }] : [];
    });
  }

  #changeable({ reader }: MemoryWriter, id: string): StoredMemory {
    return this.rights.changeable(reader, this.seen(reader, id));
  }

  /** Ends the memories that have passed `validTo`. */
  async #endDue(): Promise<void> {
    const due = this.rows.memories.ending(this.ports.clock.now());
    if (due.length === 0) return;
    await this.change(() => {
      for (const memory of due) this.rows.hide(memory, { state: "ended" });
    });
    await this.#endDue();
  }
}
