/**
 * Index jobs that run after commits: vectors of remote embedders, and the spaces of new embedders.
 *
 * MEMJOBS-1  Each part of a job is its own commit, so an interrupted job resumes at the next part.
 * MEMJOBS-2  A vector is written only if its memory still has the embedded text.
 * MEMJOBS-4  A part reads only the memories that it embeds and their rows. So the work grows linearly with the memories.
 * MEMJOBS-5  A deployment may bring a new embedder or vector store. The next write or search of an agent starts the job.
 * MEMJOBS-3  The status reports a failure. The next attempt follows a pause, which grows with consecutive failures.
 */
import { unanswered, withDeadline } from "../../../ports/deadline.ts";
import { backoffMs } from "../../../shared/backoff.ts";
import { defined } from "../../../shared/defined.ts";
import { errorText } from "../../../shared/errors.ts";
import type { Embedder } from "../../embedders/embedder.ts";
import type { IndexEntry } from "../memory-index.ts";
import { changedFacts, type QuantizedVector } from "./entry.ts";
import { vectorsOf } from "./prepared.ts";
import { deleteRows, SpaceEdit, SpaceRows, type StoredSpaces } from "./space-rows.ts";
import {
  activeSpace,
  filled,
  type Space,
  type SpaceEmbedder,
  type SpacesState,
  spaceOf,
  wanting,
} from "./spaces.ts";

/** Memories per part: to fill a space, and to embed. */
const [FILLED_AT_ONCE, EMBEDDED_AT_ONCE] = [256, 64];
/** Rows of a dropped space that one commit deletes. */
const DELETED_AT_ONCE = 256;
/** Most rows that the status reads. */
const MARKS_COUNTED = 20;
/** Timeout of an embedder, in milliseconds. */
const EMBED_MS = 30_000;
/** First and longest pause after a failure, in milliseconds. */
const [FIRST_PAUSE_MS, LONGEST_PAUSE_MS] = [1_000, 300_000];

export interface IndexStatus {
  /** The embedder of searches. `null` if searches use words only. Absent before the first memory. */
  embedder?: SpaceEmbedder;
  /**
   * Memories without a vector in the active or a new space, and whether a new space is being filled. Beyond some rows, it is an upper
   * bound.
   */
  pending: { memories: number; isFilling: boolean };
  /** Reason and start of the current failures, and the time of the next attempt. Times are milliseconds since the epoch. */
  error?: { message: string; since: number; retryAt: number };
}

export interface IndexedMemories {
  /** The embedder of new vectors, or `null`. */
  embedder(): Promise<Embedder | null>;
  /** The embedder of an older index, by its id, or `null` if it can no longer be used. */
  formerEmbedder?(id: string): Promise<Embedder | null>;
  /** Returns at most `limit` memories with keys above `n`, ascending. */
  entriesAfter(n: number, limit: number): IndexEntry[];
}

export class IndexJobs {
  #failure: { message: string; since: number; retryAt: number; times: number } | null = null;
  /** Spaces that wait because their embedder was unavailable. */
  readonly #waiting = new Set<number>();
  #building: Promise<void> | null = null;

  constructor(private readonly ports: StoredSpaces & IndexedMemories) {}

  /** Returns the embedder of new vectors. `null` if the deployment has no embedder, `undefined` if it is unavailable now. */
  async wanted(): Promise<Embedder | null | undefined> {
    try {
      return await this.ports.embedder();
    } catch (error) {
      this.failed(error);
      return undefined;
    }
  }

  /** Returns an embedder by its name, or `null` if it cannot be used. */
  async embedderOf(of: NonNullable<SpaceEmbedder>): Promise<Embedder | null> {
    const isIt = (one: Embedder | null | undefined) => one?.id === of.id && one.dimensions === of.dimensions;
    const wanted = await this.wanted();
    if (wanted && isIt(wanted)) return wanted;
    try {
      const former = (await this.ports.formerEmbedder?.(of.id)) ?? null;
      return isIt(former) ? former : null;
    } catch (error) {
      this.failed(error);
      return null;
    }
  }

  /** Returns the space of searches, and builds the first space if there are memories. `undefined` without memories. */
  async activeSpace(): Promise<Space | undefined> {
    const active = activeSpace(this.ports.state());
    if (active !== undefined) return active;
    if (this.ports.entriesAfter(0, 1).length === 0) return undefined;
    this.#building ??= this.#build().finally(() => {
      this.#building = null;
    });
    await this.#building;
    return activeSpace(this.ports.state());
  }

  /** Reports whether the memories need a space for a new embedder. */
  async isNew(): Promise<boolean> {
    const wanted = await this.wanted();
    if (!wanted) return false;
    return spaceOf(this.ports.state(), { id: wanted.id, dimensions: wanted.dimensions }) === undefined;
  }

  status(): IndexStatus {
    const state = this.ports.state();
    const memories = state.spaces.reduce((sum, space) => sum + this.#lackingIn(space), 0);
    const { error } = this;
    return {
      ...defined({ embedder: activeSpace(state)?.embedder }),
      pending: { memories, isFilling: state.spaces.some(({ filledTo }) => filledTo !== null) },
      ...(error && { error }),
    };
  }

  get error(): IndexStatus["error"] {
    if (this.#failure === null) return undefined;
    const { times: _, ...error } = this.#failure;
    return error;
  }

  get isBehind(): boolean {
    return this.#left() > 0;
  }

  failed(error: unknown): void {
    const now = this.ports.clock.now();
    const times = (this.#failure?.times ?? 0) + 1;
    const retryAt = now + backoffMs(times, FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
    this.#failure = { message: errorText(error), since: this.#failure?.since ?? now, retryAt, times };
  }

  async pump(): Promise<number> {
    if (this.#failure !== null && this.ports.clock.now() < this.#failure.retryAt) return this.#left();
    const before = this.#failure;
    try {
      await this.#part();
      if (this.#failure === before) this.#failure = null;
    } catch (error) {
      this.failed(error);
    }
    return this.#left();
  }

  async #part(): Promise<void> {
    const wanted = await this.wanted();
    if (wanted !== undefined) this.#want(wanted && { id: wanted.id, dimensions: wanted.dimensions });
    this.#waiting.clear();
    const state = this.ports.state();
    const [dropped] = state.dropped;
    if (dropped !== undefined) this.#deleteOf(dropped);
    const filling = state.spaces.find(({ filledTo }) => filledTo !== null);
    if (filling !== undefined) return this.#fill(filling);
    for (const space of state.spaces) if (this.#rows(space).marks(1).length > 0) await this.#embed(space);
  }

  async #build(): Promise<void> {
    const wanted = await this.wanted();
    this.#want(wanted ? { id: wanted.id, dimensions: wanted.dimensions } : null);
    for (;;) {
      const state = this.ports.state();
      const space = state.spaces.find(({ filledTo }) => filledTo !== null);
      if (activeSpace(state) !== undefined || space === undefined) return;
      await this.#fill(space);
    }
  }

  /** Creates a space for the embedder if there are memories and the embedder has no space. */
  #want(embedder: SpaceEmbedder): void {
    this.ports.database.transaction(() => {
      const state = this.ports.state();
      if (spaceOf(state, embedder) !== undefined && state.spaces.length === 1) return;
      if (this.ports.entriesAfter(0, 1).length === 0) return;
      const next = wanting(state, embedder, false);
      if (next !== state) this.ports.save(next);
    });
  }

  #deleteOf(space: number): void {
    this.ports.database.transaction(() => {
      if (deleteRows(this.ports.database, space, DELETED_AT_ONCE)) return;
      const state = this.ports.state();
      this.ports.save({ ...state, dropped: state.dropped.filter((number) => number !== space) });
    });
  }

  /** Adds the next memories to a space. */
  async #fill({ number, embedder: of }: Space): Promise<void> {
    const next = (after: number) => this.ports.entriesAfter(after, FILLED_AT_ONCE);
    const filledTo = (state: SpacesState) => state.spaces.find((one) => one.number === number)?.filledTo;
    const after = filledTo(this.ports.state());
    if (after === undefined || after === null) return;
    const embedder = of && (await this.embedderOf(of));
    const texts = next(after).map(({ text }) => text);
    const made = embedder?.isLocal ? await vectorsOf(embedder, texts) : new Map<string, QuantizedVector>();
    this.ports.database.transaction(() => {
      const state = this.ports.state();
      const space = state.spaces.find((one) => one.number === number);
      if (space === undefined || space.filledTo !== after) return;
      const entries = next(after);
      const rows = this.#rows(space);
      const edit = new SpaceEdit(rows);
      const active = activeSpace(state);
      const known = active && new SpaceEdit(this.#rows(active));
      for (const entry of entries) {
        const facts = changedFacts(entry, entry.isCut ? known?.facts(entry.n) : undefined);
        edit.putFacts(facts);
        const vector = made.get(entry.text);
        if (vector !== undefined) edit.putVector(facts.n, facts.hash, vector);
        else if (space.embedder !== null) rows.mark(facts.n);
      }
      this.ports.changed(space, edit);
      const last = entries.length < FILLED_AT_ONCE ? null : (entries.at(-1)?.n ?? null);
      this.ports.save(filled(state, number, last, rows.marks(1).length === 0));
    });
  }

  async #embed(space: Space): Promise<void> {
    const embedder = space.embedder && (await this.embedderOf(space.embedder));
    if (embedder === null) {
      this.#waiting.add(space.number);
      return;
    }
    const rows = this.#rows(space);
    const firsts: number[] = [];
    const texts: string[] = [];
    for (const { first } of rows.marks(EMBEDDED_AT_ONCE)) {
      if (texts.length >= EMBEDDED_AT_ONCE) break;
      firsts.push(first);
      texts.push(...this.#lacking(space, first).entries.map(({ text }) => text));
    }
    const batch = texts.slice(0, EMBEDDED_AT_ONCE);
    const made = await withDeadline(
      this.ports.clock,
      EMBED_MS,
      (signal) => (batch.length === 0 ? Promise.resolve(new Map()) : vectorsOf(embedder, batch, signal)),
      { reason: unanswered("The embedder", EMBED_MS) },
    );
    this.ports.database.transaction(() => this.#store(space.number, firsts, made));
  }

  /** Stores vectors of marked rows. Removes the mark of each row that is complete. */
  #store(number: number, firsts: readonly number[], made: ReadonlyMap<string, QuantizedVector>): void {
    const state = this.ports.state();
    const space = state.spaces.find((one) => one.number === number);
    if (space === undefined) return;
    const rows = this.#rows(space);
    for (const first of firsts) {
      const { entries, edit } = this.#lacking(space, first);
      const withVector = entries.filter(({ text }) => made.has(text));
      for (const entry of withVector) {
        const vector = made.get(entry.text);
        if (vector !== undefined) edit.putVector(entry.n, entry.hash, vector);
      }
      this.ports.changed(space, edit);
      if (withVector.length === entries.length) rows.unmark(first);
    }
    const isWhole = rows.marks(1).length === 0;
    if (isWhole && space.filledTo === null && state.active !== number)
      this.ports.save(filled(state, number, null, true));
  }

  /** Returns the memories of a row that have no vector. A long text may be cut to its beginning. */
  #lacking(space: Space, first: number) {
    const rows = this.#rows(space);
    const edit = new SpaceEdit(rows);
    const end = first + rows.vectorsPerRow;
    const entries = this.ports.entriesAfter(first - 1, rows.vectorsPerRow).flatMap(({ n, text }) => {
      const facts = n < end ? edit.facts(n) : undefined;
      return facts === undefined || edit.hasVector(n, facts.hash) ? [] : [{ n, text, hash: facts.hash }];
    });
    return { entries, edit };
  }

  /** Returns the number of memories without a vector in a space. It is an upper bound if many rows are marked. */
  #lackingIn(space: Space): number {
    const rows = this.#rows(space);
    const marks = rows.marks(MARKS_COUNTED);
    const edit = new SpaceEdit(rows);
    let count = 0;
    for (const { first } of marks) {
      for (let n = first; n < first + rows.vectorsPerRow; n++) {
        const facts = edit.facts(n);
        if (facts !== undefined && !edit.hasVector(n, facts.hash)) count += 1;
      }
    }
    const others = marks.length < MARKS_COUNTED ? 0 : rows.countMarks() - marks.length;
    return count + others * rows.vectorsPerRow;
  }

  #left(): number {
    const state = this.ports.state();
    const marked = state.spaces.filter(
      (space) =>
        space.filledTo !== null ||
        (!this.#waiting.has(space.number) && this.#rows(space).marks(1).length > 0),
    );
    return state.dropped.length + marked.length;
  }

  #rows(space: Space): SpaceRows {
    return new SpaceRows(this.ports.database, space);
  }
}
