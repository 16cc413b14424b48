/** A clock for calls of a real server: a sleep is over as soon as others had their turn, and moves time on, and a timer ends when a test says so. */
import { setImmediate } from "node:timers/promises";
import type { Clock } from "../../src/ports/clock.ts";
import { NOW } from "./gateway-calls.ts";

export class SteeredClock implements Clock {
  /** Every sleep, in milliseconds. */
  readonly slept: number[] = [];
  /** Called at the beginning of a sleep. */
  onSleep: () => void = () => undefined;
  readonly #timers = new Set<{ milliseconds: number; callback: () => void }>();
  #time = NOW;

  now(): number {
    return this.#time;
  }

  async sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    this.slept.push(milliseconds);
    this.onSleep();
    await setImmediate();
    signal?.throwIfAborted();
    this.#time += milliseconds;
  }

  timer(milliseconds: number, callback: () => void): () => void {
    const timer = { milliseconds, callback };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  /** Timers that run. */
  get pending(): number {
    return this.#timers.size;
  }

  pass(milliseconds: number): void {
    this.#time += milliseconds;
  }

  /** Lets the time of the timers of this length pass, and ends them. Throws if there is none. */
  fire(milliseconds: number): void {
    const due = [...this.#timers].filter((timer) => timer.milliseconds === milliseconds);
    if (due.length === 0) throw new Error(`No timer of ${milliseconds} ms runs.`);
    this.#time += milliseconds;
    for (const timer of due) {
      this.#timers.delete(timer);
      timer.callback();
    }
  }
}
