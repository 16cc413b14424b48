/**
 * Limits the frames that wait for slow readers in the memory of an isolate, which many actors share. Lengths are UTF-16
 * units.
 *
 * OUTFLOW-1  A reader holds at most its window, or a single longer frame.
 * OUTFLOW-2  All readers together hold at most `total`. The first `GUARANTEED` of each reader does not count, so its small traffic never
 *            waits for other readers. Half of the total is reserved for readers that hold at most `GUARANTEED`. A few readers with long
 *            frames therefore cannot block the first long frame of another reader.
 * OUTFLOW-3  A reader that disappears without a close is charged for a while, but its socket and its actor can be collected. The end of a
 *            connection frees its charges, including the charges of earlier lives of its actor.
 */
import { defined } from "../../../shared/defined.ts";

interface Limits {
  /** Maximum length that a reader holds. At most half of the total. */
  window: number;
  /** Maximum length that all readers together hold, without the guaranteed length of each reader. */
  total: number;
  /** Returns how long a length counts, in milliseconds. */
  countedMs?: (length: number) => number;
}

/** Length that a reader may always hold. */
export const GUARANTEED = 16 * 1024;
/** Milliseconds that a reader counts after its last change. Its actor may disappear without a close. */
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

  /** Reports whether a reader must first hold less than `held` before it may get a frame of this length. */
  exceedsWindow(held: number, length: number): boolean {
    return held > 0 && held + length > this.limits.window;
  }

  /** Returns the length that a reader with `held` may still get. A reader that holds 0 may get one longer frame. */
  room(held: number): number {
    return this.limits.window - held;
  }

  /** Records the length that a reader holds since a time. `connection` names the connection of all lives of the reader. */
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

  /** Frees the charges of a reader, in all lives of its connection. */
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
  /** Streams, and WebSockets with acknowledgements. */
  confirmed: Outflow;
  /** WebSockets without acknowledgements. The window is the total length that such a connection gets. */
  unconfirmed: Outflow;
}

export function createOutflows(): Outflows {
  return {
    confirmed: new Outflow({ window: 256 * 1024, total: 16 * 1024 * 1024 }),
    unconfirmed: new Outflow({ window: 4 * 1024 * 1024, total: 16 * 1024 * 1024, countedMs }),
  };
}

/** Milliseconds without progress until a reader with this length is cut off. */
export function stallMs(length: number): number {
  return 5_000 + length / 64;
}

/** Milliseconds between two checks of a waiting reader. */
export const CHECK_MS = 250;

/**
 * Milliseconds for which a length counts after it was sent to a client without acknowledgements: the maximum time to read it, and one
 * interval between checks.
 */
export function countedMs(length: number): number {
  return stallMs(length) + CHECK_MS;
}
