/**
 * The clock of an actor that stores times.
 *
 * STOREDTIME-1  An actor's time is never before the time of what it has stored, in this life or an earlier one. A clock that is
 *          set back stands still for the actor until it has caught up; pauses and time limits go on.
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

  /** Reports whether the clock was set back behind what the actor has stored. */
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
