/**
 * Restarts of a server that exits without a signal to stop.
 *
 * START-3  Such a server is restarted on the same port with the same state. After more than three exits within five minutes
 *          the start exits too, with the reason.
 */
const MAX_RESTARTS = 3;
const WINDOW_MS = 300_000;

/** Reports whether to restart. Times are milliseconds since the epoch. `exits` includes the last exit. */
export function mayRestart(exits: readonly number[], now: number): boolean {
  return exits.filter((exit) => now - exit < WINDOW_MS).length <= MAX_RESTARTS;
}
