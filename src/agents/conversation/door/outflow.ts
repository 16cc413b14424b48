/**
 * Limits the frames that wait for slow readers in the memory of an isolate, which many actors share. Lengths are UTF-16
 * units.
 *
 * OUTFLOW-1  A reader holds at most its window, or a single longer frame.
 * OUTFLOW-2  All readers together hold at most `total`, and beside it the first `GUARANTEED` of each: a few stalled readers do
 *        not stop the small traffic of the others.
 */

interface Limits {
  /** Length that one reader may hold. */
  window: number;
  /** Length that all readers together may hold. */
  total: number;
}

/** Length that a reader may hold however much the others hold. */
const GUARANTEED = 16 * 1024;
/** Milliseconds after its last change for which a reader counts: the actor of a reader may be gone without a word. */
const COUNTED_MS = 60_000;

export class Outflow {
  /** The length that each reader holds, the least recently changed first. */
  readonly #held = new Map<object, { length: number; at: number }>();
  #total = 0;

  constructor(private readonly limits: Limits) {}

  /** Length that all readers hold. */
  get total(): number {
    return this.#total;
  }

  /** Reports whether a reader that holds `held` may get a frame of this length. */
  admits(reader: object, held: number, length: number, now: number): boolean {
    if (held + length <= GUARANTEED) return true;
    const { total } = this.limits;
    if (this.exceedsWindow(held, length)) return false;
    this.#forget(now);
    const others = this.#total - (this.#held.get(reader)?.length ?? 0);
    // Otherwise a frame longer than the total would wait for ever.
    return others + held + Math.min(length, total / 2) <= total;
  }

  /** Reports whether a reader that holds `held` may never get a frame of this length, unless it holds less. */
  exceedsWindow(held: number, length: number): boolean {
    return held > 0 && held + length > this.limits.window;
  }

  /** Records what a reader holds now. */
  note(reader: object, length: number, now: number): void {
    this.#total += length - (this.#held.get(reader)?.length ?? 0);
    this.#held.delete(reader);
    if (length > 0) this.#held.set(reader, { length, at: now });
  }

  #forget(now: number): void {
    for (const [reader, { at }] of this.#held) {
      if (at + COUNTED_MS > now) return;
      this.note(reader, 0, now);
    }
  }
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
    unconfirmed: new Outflow({ window: 4 * 1024 * 1024, total: 16 * 1024 * 1024 }),
  };
}

/** Milliseconds between two looks at a reader that waits. */
export const CHECK_MS = 250;

/** Milliseconds without progress after which a reader that holds `length` is cut off. */
export function stallMs(length: number): number {
  return 5_000 + length / 64;
}
