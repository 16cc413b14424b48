/**
 * The memories of an agent as columns of numbers for ranking, without words and vectors.
 *
 * COLUMNS-1  Each memory has one place. The place of a removed memory is reused, so a place is valid only until the next change.
 */
import type { TextDescription } from "./describe-text.ts";
import { Names, NO_NAME, SpokenNames } from "./names.ts";

/** Marks a free row in `n`, and a missing place. */
export const NONE = -1;

export interface ColumnEntry extends TextDescription {
  /** Integer key, at least 0. */
  n: number;
  type: string;
  userId?: string;
  conversationId?: string;
  speaker?: string;
  session?: string;
  sequence?: number;
  /** The time of the event, in milliseconds since the epoch. */
  time: number;
  /** From 0 to 1. */
  significance: number;
  /** The time of the last write, in milliseconds since the epoch. */
  changedAt: number;
}

const INITIAL_CAPACITY = 64;

export class MemoryColumns {
  /** Places in use, including free places. */
  size = 0;
  n = new Float64Array(INITIAL_CAPACITY).fill(NONE);
  time = new Float64Array(INITIAL_CAPACITY);
  changedAt = new Float64Array(INITIAL_CAPACITY);
  sequence = new Float64Array(INITIAL_CAPACITY);
  significance = new Float32Array(INITIAL_CAPACITY);
  words = new Uint16Array(INITIAL_CAPACITY);
  flags = new Uint8Array(INITIAL_CAPACITY);
  session = new Int32Array(INITIAL_CAPACITY);
  speaker = new Int32Array(INITIAL_CAPACITY);
  type = new Int32Array(INITIAL_CAPACITY);
  user = new Int32Array(INITIAL_CAPACITY);
  conversation = new Int32Array(INITIAL_CAPACITY);
  /** The index of each place in its session, if it has a sequence and the session is sorted. */
  #position = new Int32Array(INITIAL_CAPACITY);
  readonly sessions = new Names();
  readonly speakers = new SpokenNames();
  readonly types = new Names();
  readonly users = new Names();
  readonly conversations = new Names();
  readonly #places = new Map<number, number>();
  readonly #free: number[] = [];
  /** Places of each session. Places with a sequence are sorted unless the session is in `#unordered`. */
  readonly #members = new Map<number, number[]>();
  readonly #unordered = new Set<number>();

  get count(): number {
    return this.#places.size;
  }

  placeOf(n: number): number | undefined {
    return this.#places.get(n);
  }

  put(entry: ColumnEntry): number {
    const known = this.#places.get(entry.n);
    if (known !== undefined) this.#leaveSession(known);
    const place = known ?? this.#free.pop() ?? this.#grow();
    this.#places.set(entry.n, place);
    this.n[place] = entry.n;
    this.time[place] = entry.time;
    this.changedAt[place] = entry.changedAt;
    this.sequence[place] = entry.sequence ?? Number.NaN;
    this.significance[place] = entry.significance;
    this.words[place] = entry.words;
    this.flags[place] = entry.flags;
    this.session[place] = this.sessions.add(entry.session);
    this.speaker[place] = this.speakers.add(entry.speaker);
    this.type[place] = this.types.add(entry.type);
    this.user[place] = this.users.add(entry.userId);
    this.conversation[place] = this.conversations.add(entry.conversationId);
    this.#joinSession(place);
    return place;
  }

  /** Removes a memory. Returns its freed place, if it existed. */
  remove(n: number): number | undefined {
    const place = this.#places.get(n);
    if (place === undefined) return undefined;
    this.#places.delete(n);
    this.#leaveSession(place);
    this.n[place] = NONE;
    this.#free.push(place);
    return place;
  }

  /** Returns the places of a session's memories that have a sequence, ascending. */
  sessionPlaces(session: number): readonly number[] {
    const members = this.#members.get(session) ?? [];
    if (this.#unordered.delete(session)) {
      members.sort((a, b) => this.#order(a, b));
      for (const [index, place] of members.entries()) this.#position[place] = index;
    }
    return members;
  }

  /** Returns the index of a place in `sessionPlaces`. Returns `NONE` without a session or a sequence. */
  indexInSession(place: number): number {
    const session = this.session[place] ?? NO_NAME;
    if (session === NO_NAME || Number.isNaN(this.sequence[place])) return NONE;
    this.sessionPlaces(session);
    return this.#position[place] ?? NONE;
  }

  #order(a: number, b: number): number {
    return (
      (this.sequence[a] ?? 0) - (this.sequence[b] ?? 0) ||
      (this.time[a] ?? 0) - (this.time[b] ?? 0) ||
      (this.n[a] ?? 0) - (this.n[b] ?? 0)
    );
  }

  #joinSession(place: number): void {
    const session = this.session[place] ?? NO_NAME;
    if (session === NO_NAME || Number.isNaN(this.sequence[place])) return;
    const members = this.#members.get(session) ?? [];
    const last = members.at(-1);
    if (last !== undefined && this.#order(last, place) > 0) this.#unordered.add(session);
    this.#position[place] = members.push(place) - 1;
    this.#members.set(session, members);
  }

  #leaveSession(place: number): void {
    const session = this.session[place] ?? NO_NAME;
    const members = this.#members.get(session);
    const index = members?.indexOf(place) ?? NONE;
    if (index >= 0) {
      members?.splice(index, 1);
      if (index < (members?.length ?? 0)) this.#unordered.add(session);
    }
    if (members?.length === 0) {
      this.#members.delete(session);
      this.#unordered.delete(session);
    }
  }

  #grow(): number {
    if (this.size === this.n.length) {
      const capacity = this.size * 2;
      this.n = grown(this.n, new Float64Array(capacity).fill(NONE));
      this.time = grown(this.time, new Float64Array(capacity));
      this.changedAt = grown(this.changedAt, new Float64Array(capacity));
      this.sequence = grown(this.sequence, new Float64Array(capacity));
      this.significance = grown(this.significance, new Float32Array(capacity));
      this.words = grown(this.words, new Uint16Array(capacity));
      this.flags = grown(this.flags, new Uint8Array(capacity));
      this.session = grown(this.session, new Int32Array(capacity));
      this.speaker = grown(this.speaker, new Int32Array(capacity));
      this.type = grown(this.type, new Int32Array(capacity));
      this.user = grown(this.user, new Int32Array(capacity));
      this.#position = grown(this.#position, new Int32Array(capacity));
      this.conversation = grown(this.conversation, new Int32Array(capacity));
    }
    return this.size++;
  }
}

function grown<Column extends { set(values: ArrayLike<number>): void } & ArrayLike<number>>(
  from: Column,
  to: Column,
): Column {
  to.set(from);
  return to;
}
