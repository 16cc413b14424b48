/** Bounds each query, so that a database that hangs does not hang its callers. */
import type { Clock } from "../ports/clock.ts";
import { withDeadline } from "../ports/deadline.ts";

/** Milliseconds; the database itself gives up later. */
export const D1_TIMEOUT_MS = 10_000;

/** Runs a query. Rejects after `D1_TIMEOUT_MS`; a later answer is discarded. */
export function inTime<Answer>(clock: Pick<Clock, "timer">, query: () => Promise<Answer>): Promise<Answer> {
  return withDeadline(clock, D1_TIMEOUT_MS, query);
}
