/** Reproducible identifiers: the same seed and times give the same ULIDs. */
import { monotonicFactory } from "ulid";
import type { Clock } from "../clock.ts";
import type { Ids } from "../ids.ts";

export function seededIds(seed: number, clock: Pick<Clock, "now">): Ids {
  const next = monotonicFactory(mulberry32(seed));
  // The factory takes a time of 0 for "now", which is not reproducible.
  return { ulid: () => next(Math.max(1, clock.now())) };
}

/** Returns a Mulberry32 generator of numbers from 0 up to, not including, 1. */
export function mulberry32(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
