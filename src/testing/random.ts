/**
 * The only source of randomness in a simulation.
 *
 * RANDOM-1  Equal seeds give equal draws. A fork depends only on its seed and its label, not on earlier draws.
 */
export class Random {
  #state: number;

  constructor(private readonly seed: number) {
    this.#state = seed >>> 0;
  }

  /** Returns an independent source, so that a part of a plan does not depend on the draws of another part. */
  fork(label: string): Random {
    let hash = 0x811c9dc5 ^ this.seed;
    for (let index = 0; index < label.length; index++) {
      hash = Math.imul(hash ^ label.charCodeAt(index), 0x01000193);
    }
    return new Random(new Random(hash).#next());
  }

  /** Returns a number from 0 to below 1. */
  fraction(): number {
    return this.#next() / 2 ** 32;
  }

  /** Returns a whole number from `low` to `high`, inclusive. */
  int(low: number, high: number): number {
    return low + Math.floor(this.fraction() * (high - low + 1));
  }

  /** Returns a number as `int` does, with a strong preference for small numbers. */
  small(low: number, high: number): number {
    return low + Math.floor(this.fraction() ** 2 * (high - low + 1));
  }

  chance(probability: number): boolean {
    return this.fraction() < probability;
  }

  pick<Item>(items: readonly Item[]): Item {
    const item = items[this.int(0, items.length - 1)];
    if (item === undefined) throw new RangeError("There is nothing to pick from.");
    return item;
  }

  list<Item>(count: number, make: (index: number) => Item): Item[] {
    return Array.from({ length: count }, (_, index) => make(index));
  }

  /** Mulberry32. */
  #next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  }
}
