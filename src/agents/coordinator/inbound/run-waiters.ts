/** Callers that wait for the end of a run. */
import type { Clock } from "../../../ports/clock.ts";
import { withDeadline } from "../../../ports/deadline.ts";

/** Milliseconds that a caller waits at most. */
const MAX_WAIT_MS = 15 * 60_000;

export class RunWaiters {
  readonly #waiting = new Set<() => void>();

  constructor(private readonly clock: Clock) {}

  /** Resolves at the end of the run, or after a time in milliseconds. Call it while the run is not over. */
  async wait(timeoutMs: number): Promise<void> {
    const { promise: end, resolve } = Promise.withResolvers<void>();
    this.#waiting.add(resolve);
    await withDeadline(this.clock, Math.min(timeoutMs, MAX_WAIT_MS), () => end).catch(() => undefined);
    this.#waiting.delete(resolve);
  }

  /** Lets all callers go: the run is over. */
  wake(): void {
    for (const end of this.#waiting) end();
  }
}
