/**
 * The only source of randomness in a simulation.
 *
 * RANDOM-1  Equal seeds give equal draws. A fork depends only on its seed and its label, not on earlier draws.
 */
import { mulberry32 } from "../shared/mulberry32.ts";

export class Random {
  /** Returns a number from 0 to below 1. */
  readonly fraction: () => number;

  constructor(private readonly seed: number) {
    this.fraction = mulberry32(seed);
  }

  /** Returns an independent source, so that a part of a plan does not depend on the draws of another part. */
  fork(label: string): Random {
    let hash = 0x811c9dc5 ^ this.seed;
    for (let index = 0; index < label.length; index++)
      hash = Math.imul(hash ^ label.charCodeAt(index), 0x01000193);
    return new Random(new Random(hash).fraction() * 2 ** 32);
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
}
