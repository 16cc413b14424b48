/**
 * A time limit for D1: a database that hangs must not hang its callers.
 *
 * INTIME-1  Every query ends within `D1_TIMEOUT_MS`, together with the migration before it: with `UNAVAILABLE` if the
 *           database has not answered.
 */
import type { Clock } from "../ports/clock.ts";
import { unanswered, withDeadline } from "../ports/deadline.ts";

/** Milliseconds. The database's own limit is longer. */
export const D1_TIMEOUT_MS = 10_000;

/** Runs a query. A later answer is discarded; a later write may still take effect. */
export function inTime<Answer>(clock: Pick<Clock, "timer">, query: () => Promise<Answer>): Promise<Answer> {
  return withDeadline(clock, D1_TIMEOUT_MS, query, { reason: unanswered("The database", D1_TIMEOUT_MS) });
}
