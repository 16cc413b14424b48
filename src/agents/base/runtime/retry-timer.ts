import type { Clock } from "../../../ports/clock.ts";

/** Milliseconds before a failed step is repeated. */
export const RETRY_MS = 1_000;

/** A timer that repeats a step `RETRY_MS` after its failure. Failures until then share the timer. */
export class RetryTimer {
  #isWaiting = false;

  constructor(
    private readonly clock: Pick<Clock, "timer">,
    private readonly repeat: () => void,
  ) {}

  start(): void {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    this.clock.timer(RETRY_MS, () => {
      this.#isWaiting = false;
      this.repeat();
    });
  }
}
