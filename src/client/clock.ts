/** The clock of the runtime: the system clock of the ports without its server parts. */
import type { Clock } from "../ports/clock.ts";

export const runtimeClock: Pick<Clock, "now" | "timer"> = {
  now: () => Date.now(),
  timer(milliseconds, callback) {
    const timer = setTimeout(callback, milliseconds);
    return () => clearTimeout(timer);
  },
};
