/**
 * How many calls of one host run at once, in one isolate; the rest wait in line.
 *
 * LIMITER-1  Never do more hold a slot than the limit says.
 * LIMITER-2  Who waits longest is next. Who gives up waiting leaves the line, and costs nobody a slot.
 * LIMITER-3  A slot whose holder is gone without giving it back is free again when its lease is over.
 * LIMITER-4  Where the line is full, a call fails at once.
 */
import { ModelFailure } from "../errors.ts";

export interface ConcurrencyLimit {
  /** Calls at once. */
  concurrent: number;
  /** Calls that may wait. */
  queued: number;
}

/** Gives a slot back; a second time does nothing. */
export type Release = () => void;

interface Lease {
  until: number;
}

interface Waiter {
  leaseMs: number;
  grant(release: Release): void;
}

export class ConcurrencyLimiter {
  readonly #held = new Set<Lease>();
  readonly #line: Waiter[] = [];

  constructor(
    private readonly limit: ConcurrencyLimit,
    private readonly now: () => number,
  ) {}

  /** Nobody holds a slot and nobody waits. */
  get isIdle(): boolean {
    return this.#held.size === 0 && this.#line.length === 0;
  }

  /** A slot, when one is free. Throws `ModelFailure` if the line is full, or the signal's reason if that aborts first. */
  acquire(leaseMs: number, signal: AbortSignal): Promise<Release> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      this.#reclaim();
      if (this.#held.size < this.limit.concurrent) return resolve(this.#lease(leaseMs));
      if (this.#line.length >= this.limit.queued) {
        throw new ModelFailure("rate_limit", "Too many calls of this model server wait already.");
      }
      const leave = () => {
        this.#line.splice(this.#line.indexOf(waiter), 1);
        reject(signal.reason);
      };
      const waiter: Waiter = {
        leaseMs,
        grant(release) {
          signal.removeEventListener("abort", leave);
          resolve(release);
        },
      };
      this.#line.push(waiter);
      signal.addEventListener("abort", leave, { once: true });
    });
  }

  #lease(leaseMs: number): Release {
    const lease: Lease = { until: this.now() + leaseMs };
    this.#held.add(lease);
    return () => {
      if (this.#held.delete(lease)) this.#grant();
    };
  }

  #grant(): void {
    while (this.#held.size < this.limit.concurrent) {
      const next = this.#line.shift();
      if (next === undefined) return;
      next.grant(this.#lease(next.leaseMs));
    }
  }

  #reclaim(): void {
    const now = this.now();
    for (const lease of this.#held) if (lease.until <= now) this.#held.delete(lease);
    this.#grant();
  }
}
