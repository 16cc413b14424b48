/**
 * The clock of an actor that stores times.
 *
 * STOREDTIME-1  An actor's time is never before the newest time that it has stored, in any of its lives. If the clock is set back, the
 *               actor's time stops until the clock has caught up. Pauses and time limits continue.
 * STOREDTIME-2  The end of a pause is stored, so a crash counts the attempt after the pause, even if the clock was set back by less than
 *               the pause. A clock that was ahead only during the pause leaves no trace.
 */
import type { Clock } from "../../../ports/clock.ts";
import type { KeyValue } from "../../../ports/key-value.ts";

const SLEPT = "slept";

export class StoredClock implements Clock {
  #slept = 0;

  /** `newest` returns the newest time in the actor's journal, as far as it is known. */
  constructor(
    private readonly clock: Clock,
    private readonly keyValue: KeyValue,
    private readonly newest: () => number,
  ) {}

  /** Reads the end of the last pause of the actor's earlier lives. Call it before a recovery. */
  recall(): void {
    this.#slept = Math.max(this.#slept, this.keyValue.get<number>(SLEPT) ?? 0);
  }

  now(): number {
    return Math.max(this.clock.now(), this.#newest());
  }

  get isBehind(): boolean {
    return this.clock.now() < this.#newest();
  }

  #newest(): number {
    return Math.max(this.newest(), this.#slept);
  }

  async sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    const until = this.now() + milliseconds;
    await this.clock.sleep(milliseconds, signal);
    if (milliseconds === 0) return;
    this.#slept = Math.max(this.#slept, until);
    try {
      this.keyValue.put(SLEPT, this.#slept);
    } catch (error) {
      // The attempt is made. Only a clock that is set back and a crash after the failure would hide it.
      console.error(error);
    }
  }

  timer(milliseconds: number, callback: () => void): () => void {
    return this.clock.timer(milliseconds, callback);
  }
}
