/**
 * The search index of an agent's memories: full text, and vectors in packed rows.
 *
 * MEMINDEX-1  Memories and their index entries are written in one transaction. After a rollback, the index matches the rows.
 * MEMINDEX-2  A write of one memory with a local embedder writes one index row, plus the rows of the full text.
 * MEMINDEX-3  A memory without a vector is found by its words.
 * MEMINDEX-6  A failing or silent model delays a search by at most a second. For the next seconds, searches use words only.
 * MEMINDEX-4  If index rows are missing or have another form, the index is rebuilt from the memories before a search answers.
 * MEMINDEX-5  If an index does not fit the pool, each search reads its rows. The results are the same.
 */
import type { Clock } from "../../../ports/clock.ts";
import { withDeadline } from "../../../ports/deadline.ts";
import type { KeyValue } from "../../../ports/key-value.ts";
import type { ActorDatabase } from "../../../ports/sql-database.ts";
import { defined } from "../../../shared/defined.ts";
import { analyzeQuery } from "../../ranking/analyze-query.ts";
import { rank } from "../../ranking/rank.ts";
import { FullText } from "../full-text.ts";
import type { IndexEntry, IndexQuery, IndexResult, MemoryIndex } from "../memory-index.ts";
import { UnreadableBlock } from "./blocks.ts";
import { changedFacts } from "./entry.ts";
import { type IndexedMemories, IndexJobs, type IndexStatus } from "./jobs.ts";
import { LoadedSpace } from "./loaded-space.ts";
import { type Eligible, EXACT_UP_TO, isWorthAsking, nearestCosines } from "./nearest.ts";
import type { IndexPool } from "./pool.ts";
import { NO_VECTORS, type PreparedVectors, preparedVectors } from "./prepared.ts";
import { Publication, type PublicationStatus, type VectorStore } from "./publication.ts";
import { allowedPlaces, seesAll, visiblePlaces, visibleSpeakers } from "./query.ts";
import { isComplete, similarities } from "./similarities.ts";
import { type QueryVector, queryVector } from "./similarity.ts";
import { createIndexTable, SpaceEdit, SpaceRows } from "./space-rows.ts";
import { activeSpace, NO_SPACES, type Space, type SpacesState, unreadable, wanting } from "./spaces.ts";
import { VisibleText } from "./visible-text.ts";

/** Timeout for the vector of a query, in milliseconds. The recall of a turn allows 2 seconds for the whole search. */
const QUERY_MS = 1_000;
/** Pause in milliseconds after a failure, during which queries have no vector. */
const QUERY_PAUSE_MS = 10_000;
const STATE_KEY = "memory:index";

export interface SearchIndexPorts extends IndexedMemories {
  database: ActorDatabase;
  keyValue: KeyValue;
  clock: Pick<Clock, "now" | "timer">;
  pool: IndexPool;
  /** A store that also receives the vectors. */
  vectors?: VectorStore;
  /** Called at most once per instance, if a search finds work for `pump` that a deployment caused. */
  awaken?(): void;
}

export class SearchIndex implements MemoryIndex<PreparedVectors> {
  readonly #fullText: FullText;
  readonly #jobs: IndexJobs;
  readonly #publication: Publication;
  #isAwake = false;
  /** The time until which queries are not embedded. */
  #queriesPauseUntil = 0;
  #loaded: LoadedSpace | null = null;
  /** First keys of blocks that have changed since they were loaded. */
  #staleFacts = new Set<number>();
  #staleVectors = new Set<number>();
  /** The pool has refused the vectors, or the whole index. */
  #isTooLarge = { vectors: false, facts: false };

  constructor(private readonly ports: SearchIndexPorts) {
    this.#fullText = new FullText(ports.database);
    const { vectors: store, ...others } = ports;
    const stored = {
      ...others,
      state: () => this.#state(),
      save: (state: SpacesState) => this.#save(state),
      changed: (space: Space, edit: SpaceEdit) => this.#flush(space, edit),
    };
    this.#jobs = new IndexJobs(stored);
    this.#publication = new Publication({
      ...stored,
      ...defined({ store }),
      size: () => this.#fullText.size(),
    });
  }

  create(): void {
    createIndexTable(this.ports.database);
    this.#fullText.create();
  }

  /** Embeds texts that `put` will write. Call it before the transaction. Never throws. Missing vectors are made later. */
  async prepare(texts: readonly string[]): Promise<PreparedVectors> {
    const wanted = await this.#jobs.wanted();
    const active = activeSpace(this.#state());
    const former = active?.embedder ? await this.#jobs.embedderOf(active.embedder) : null;
    return preparedVectors(wanted, former, texts);
  }

  /** Adds or replaces memories, in the caller's transaction. If a text is cut, keeps its words and vector. */
  put(entries: readonly IndexEntry[], prepared: PreparedVectors = NO_VECTORS): void {
    const state = this.#wanting(entries, prepared);
    const kept = new Set<number>();
    for (const space of state.spaces) {
      const rows = new SpaceRows(this.ports.database, space);
      const edit = new SpaceEdit(rows);
      for (const entry of entries) {
        if (space.filledTo !== null && entry.n > space.filledTo) continue;
        const before = entry.isCut ? edit.facts(entry.n) : undefined;
        if (before !== undefined) kept.add(entry.n);
        const facts = changedFacts(entry, before);
        edit.putFacts(facts);
        const vector = before === undefined ? prepared.vectorOf(space.embedder, entry.text) : undefined;
        if (vector !== undefined) edit.putVector(facts.n, facts.hash, vector);
        else if (!edit.hasVector(facts.n, facts.hash)) rows.mark(facts.n);
      }
      this.#flush(space, edit, state);
    }
    for (const { n, text } of entries) if (!kept.has(n)) this.#fullText.put(n, text);
  }

  /** Removes memories, in the caller's transaction. */
  remove(ns: readonly number[]): void {
    const state = this.#state();
    for (const space of state.spaces) {
      const edit = new SpaceEdit(new SpaceRows(this.ports.database, space));
      for (const n of ns) edit.remove(n);
      this.#flush(space, edit, state);
    }
    for (const n of ns) this.#fullText.remove(n);
  }

  /** Returns the best memories that the reader may see, best first. */
  async search(query: IndexQuery): Promise<IndexResult> {
    for (let attempt = 1; ; attempt++) {
      const space = await this.#jobs.activeSpace();
      if (space === undefined) return { matches: [], semantic: "none" };
      try {
        const vector = await this.#queryVector(space, query);
        const nearest = vector === null ? null : await this.#nearest(query, space, vector);
        // The rest is synchronous, so it sees one state of the rows.
        if (activeSpace(this.#state())?.number !== space.number) continue;
        const result = this.#ranked(query, space, vector, nearest);
        await this.#awaken();
        return result;
      } catch (error) {
        if (!(error instanceof UnreadableBlock) || attempt > 2) throw error;
        console.error("The memory's index cannot be read and is rebuilt.", error);
        this.ports.database.transaction(() => this.#save(unreadable(this.#state(), space.number)));
      }
    }
  }

  /** Performs one step of the remaining work: vectors of memories, or a new space. Returns the approximate number of steps left, or 0. */
  async pump(): Promise<number> {
    const left = await this.#jobs.pump();
    return left + ((await this.#publication.pump()) ? 1 : 0);
  }

  get isBehind(): boolean {
    return this.#jobs.isBehind || this.#publication.isBehind;
  }

  get error(): IndexStatus["error"] {
    return this.#jobs.error;
  }

  /** Milliseconds until the next step of the vector store, or `undefined` if it is up to date. */
  get waitMs(): number | undefined {
    return this.#publication.waitMs;
  }

  status(): IndexStatus & { vectors?: PublicationStatus } {
    return { ...this.#jobs.status(), ...defined({ vectors: this.#publication.status() }) };
  }

  retainForRemoval() {
    return this.#publication.retainForRemoval();
  }

  unload(): void {
    this.#loaded = null;
    this.#staleFacts.clear();
    this.#staleVectors.clear();
  }

  /** Asks the vector store for the nearest memories. Returns `null` if the search compares all. */
  async #nearest(query: IndexQuery, space: Space, vector: QueryVector): Promise<number[] | null> {
    const isMany = this.#publication.scanned(space) !== null && this.#fullText.size() > EXACT_UP_TO;
    // The store's answer includes memories that the reader may not see. They must not affect the comparison.
    if (!isMany || !seesAll(query.visible)) return null;
    try {
      const loaded = this.#load(space, new SpaceRows(this.ports.database, space), false);
      if (loaded.vectors !== null || !isWorthAsking(loaded, eligibleOf(loaded, query), query.limit))
        return null;
    } catch (error) {
      if (error instanceof UnreadableBlock) return null;
      throw error;
    }
    return this.#publication.nearest(space, vector.exact);
  }

  #ranked(query: IndexQuery, space: Space, vector: QueryVector | null, ns: number[] | null): IndexResult {
    const rows = new SpaceRows(this.ports.database, space);
    const scanned = ns === null ? null : this.#publication.scanned(space);
    const loaded = this.#load(space, rows, scanned === null);
    const { columns } = loaded;
    const eligible = eligibleOf(loaded, query);
    const { visible } = eligible;
    const speakers = visible === undefined ? columns.speakers : visibleSpeakers(columns, visible);
    const analyzed = analyzeQuery(query.text, query.now, speakers);
    const fullText = visible === undefined ? this.#fullText : this.#visibleText(columns, visible);
    const lexical = fullText.search(analyzed.terms);
    const { now, limit, minRelevance, weights } = query;
    const near =
      vector === null || ns === null || scanned === null
        ? null
        : nearestCosines(loaded, rows, vector, { ns, scanned }, { eligible, limit, lexical });
    const all = near === null && vector !== null ? similarities(loaded, rows, vector) : undefined;
    const semantic = near ?? all?.cosines;
    const ranked = rank({
      columns,
      query: analyzed,
      lexical,
      now,
      limit,
      minRelevance,
      weights,
      ...(semantic && { semantic }),
      ...eligible,
    });
    return {
      matches: ranked.map(({ n, score }) => ({ n, score })),
      semantic: semantic === undefined ? "none" : isComplete(rows, all, visible) ? "all" : "some",
    };
  }

  #visibleText(columns: LoadedSpace["columns"], visible: Uint8Array): VisibleText {
    return new VisibleText(this.ports.database, columns, visible);
  }

  /** Returns the rarity of words among the memories that the reader sees. Loads it on first use. */
  #rarityFor(space: Space, visible: IndexQuery["visible"]): (word: string) => number {
    let text: Pick<FullText, "rarity"> | undefined;
    return (word) => {
      if (text === undefined) {
        const { columns } = this.#load(space, new SpaceRows(this.ports.database, space), true);
        const places = visiblePlaces(columns, visible);
        text = places === undefined ? this.#fullText : this.#visibleText(columns, places);
      }
      return text.rarity(word);
    };
  }

  /** Reports work that a deployment caused, once per instance. */
  async #awaken(): Promise<void> {
    if (this.#isAwake || this.ports.awaken === undefined) return;
    this.#isAwake = true;
    if ((await this.#jobs.isNew()) || this.#publication.isBehind) this.ports.awaken();
  }

  async #queryVector(space: Space, { text, visible }: IndexQuery): Promise<QueryVector | null> {
    const { embedder: of } = space;
    if (of === null || this.ports.clock.now() < this.#queriesPauseUntil) return null;
    const embedder = await this.#jobs.embedderOf(of);
    if (embedder === null) return null;
    try {
      const context = {
        rarity: seesAll(visible)
          ? (word: string) => this.#fullText.rarity(word)
          : this.#rarityFor(space, visible),
      };
      const exact = await withDeadline(this.ports.clock, QUERY_MS, (signal) =>
        embedder.embedQuery(text, context, signal),
      );
      return queryVector(exact ?? new Float32Array(of.dimensions));
    } catch (error) {
      if (error instanceof UnreadableBlock) throw error;
      this.#queriesPauseUntil = this.ports.clock.now() + QUERY_PAUSE_MS;
      this.#jobs.failed(error);
      return null;
    }
  }

  /** Returns the space in memory, up to date with its rows. Includes its vectors if `needsVectors` is set or they are already loaded. */
  #load(space: Space, rows: SpaceRows, needsVectors: boolean): LoadedSpace {
    const { pool } = this.ports;
    const mayHaveAll = needsVectors && !this.#isTooLarge.vectors;
    if (this.#loaded?.number === space.number && (this.#loaded.vectors !== null || !mayHaveAll)) {
      this.#refresh(this.#loaded, rows);
      if (pool.hold(this, this.#loaded.bytes)) return this.#loaded;
      this.#isTooLarge.vectors = true;
    }
    this.unload();
    const hold = (bytes: number) => pool.hold(this, bytes);
    if (needsVectors && !this.#isTooLarge.vectors) {
      const whole = new LoadedSpace(space.number, rows, true);
      if (whole.load(hold)) return this.#keep(whole);
      this.#isTooLarge.vectors = true;
    }
    const facts = new LoadedSpace(space.number, rows, false);
    if (!this.#isTooLarge.facts && facts.load(hold)) return this.#keep(facts);
    this.#isTooLarge.facts = true;
    const forThisSearch = new LoadedSpace(space.number, rows, false);
    forThisSearch.load(() => true);
    return forThisSearch;
  }

  #keep(loaded: LoadedSpace): LoadedSpace {
    this.#loaded = loaded;
    return loaded;
  }

  #refresh(loaded: LoadedSpace, rows: SpaceRows): void {
    for (const first of this.#staleFacts) loaded.apply(rows.factsAt(first));
    for (const first of this.#staleVectors) {
      const { vectors } = rows.vectorsAt(first);
      loaded.apply({ first, vectors });
    }
    this.#staleFacts.clear();
    this.#staleVectors.clear();
  }

  /** Writes the changed blocks. Memory reloads them at the next search, after a commit or a rollback. */
  #flush(space: Space, edit: SpaceEdit, state = this.#state()): void {
    // The publication looks at the blocks as they were before this change.
    this.#publication.note(space, edit, state);
    const { facts, vectors } = edit.flush();
    if (space.number !== this.#loaded?.number) return;
    for (const first of facts) this.#staleFacts.add(first);
    for (const first of vectors) this.#staleVectors.add(first);
  }

  #wanting(entries: readonly IndexEntry[], { wanted }: PreparedVectors): SpacesState {
    const state = this.#state();
    if (wanted === undefined) return state.spaces.length > 0 ? state : this.#added(state, null, entries);
    return this.#added(state, wanted, entries);
  }

  #added(state: SpacesState, wanted: Space["embedder"], entries: readonly IndexEntry[]): SpacesState {
    const own = new Set(entries.map(({ n }) => n));
    const isEmpty = () => this.ports.entriesAfter(0, entries.length + 1).every(({ n }) => own.has(n));
    const next = wanting(state, wanted, state.spaces.length === 0 && isEmpty());
    if (next !== state) this.#save(next);
    return next;
  }

  #state(): SpacesState {
    return this.ports.keyValue.get<SpacesState>(STATE_KEY) ?? NO_SPACES;
  }

  #save(state: SpacesState): void {
    this.ports.keyValue.put(STATE_KEY, this.#publication.withdrawn(state));
  }
}

function eligibleOf(
  { columns }: LoadedSpace,
  { visible: reader, filter, allowed: ns }: IndexQuery,
): Eligible {
  const visible = visiblePlaces(columns, reader);
  const allowed = allowedPlaces(columns, filter, ns);
  return { ...(visible && { visible }), ...(allowed && { allowed }) };
}
