/**
 * The time and the identifiers of the platform.
 *
 * IDS-1  The identifiers of one isolate ascend, also within a millisecond and when the clock goes back.
 * IDS-2  The first identifier of a millisecond has 80 random bits, each from the platform's secure source and used once.
 */
import { monotonicFactory } from "ulid";
import type { Clock } from "./clock.ts";
import { sleepWith } from "./deadline.ts";
import type { Ids } from "./ids.ts";

/** Random bytes of one draw: a ULID takes 16. */
const POOL_BYTES = 256;

export const systemClock: Clock = {
  now: () => Date.now(),
  sleep: (milliseconds, signal) => sleepWith(systemClock.timer, milliseconds, signal),
  timer(milliseconds, callback) {
    const timer = setTimeout(callback, milliseconds);
    return () => clearTimeout(timer);
  },
};

export const systemIds: Ids = { ulid: monotonicFactory(pooledRandom()) };

/**
 * Returns a source of unpredictable fractions from 0 up to, not including, 1, each from one byte. A call to the platform
 * costs more than the digits of a ULID, so one call draws the bytes of several.
 */
function pooledRandom(): () => number {
  const bytes = new Uint8Array(POOL_BYTES);
  let used = POOL_BYTES;
  return () => {
    if (used === POOL_BYTES) {
      crypto.getRandomValues(bytes);
      used = 0;
    }
    const byte = bytes[used] ?? 0;
    used += 1;
    return byte / 256;
  };
}
