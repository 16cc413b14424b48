/** The time and the identifiers of the platform. */
import { monotonicFactory } from "ulid";
import type { Clock } from "./clock.ts";
import type { Ids } from "./ids.ts";

export const systemClock: Clock = {
  now: () => Date.now(),
  sleep(milliseconds, signal) {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const timer = setTimeout(() => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      }, milliseconds);
      const onAbort = () => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  },
  timer(milliseconds, callback) {
    const timer = setTimeout(callback, milliseconds);
    return () => clearTimeout(timer);
  },
};

/** The identifiers of one isolate ascend, also within a millisecond. */
export const systemIds: Ids = { ulid: monotonicFactory() };
