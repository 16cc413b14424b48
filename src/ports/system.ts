/** The time and the identifiers of the platform. */
import { monotonicFactory } from "ulid";
import type { Clock } from "./clock.ts";
import { sleepWith } from "./deadline.ts";
import type { Ids } from "./ids.ts";

export const systemClock: Clock = {
  now: () => Date.now(),
  sleep: (milliseconds, signal) => sleepWith(systemClock.timer, milliseconds, signal),
  timer(milliseconds, callback) {
    const timer = setTimeout(callback, milliseconds);
    return () => clearTimeout(timer);
  },
};

/** The identifiers of one isolate ascend, also within a millisecond. */
export const systemIds: Ids = { ulid: monotonicFactory() };
