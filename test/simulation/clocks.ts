/**
 * The clocks of a simulation: a clock for the world with a wall time that can be set, and a clock per life of an actor.
 */

import type { Clock } from "../../src/ports/clock.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";

/** Planned events happen when due, whatever the wall time. */
export class WorldClock extends VirtualClock {
  #skew = 0;
  readonly #start = super.now();

  override now(): number {
    return super.now() + this.#skew;
  }

  /** Milliseconds until the next timer; `undefined` without a timer. */
  get nextIn(): number | undefined {
    return this.nextDue === undefined ? undefined : Math.max(0, this.nextDue - super.now());
  }

  /** Sets the wall time forward or back. */
  jump(ms: number): void {
    this.#skew += ms;
  }

  /** Milliseconds since the world began, without jumps. */
  get elapsed(): number {
    return super.now() - this.#start;
  }
}

/** The clock of a mortal life: after its death no timer of it fires. */
export class MortalClock implements Clock {
  readonly #waiting = new Set<() => void>();
  #alive = true;

  constructor(private readonly world: Clock) {}

  get pending(): number {
    return this.#waiting.size;
  }

  now(): number {
    return this.world.now();
  }

  sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const onAbort = () => {
        cancel();
        reject(signal?.reason);
      };
      const cancel = this.timer(milliseconds, () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      });
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  timer(milliseconds: number, callback: () => void): () => void {
    if (!this.#alive) return () => undefined;
    const stop = this.world.timer(milliseconds, () => {
      this.#waiting.delete(cancel);
      try {
        callback();
      } catch (error) {
        // A crash ends here, because its caller no longer exists.
        if (this.#alive) throw error;
      }
    });
    const cancel = () => {
      this.#waiting.delete(cancel);
      stop();
    };
    this.#waiting.add(cancel);
    return cancel;
  }

  die(): void {
    this.#alive = false;
    for (const cancel of [...this.#waiting]) cancel();
  }
}
