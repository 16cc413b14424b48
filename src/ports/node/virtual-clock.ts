/**
 * A clock for tests and simulations that moves only on request.
 *
 * CLOCK-1  Time moves only by `advance` and `runNext`, and never backwards.
 * CLOCK-2  Sleepers wake in order of their wake-up time (equal times: in order of arrival). Each sees its own wake-up time as `now`, and
 *          finishes its work before the next sleeper wakes.
 */
import type { Clock } from "../clock.ts";
import { sleepWith } from "../deadline.ts";

interface Sleeper {
  due: number;
  wake(): void;
}

export class VirtualClock implements Clock {
  private readonly sleepers: Sleeper[] = [];

  /** `time` is the first `now`, in milliseconds since the epoch. */
  constructor(private time = Date.UTC(2026, 0, 1)) {}

  now(): number {
    return this.time;
  }

  sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    return sleepWith((due, wake) => this.timer(due, wake), milliseconds, signal);
  }

  timer(milliseconds: number, callback: () => void): () => void {
    const sleeper: Sleeper = { due: this.time + Math.max(0, milliseconds), wake: callback };
    const later = this.sleepers.findIndex((other) => other.due > sleeper.due);
    this.sleepers.splice(later === -1 ? this.sleepers.length : later, 0, sleeper);
    return () => {
      const index = this.sleepers.indexOf(sleeper);
      if (index !== -1) this.sleepers.splice(index, 1);
    };
  }

  get pending(): number {
    return this.sleepers.length;
  }

  /** The wake-up time of the next sleeper, if any. */
  get nextDue(): number | undefined {
    return this.sleepers[0]?.due;
  }

  /** Moves by `milliseconds` and wakes every sleeper within that time, including new sleepers. */
  async advance(milliseconds: number): Promise<void> {
    const target = this.time + milliseconds;
    await settled();
    while (this.nextDue !== undefined && this.nextDue <= target) await this.runNext();
    this.time = Math.max(this.time, target);
  }

  /** Moves to the next sleeper and wakes it. Returns `false` without sleepers. */
  async runNext(): Promise<boolean> {
    const sleeper = this.sleepers.shift();
    if (sleeper === undefined) return false;
    this.time = Math.max(this.time, sleeper.due);
    sleeper.wake();
    await settled();
    return true;
  }
}

/** Resolves after every promise reaction that is ready. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
