/**
 * Whether a server that ended by itself is started again.
 *
 * START-3  A server that ends without being told is started again on the same port with the same state; after more than
 *          three ends within five minutes the start ends, too, with the reason.
 */
const MOST_RESTARTS = 3;
const WINDOW_MS = 300_000;

/** Times are milliseconds since the epoch; `ends` are all ends so far, the last one included. */
export function mayRestart(ends: readonly number[], now: number): boolean {
  return ends.filter((end) => now - end < WINDOW_MS).length <= MOST_RESTARTS;
}
