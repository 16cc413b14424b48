/**
 * Limits the frames that wait for slow readers in the memory of an isolate, which many actors share. Lengths are UTF-16
 * units.
 *
 * OUTFLOW-1  A reader holds at most its window, or a single longer frame.
 * OUTFLOW-2  All readers together hold at most `total`, and beside it the first `GUARANTEED` of each: the small traffic of a
 *        reader never waits for others. Half of the total is for readers that hold no more than that, so a few that hold
 *        much do not keep the others from their first long frame.
 * OUTFLOW-3  A reader that has gone without a word leaves its length for a while, and nothing else: neither its socket nor its actor.
 *            The end of a connection frees what it was charged, also what an earlier life of its actor sent.
 */
import { defined } from "../../../shared/defined.ts";

interface Limits {
  /** Length that one reader may hold; at most half of the total. */
  window: number;
  /** Length that all readers together may hold beside what each is guaranteed. */
  total: number;
  /** Milliseconds for which a length counts after it was noted. */
  countedMs?: (length: number) => number;
}

/** Length that a reader may hold however much the others hold. */
export const GUARANTEED = 16 * 1024;
/** Milliseconds after its last change for which a reader counts: the actor of a reader may be gone without a word. */
const COUNTED_MS = 60_000;

export class Outflow {
  /** The length that each reader is charged, the time until which it counts, and the connection of the reader. */
  readonly #charges = new Map<object, { length: number; until: number; connection?: string }>();
  #total = 0;

  constructor(private readonly limits: Limits) {}

  /** Length that all readers are charged. */
  get total(): number {
    return this.#total;
  }

  /** Reports whether a reader that holds `held` may get a frame of this length. */
  admits(reader: object, held: number, length: number, now: number): boolean {
    if (held + length <= GUARANTEED) return true;
    if (this.exceedsWindow(held, length)) return false;
    if (this.#hasRoom(reader, held, length)) return true;
    this.#forget(now);
    return this.#hasRoom(reader, held, length);
  }

  /** Reports whether a reader that holds `held` may never get a frame of this length, unless it holds less. */
  exceedsWindow(held: number, length: number): boolean {
    return held > 0 && held + length > this.limits.window;
  }

  /** Returns the length that a reader that holds `held` may get at most, but for one longer frame when it holds nothing. */
  room(held: number): number {
    return this.limits.window - held;
  }

  /** Records what a reader holds since a time. `connection` names the connection of all lives of the reader. */
  note(reader: object, length: number, since: number, connection?: string): void {
    this.#discharge(reader);
    const charge = chargeOf(length);
    if (charge === 0) return;
    const { countedMs = () => COUNTED_MS } = this.limits;
    this.#charges.set(reader, {
      length: charge,
      until: since + countedMs(length),
      ...defined({ connection }),
    });
    this.#total += charge;
  }

  /** Frees what a reader was charged, in all lives of its connection. */
  free(reader: object, connection?: string): void {
    this.#discharge(reader);
    if (connection === undefined) return;
    for (const [other, charge] of this.#charges) if (charge.connection === connection) this.#discharge(other);
  }

  #hasRoom(reader: object, held: number, length: number): boolean {
    const half = this.limits.total / 2;
    const others = this.#total - (this.#charges.get(reader)?.length ?? 0);
    // Otherwise a frame longer than the total would wait for ever.
    const charge = Math.min(chargeOf(held + length), half);
    return others + charge <= (held > GUARANTEED ? half : this.limits.total);
  }

  #forget(now: number): void {
    for (const [reader, { until }] of this.#charges) if (until <= now) this.#discharge(reader);
  }

  #discharge(reader: object): void {
    this.#total -= this.#charges.get(reader)?.length ?? 0;
    this.#charges.delete(reader);
  }
}

function chargeOf(length: number): number {
  return Math.max(0, length - GUARANTEED);
}

/** The limits of one isolate, by the kind of reader. */
export interface Outflows {
  /** Streams, and WebSockets whose clients acknowledge what they read. */
  confirmed: Outflow;
  /** WebSockets whose clients do not: the window is all that such a connection ever gets. */
  unconfirmed: Outflow;
}

export function createOutflows(): Outflows {
  return {
    confirmed: new Outflow({ window: 256 * 1024, total: 16 * 1024 * 1024 }),
    unconfirmed: new Outflow({ window: 4 * 1024 * 1024, total: 16 * 1024 * 1024, countedMs }),
  };
}

/** Milliseconds without progress after which a reader that holds `length` is cut off. */
export function stallMs(length: number): number {
  return 5_000 + length / 64;
}

/** Milliseconds between two looks at a reader that waits. */
export const CHECK_MS = 250;

/**
 * Milliseconds for which a length counts after it was sent to a client without acknowledgements: as long as it may take to
 * read it, and until the look at a reader that waited all the time.
 */
export function countedMs(length: number): number {
  return stallMs(length) + CHECK_MS;
}
