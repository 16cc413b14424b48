/**
 * How many calls of one host run at once, in one isolate; the rest wait in line. Who waits asks again and again: actors of
 * one isolate cannot wake each other, what one does in answer to a promise of another would run in the wrong one.
 *
 * LIMITER-1  Never do more hold a slot than the limit says.
 * LIMITER-2  Who waits longest is next. Who gives up waiting leaves the line, and costs nobody a slot.
 * LIMITER-3  A slot whose holder is gone without giving it back is free again when its lease is over; who has not asked
 *            for `GONE_AFTER_MS` has left the line.
 * LIMITER-4  Where the line is full, a call fails at once.
 */
import { ModelFailure } from "../errors/model-errors.ts";

export interface ConcurrencyLimit {
  /** Calls at once. */
  concurrent: number;
  /** Calls that may wait. */
  queued: number;
}

/** A slot that somebody wants. */
export interface Slot {
  /** Takes it if it is free and nobody waits longer; answers whether it is held now. */
  take(): boolean;
  /** Gives it back, or leaves the line. */
  release(): void;
}

/** Milliseconds. */
export const GONE_AFTER_MS = 5_000;

interface Place {
  leaseMs: number;
  /** Of a holder: when its lease is over. Of who waits: when it counts as gone. */
  until: number;
}

export class ConcurrencyLimiter {
  readonly #held = new Set<Place>();
  readonly #line = new Set<Place>();

  constructor(
    private readonly limit: ConcurrencyLimit,
    private readonly now: () => number,
  ) {}

  /** Nobody holds a slot and nobody waits. */
  get isIdle(): boolean {
    return this.#held.size === 0 && this.#line.size === 0;
  }

  /** A slot for a call that takes less than `leaseMs`. Throws `ModelFailure` if too many wait already. */
  ask(leaseMs: number): Slot {
    const place: Place = { leaseMs, until: 0 };
    if (!this.#take(place) && this.#line.size > this.limit.queued) {
      this.#line.delete(place);
      throw new ModelFailure("rate_limit", "Too many calls of this model server wait already.");
    }
    let isOver = false;
    return {
      take: () => !isOver && this.#take(place),
      release: () => {
        isOver = true;
        this.#held.delete(place);
        this.#line.delete(place);
      },
    };
  }

  #take(place: Place): boolean {
    if (this.#held.has(place)) return true;
    const now = this.now();
    for (const lost of this.#held) if (lost.until <= now) this.#held.delete(lost);
    for (const gone of this.#line) if (gone !== place && gone.until <= now) this.#line.delete(gone);
    place.until = now + GONE_AFTER_MS;
    this.#line.add(place);
    const ahead = [...this.#line].indexOf(place);
    if (ahead >= this.limit.concurrent - this.#held.size) return false;
    this.#line.delete(place);
    place.until = now + place.leaseMs;
    this.#held.add(place);
    return true;
  }
}
