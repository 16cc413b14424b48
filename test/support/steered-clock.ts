/**
 * A steered clock for calls of a real server: a sleep ends after other work had its turn, and advances the time. A
 * timer ends when a test ends it.
 */
import { setImmediate } from "node:timers/promises";
import type { Clock } from "../../src/ports/clock.ts";
import { NOW } from "./gateway-calls.ts";

export class SteeredClock implements Clock {
  /** All sleeps, in milliseconds. */
  readonly slept: number[] = [];
  /** Called at the start of a sleep. */
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

  /** Running timers. */
  get pending(): number {
    return this.#timers.size;
  }

  pass(milliseconds: number): void {
    this.#time += milliseconds;
  }

  /** Ends the timers of this length and advances the time. Throws if no timer has this length. */
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
