/** A time limit for D1: a database that hangs must not hang its callers. */
import type { Clock } from "../ports/clock.ts";
import { withDeadline } from "../ports/deadline.ts";

/** Milliseconds. The database's own limit is longer. */
export const D1_TIMEOUT_MS = 10_000;

/** Runs a query. Rejects after `D1_TIMEOUT_MS`; a later answer is discarded. */
export function inTime<Answer>(clock: Pick<Clock, "timer">, query: () => Promise<Answer>): Promise<Answer> {
  return withDeadline(clock, D1_TIMEOUT_MS, query);
}
