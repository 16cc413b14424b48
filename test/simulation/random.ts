/**
 * The only source of chance in a simulation.
 *
 * RANDOM-1  Equal seeds give equal draws; a fork depends on its seed and its label only, not on what was drawn before it.
 */
export class Random {
  #state: number;

  constructor(private readonly seed: number) {
    this.#state = seed >>> 0;
  }

  /** A source of its own, so that one part of a plan does not change when another draws more. */
  fork(label: string): Random {
    let hash = 0x811c9dc5 ^ this.seed;
    for (let index = 0; index < label.length; index++) {
      hash = Math.imul(hash ^ label.charCodeAt(index), 0x01000193);
    }
    return new Random(new Random(hash).#next());
  }

  /** From 0 up to, not including, 1. */
  fraction(): number {
    return this.#next() / 2 ** 32;
  }

  /** A whole number from `low` to `high`, both included. */
  int(low: number, high: number): number {
    return low + Math.floor(this.fraction() * (high - low + 1));
  }

  /** As `int`, small ones far more often than large ones. */
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

  /** `count` items made by `make`. */
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
