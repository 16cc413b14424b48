/** A time limit for D1: a database that hangs must not hang its callers. */
import { type Clock, withTimeout } from "../ports/clock.ts";

/** Milliseconds. The database's own limit is longer. */
export const D1_TIMEOUT_MS = 10_000;

/** Returns what `ask` resolves with. Rejects after `D1_TIMEOUT_MS`. */
export function inTime<Answer>(clock: Pick<Clock, "timer">, ask: () => Promise<Answer>): Promise<Answer> {
  return withTimeout(clock, D1_TIMEOUT_MS, ask(), new Error(`D1 did not answer within ${D1_TIMEOUT_MS} ms.`));
}
