/** A signal that aborts with another one, or when time is up. */
import type { Clock } from "../../ports/clock.ts";

export interface TimeLimit {
  signal: AbortSignal;
  /** Forgets the timer. */
  stop(): void;
}

/** Aborts with `outer`'s reason, or with a `TimeoutError` after `milliseconds`. */
export function startTimeLimit(
  clock: Pick<Clock, "timer">,
  milliseconds: number,
  outer: AbortSignal,
): TimeLimit {
  const controller = new AbortController();
  const forward = () => controller.abort(outer.reason);
  if (outer.aborted) forward();
  else outer.addEventListener("abort", forward, { once: true });
  const cancel = clock.timer(milliseconds, () =>
    controller.abort(new DOMException(`Not done within ${milliseconds} ms.`, "TimeoutError")),
  );
  return {
    signal: controller.signal,
    stop() {
      cancel();
      outer.removeEventListener("abort", forward);
    },
  };
}
