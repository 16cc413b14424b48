/** The runtime's own clock: the system's clock of the ports, without what only servers have. */
import type { Clock } from "../ports/clock.ts";

export const runtimeClock: Pick<Clock, "now" | "timer"> = {
  now: () => Date.now(),
  timer(milliseconds, callback) {
    const timer = setTimeout(callback, milliseconds);
    return () => clearTimeout(timer);
  },
};
