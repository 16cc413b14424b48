/** The time and the identifiers of the platform. */
import { monotonicFactory } from "ulid";
import { type Clock, sleepBy } from "./clock.ts";
import type { Ids } from "./ids.ts";

const timer: Clock["timer"] = (milliseconds, callback) => {
  const id = setTimeout(callback, milliseconds);
  return () => clearTimeout(id);
};

export const systemClock: Clock = { now: () => Date.now(), sleep: sleepBy(timer), timer };

/** The identifiers of one isolate ascend, also within a millisecond. */
export const systemIds: Ids = { ulid: monotonicFactory() };
