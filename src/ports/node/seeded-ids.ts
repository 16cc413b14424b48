/** Reproducible identifiers: the same seed and times give the same ULIDs. */
import { monotonicFactory } from "ulid";
import { mulberry32 } from "../../shared/mulberry32.ts";
import type { Clock } from "../clock.ts";
import type { Ids } from "../ids.ts";

export function seededIds(seed: number, clock: Pick<Clock, "now">): Ids {
  const next = monotonicFactory(mulberry32(seed));
  // The factory takes a time of 0 for "now", which is not reproducible.
  return { ulid: () => next(Math.max(1, clock.now())) };
}
