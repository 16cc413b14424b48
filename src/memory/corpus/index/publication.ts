/**
 * Copies an index's vectors to a vector store, such as Vectorize, and queries it.
 *
 * MEMVECTORS-1  The store receives only the vectors of the active space. A vector counts as searchable a minute after the store
 *               acknowledged it. Until then, searches compare it themselves.
 * MEMVECTORS-2  A vector leaves the store when its memory leaves searches. Each deletion is repeated after a minute, in case an older
 *               request took effect later. Until then, the memory's vector is not sent again.
 * MEMVECTORS-3  A failing store delays the copy, and the status reports it. Until the store answers, searches compare all vectors. The next
 *               attempt follows a pause, which grows with consecutive failures.
 * MEMVECTORS-4  If a request fails, or the actor stops before its answer, vectors sent within the next minutes are sent again, because an
 *               unanswered request may have taken effect later.
 */
import { unanswered, withDeadline } from "../../../ports/deadline.ts";
import type { KeyValue } from "../../../ports/key-value.ts";
import { MAX_IDS_ONLY, type StoredVector, type VectorIndex } from "../../../ports/vector-index.ts";
import { backoffMs } from "../../../shared/backoff.ts";
import { errorText } from "../../../shared/errors.ts";
import { SENT, SETTLED, UNSENT, type VectorBlock } from "./blocks.ts";
import { Forgetting } from "./forgetting.ts";
import { type PublishedVectors, retainVectors } from "./owned-vectors.ts";
import { type PublicationRow, PublicationRows } from "./publication-rows.ts";
import {
  DELETED_VECTORS,
  SpaceEdit,
  SpaceRows,
  type StoredSpaces,
  UNSENT_BLOCKS,
  WITHDRAWN_BLOCKS,
} from "./space-rows.ts";
import { activeSpace, publishing, type Space, type SpacesState, withdrawing } from "./spaces.ts";
import { idOf, numberOf } from "./vector-ids.ts";

/** Time in milliseconds after which a request has taken effect and queries see it. */
const SETTLED_MS = 60_000;
/** Timeout of a change and of a query, in milliseconds. */
const CHANGE_MS = 30_000;
const QUERY_MS = 3_000;
/** First and longest pause after a failure, in milliseconds. */
const [FIRST_PAUSE_MS, LONGEST_PAUSE_MS] = [15_000, 3_600_000];
/** Approximate vectors per request. */
const SENT_AT_ONCE = 200;
const ROWS_AT_ONCE = 1_000;
/** Most blocks that a search compares in addition to the answer of the store. With more, it compares all. */
const MAX_SCANNED = 100;

const STATE_KEY = "memory:vectors";

export interface VectorStore {
  /** `null` if the deployment has no vector store. */
  index(): VectorIndex | null;
  namespace(): Promise<string>;
}

interface PublishedIndex extends StoredSpaces {
  keyValue: KeyValue;
  store?: VectorStore;
  size(): number;
}

/** The last failure of the store. Times are milliseconds since the epoch. */
interface Failure {
  /** When the last unanswered request ended, or will end. */
  at: number;
  since: number;
  times: number;
  retryAt: number;
  message: string;
  /** The store has answered since. */
  isOver?: true;
}

export interface PublicationStatus {
  /** Approximate number of memories whose vectors the store may lack, and of vectors to delete. */
  pending: number;
  /** Reason and start of the current failures. */
  error?: { message: string; since: number };
}

export class Publication {
  readonly #forgetting: Forgetting;
  /** The end of the life before was checked. */
  #isChecked = false;

  constructor(private readonly ports: PublishedIndex) {
    this.#forgetting = new Forgetting({
      ...ports,
      settledMs: SETTLED_MS,
      doubtfulUntil: () => this.#failure?.at ?? 0,
      delete: (ids) => this.#ask(CHANGE_MS, (index, namespace) => index.delete(namespace, ids)),
    });
  }

  /** Notes the changes of a space, in their transaction. */
  note(space: Space, { put, deleted, rows }: SpaceEdit, { published }: SpacesState): void {
    if (space.number !== published) return;
    this.#checkLife();
    const noted = this.#rows(space.number);
    const blocks = new Set([...put].map((n) => rows.vectorBlock(n)));
    for (const at of blocks) noted.put(UNSENT_BLOCKS, { at, sentAt: null });
    for (const n of deleted) noted.put(DELETED_VECTORS, { at: n, sentAt: null });
  }

  /** Returns the first keys of the blocks that a search compares itself, or `null` if it compares all. */
  scanned(space: Space): number[] | null {
    const { store, state } = this.ports;
    if ((store?.index() ?? null) === null || state().published !== space.number || this.#isPaused)
      return null;
    const { vectorsPerRow } = new SpaceRows(this.ports.database, space);
    const sends = this.#rows(space.number).list(UNSENT_BLOCKS, MAX_SCANNED + 1);
    return sends.length > MAX_SCANNED ? null : sends.map(({ at }) => at * vectorsPerRow);
  }

  /** Returns the keys of the nearest memories (at most 100), or `null` if the store does not answer. Some may have changed or left. */
  async nearest(space: Space, vector: Float32Array): Promise<number[] | null> {
    try {
      const matches = await this.#ask(QUERY_MS, (index, namespace) =>
        index.query([...vector], { namespace, topK: MAX_IDS_ONLY, idsOnly: true }),
      );
      this.#succeeded();
      return matches.flatMap(({ id }) => numberOf(space.number, id) ?? []);
    } catch (error) {
      this.#failed(error);
      return null;
    }
  }

  /** Work is left, now or later. */
  get isBehind(): boolean {
    return this.waitMs !== undefined;
  }

  /** Milliseconds until the next step, or `undefined` if no work is left. */
  get waitMs(): number | undefined {
    const { store, state, clock } = this.ports;
    if ((store?.index() ?? null) === null) return undefined;
    const { active, published } = state();
    const now = clock.now();
    const times = this.#forgetting.dueTimes();
    if (active !== null && active !== published) times.push(now);
    if (published !== undefined) {
      for (const { sentAt } of this.#rows(published).list(UNSENT_BLOCKS, ROWS_AT_ONCE))
        times.push(sentAt === null ? now : sentAt + SETTLED_MS);
    }
    if (times.length === 0) return undefined;
    const retryAt = this.#isPaused ? (this.#failure?.retryAt ?? now) : now;
    return Math.max(0, retryAt - now, Math.min(...times) - now);
  }

  status(): PublicationStatus | undefined {
    const { store, state } = this.ports;
    if ((store?.index() ?? null) === null) return undefined;
    const current = state();
    const { active, published } = current;
    const space = current.spaces.find(({ number }) => number === published);
    const size = this.ports.size();
    let pending = this.#forgetting.count() + (active !== null && active !== published ? size : 0);
    if (space !== undefined) {
      const { vectorsPerRow } = new SpaceRows(this.ports.database, space);
      pending += Math.min(this.#rows(space.number).count(UNSENT_BLOCKS) * vectorsPerRow, size);
    }
    const { message, since, isOver } = this.#failure ?? {};
    const isFailing = message !== undefined && since !== undefined && isOver !== true;
    return { pending, ...(isFailing && { error: { message, since } }) };
  }

  /**
   * Keeps the numbers of the vectors in the store for the deletion of the agent, in its transaction. Returns their spaces, or `undefined`
   * if the store never received a space.
   */
  retainForRemoval(): PublishedVectors | undefined {
    const { database, state } = this.ports;
    const { spaces: used } = state();
    const spaces = this.#forgetting.spaces();
    for (const space of spaces) {
      const one = used.find(({ number }) => number === space.number);
      retainVectors(database, space, one && new SpaceRows(database, one).vectorKeys);
    }
    return spaces.length === 0 ? undefined : { spaces };
  }

  /** If `next` drops the published space, withdraws it and keeps its numbers, in the transaction that saves the state. */
  withdrawn(next: SpacesState): SpacesState {
    this.#checkLife();
    const { database, state } = this.ports;
    const { published, spaces } = next;
    if (published === undefined || spaces.some(({ number }) => number === published)) return next;
    const old = state().spaces.find(({ number }) => number === published);
    if (old === undefined) return next;
    const rows = new SpaceRows(database, old);
    this.#rows(old.number).putAll(WITHDRAWN_BLOCKS, rows);
    return withdrawing(next, { number: old.number, perRow: rows.vectorsPerRow });
  }

  /** Performs one step. Returns whether more work is ready. Never rejects. */
  async pump(): Promise<boolean> {
    if ((this.ports.store?.index() ?? null) === null || this.#isPaused) return false;
    try {
      this.#checkLife();
      this.#begin();
      const isDone = (await this.#forgetting.pump()) || (await this.#send());
      this.#succeeded();
      return isDone;
    } catch (error) {
      this.#failed(error);
      return false;
    }
  }

  /** Notes that the life before may have ended during a request (MEMVECTORS-4). Must come before the first change of a life. */
  #checkLife(): void {
    if (this.#isChecked) return;
    this.#isChecked = true;
    const { store, state, clock, keyValue } = this.ports;
    const { published } = state();
    if (published === undefined || (store?.index() ?? null) === null) return;
    const now = clock.now();
    const wasUnderWay =
      this.#mayBeSending(published) || this.#forgetting.dueTimes().some((due) => due <= now);
    if (!wasUnderWay) return;
    const at = now + CHANGE_MS;
    const over: Failure = {
      at,
      since: at,
      times: 0,
      retryAt: at,
      message: "The actor stopped.",
      isOver: true,
    };
    keyValue.put<Failure>(STATE_KEY, { ...(this.#failure ?? over), at });
  }

  /** Reports whether an upsert may be under way. A repeated upsert marks its vectors as unsent before its request. */
  #mayBeSending(published: number): boolean {
    const { database, state } = this.ports;
    const space = state().spaces.find(({ number }) => number === published);
    if (space === undefined) return false;
    const rows = new SpaceRows(database, space);
    return this.#rows(published)
      .list(UNSENT_BLOCKS, ROWS_AT_ONCE)
      .some(
        (row) =>
          row.sentAt === null ||
          (this.#isDue(row) && rows.vectorsAt(row.at * rows.vectorsPerRow).vectors.hasUnsent),
      );
  }

  /** Switches to the active space. */
  #begin(): void {
    const { database, state, save } = this.ports;
    const before = state();
    const space = activeSpace(before);
    if (space === undefined || space.number === before.published) return;
    database.transaction(() => {
      if (space.embedder !== null)
        this.#rows(space.number).putAll(UNSENT_BLOCKS, new SpaceRows(database, space));
      save(publishing(before));
    });
  }

  /** Sends vectors and settles old vectors. Returns whether there was work. */
  async #send(): Promise<boolean> {
    const { state, clock, database } = this.ports;
    const { published, spaces } = state();
    const space = spaces.find(({ number }) => number === published);
    if (space === undefined) return false;
    const rows = new SpaceRows(database, space);
    const noted = this.#rows(space.number);
    const due = noted.list(UNSENT_BLOCKS, ROWS_AT_ONCE).filter((row) => this.#isDue(row));
    const sent: { row: PublicationRow; vectors: (StoredVector & { n: number; hash: number })[] }[] = [];
    let count = 0;
    for (const row of due) {
      if (count >= SENT_AT_ONCE) break;
      // Vectors of a changed block may have been sent too soon after a failure.
      if ((row.sentAt !== null || this.#failure !== undefined) && this.#settle(space, row)) continue;
      const first = row.at * rows.vectorsPerRow;
      const block = rows.vectorsAt(first).vectors;
      const vectors = unsent(space.number, first, block, noted.deletedIn(first, rows.vectorsPerRow));
      sent.push({ row, vectors });
      count += vectors.length;
    }
    if (sent.length === 0) return false;
    const sentAt = clock.now();
    const all = sent.flatMap(({ vectors }) => vectors.map(({ id, values }) => ({ id, values })));
    if (all.length > 0) await this.#ask(CHANGE_MS, (index, namespace) => index.upsert(namespace, all));
    database.transaction(() => {
      const edit = new SpaceEdit(rows);
      for (const { row, vectors } of sent) {
        const first = row.at * rows.vectorsPerRow;
        // The store loses a vector again if its memory was removed during the request.
        const waiting = noted.deletedIn(first, rows.vectorsPerRow);
        for (const { n, hash } of vectors) if (!waiting.has(n)) edit.publish(n, hash, UNSENT, SENT);
        // The rest of the block waits for deletions.
        const isSent = unsent(space.number, first, edit.vectors(first), waiting).length === 0;
        const isNoted = noted.list(UNSENT_BLOCKS, 1, row.at, row.at + 1).length > 0;
        if (isNoted && isSent) noted.put(UNSENT_BLOCKS, { at: row.at, sentAt });
      }
      this.ports.changed(space, edit);
    });
    return true;
  }

  /** Settles the vectors of a block after `SETTLED_MS`. Returns `false` if some must be sent. */
  #settle(space: Space, { at, sentAt }: PublicationRow): boolean {
    const { database } = this.ports;
    const rows = new SpaceRows(database, space);
    const failedAt = this.#failure?.at ?? Number.NEGATIVE_INFINITY;
    const isCertain = sentAt !== null && sentAt - failedAt >= SETTLED_MS;
    return database.transaction(() => {
      const edit = new SpaceEdit(rows);
      const first = at * rows.vectorsPerRow;
      const { hashes, used } = edit.vectors(first);
      for (let place = 0; place < used; place++)
        edit.publish(first + place, hashes[place] ?? 0, SENT, isCertain ? SETTLED : UNSENT);
      const isSettled = !edit.vectors(first).hasUnsent;
      this.ports.changed(space, edit);
      if (isSettled) this.#rows(space.number).remove(UNSENT_BLOCKS, at);
      return isSettled;
    });
  }

  /** Reports whether a block waits with vectors that may have been sent too soon after a failure (MEMVECTORS-4). */
  #hasDoubtful(failedAt: number): boolean {
    const { published } = this.ports.state();
    if (published === undefined) return false;
    const rows = this.#rows(published).list(UNSENT_BLOCKS, ROWS_AT_ONCE);
    return rows.some(({ sentAt }) => sentAt === null || sentAt - failedAt < SETTLED_MS);
  }

  #isDue({ sentAt }: PublicationRow): boolean {
    return sentAt === null || this.ports.clock.now() - sentAt >= SETTLED_MS;
  }

  async #ask<Answer>(
    milliseconds: number,
    ask: (index: VectorIndex, namespace: string) => Promise<Answer>,
  ): Promise<Answer> {
    const { store, clock } = this.ports;
    const index = store?.index() ?? null;
    if (store === undefined || index === null) throw new Error("The deployment has no vector store.");
    const namespace = await store.namespace();
    const reason = unanswered("The vector store", milliseconds);
    return withDeadline(clock, milliseconds, () => ask(index, namespace), { reason });
  }

  #rows(space: number): PublicationRows {
    return new PublicationRows(this.ports.database, space);
  }

  get #failure(): Failure | undefined {
    return this.ports.keyValue.get<Failure>(STATE_KEY);
  }

  get #isPaused(): boolean {
    const failure = this.#failure;
    return failure !== undefined && failure.isOver !== true && this.ports.clock.now() < failure.retryAt;
  }

  #failed(error: unknown): void {
    const now = this.ports.clock.now();
    const last = this.#failure;
    const before = last?.isOver ? undefined : last;
    const times = (before?.times ?? 0) + 1;
    const retryAt = now + backoffMs(times, FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
    const since = before?.since ?? now;
    // A request of the life before may end later.
    const at = Math.max(now, last?.at ?? now);
    this.ports.keyValue.put<Failure>(STATE_KEY, { at, since, times, retryAt, message: errorText(error) });
  }

  #succeeded(): void {
    const failure = this.#failure;
    if (failure === undefined) return;
    const isLong = this.ports.clock.now() - failure.at >= 2 * SETTLED_MS;
    if (isLong && !this.#hasDoubtful(failure.at)) this.ports.keyValue.delete(STATE_KEY);
    else if (failure.isOver !== true)
      this.ports.keyValue.put<Failure>(STATE_KEY, { ...failure, isOver: true });
  }
}

/** Returns the unsent vectors of a block, except for memories in `waiting`. */
function unsent(space: number, first: number, block: VectorBlock, waiting: ReadonlySet<number>) {
  const vectors: (StoredVector & { n: number; hash: number })[] = [];
  const { dimensions } = block;
  for (let place = 0; place < block.used; place++) {
    const [scale, n] = [block.scales[place] ?? 0, first + place];
    if (!(scale > 0) || block.published[place] !== UNSENT || waiting.has(n)) continue;
    const values = Array.from(
      block.values.subarray(place * dimensions, (place + 1) * dimensions),
      (value) => value * scale,
    );
    vectors.push({ id: idOf(space, n), values, n, hash: block.hashes[place] ?? 0 });
  }
  return vectors;
}
