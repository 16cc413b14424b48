/** The moments of a conversation's turns that acts of clients wait for. */
import type { Moment } from "./plan.ts";

export class Moments {
  readonly #counts = new Map<string, number>();
  readonly #waiting = new Map<string, (() => void)[]>();

  note(conversation: number, moment: Moment): void {
    const key = `${conversation} ${moment}`;
    const n = (this.#counts.get(key) ?? 0) + 1;
    this.#counts.set(key, n);
    const reached = `${key} ${n}`;
    for (const resolve of this.#waiting.get(reached) ?? []) resolve();
    this.#waiting.delete(reached);
  }

  /** Resolves at a moment's `nth` occurrence, counted from 1; at once if it has passed. */
  reached(conversation: number, moment: Moment, nth: number): Promise<void> {
    const key = `${conversation} ${moment}`;
    if ((this.#counts.get(key) ?? 0) >= nth) return Promise.resolve();
    const reached = `${key} ${nth}`;
    return new Promise((resolve) => {
      this.#waiting.set(reached, [...(this.#waiting.get(reached) ?? []), resolve]);
    });
  }
}
