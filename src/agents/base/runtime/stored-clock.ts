/**
 * The clock of an actor that stores times.
 *
 * STOREDTIME-1  An actor's time is never before the newest time that it has stored, in any of its lives. If the clock is set back, the
 *               actor's time stops until the clock has caught up. Pauses and time limits continue.
 */
import type { Clock } from "../../../ports/clock.ts";

export class StoredClock implements Clock {
  /** `newest` returns the newest time that the actor has stored, as far as it is known. */
  constructor(
    private readonly clock: Clock,
    private readonly newest: () => number,
  ) {}

  now(): number {
    return Math.max(this.clock.now(), this.newest());
  }

  /** Reports whether the clock is behind the newest stored time. */
  get isBehind(): boolean {
    return this.clock.now() < this.newest();
  }

  sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    return this.clock.sleep(milliseconds, signal);
  }

  timer(milliseconds: number, callback: () => void): () => void {
    return this.clock.timer(milliseconds, callback);
  }
}
