/**
 * A time limit for objects: a store that hangs must not hang its callers.
 *
 * OBJTIME-1  Every operation ends within `OBJECT_TIMEOUT_MS`, with `UNAVAILABLE` if the store has not answered.
 */
import type { Clock } from "../ports/clock.ts";
import { unanswered, withDeadline } from "../ports/deadline.ts";
import type { ObjectStore } from "../ports/object-store.ts";

/** Milliseconds: enough for the largest attachment on a slow day. */
export const OBJECT_TIMEOUT_MS = 30_000;

/** Returns the store with the time limit. Errors call it by `name`. A late answer is discarded; a late write may still take effect. */
export function objectsInTime(
  objects: ObjectStore,
  clock: Pick<Clock, "timer">,
  name = "The store of attachments",
): ObjectStore {
  const reason = unanswered(name, OBJECT_TIMEOUT_MS);
  const inTime = <Answer>(ask: () => Promise<Answer>) =>
    withDeadline(clock, OBJECT_TIMEOUT_MS, ask, { reason });
  return {
    put: (key, bytes, facts) => inTime(() => objects.put(key, bytes, facts)),
    head: (key) => inTime(() => objects.head(key)),
    get: (key, range) => inTime(() => objects.get(key, range)),
    delete: (key) => inTime(() => objects.delete(key)),
    list: (...range) => inTime(() => objects.list(...range)),
  };
}
