/**
 * Limits the concurrent calls to one host in one isolate; further calls wait in a queue. Waiting calls poll: actors of one
 * isolate cannot wake each other, because the continuation of a promise would run in the wrong actor.
 *
 * LIMITER-1  At most `concurrent` calls hold a slot.
 * LIMITER-2  Slots are given in order of arrival. A call that stops waiting leaves the queue and costs nobody a slot.
 * LIMITER-3  A slot that is not released becomes free when its lease ends. A waiting call that has not polled for
 *            `GONE_AFTER_MS` loses its place.
 * LIMITER-4  With a full queue, a call fails at once.
 */
import { ModelFailure } from "../errors/model-errors.ts";

export interface ConcurrencyLimit {
  /** Maximum number of concurrent calls. */
  concurrent: number;
  /** Maximum number of waiting calls. */
  queued: number;
}

/** A call's claim to a slot. */
export interface Slot {
  /** Takes the slot if one is free and no other call has waited longer. Reports whether the call holds a slot. */
  take(): boolean;
  /** Releases the slot, or leaves the queue. */
  release(): void;
}

/** Milliseconds. */
export const GONE_AFTER_MS = 5_000;

interface Place {
  leaseMs: number;
  /** The end of a holder's lease; for a waiting call, the time at which it counts as gone. */
  until: number;
}

export class ConcurrencyLimiter {
  readonly #held = new Set<Place>();
  readonly #queue = new Set<Place>();

  constructor(
    private readonly limit: ConcurrencyLimit,
    private readonly now: () => number,
  ) {}

  /** No call holds a slot and none waits. */
  get isIdle(): boolean {
    return this.#held.size === 0 && this.#queue.size === 0;
  }

  /** Claims a slot for a call that takes less than `leaseMs`. Throws `ModelFailure` if the queue is full. */
  claim(leaseMs: number): Slot {
    const place: Place = { leaseMs, until: 0 };
    if (!this.#take(place) && this.#queue.size > this.limit.queued) {
      this.#queue.delete(place);
      throw new ModelFailure("rate_limit", "Too many calls to this model server are waiting.");
    }
    let isOver = false;
    return {
      take: () => !isOver && this.#take(place),
      release: () => {
        isOver = true;
        this.#held.delete(place);
        this.#queue.delete(place);
      },
    };
  }

  #take(place: Place): boolean {
    if (this.#held.has(place)) return true;
    const now = this.now();
    for (const lost of this.#held) if (lost.until <= now) this.#held.delete(lost);
    for (const gone of this.#queue) if (gone !== place && gone.until <= now) this.#queue.delete(gone);
    place.until = now + GONE_AFTER_MS;
    this.#queue.add(place);
    const ahead = [...this.#queue].indexOf(place);
    if (ahead >= this.limit.concurrent - this.#held.size) return false;
    this.#queue.delete(place);
    place.until = now + place.leaseMs;
    this.#held.add(place);
    return true;
  }
}
