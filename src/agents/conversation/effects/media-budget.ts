/**
 * The memory for media in model calls, which all conversations of an isolate share. A request holds its media several times:
 * as bytes, as base64, and in the body.
 *
 * MEDIABUDGET-1  Calls with media hold at most `total` bytes of media together; a larger call goes alone. The others wait,
 *                and fail with the retriable error `UNAVAILABLE` after `MAX_WAIT_MS`.
 * MEDIABUDGET-2  A reservation ends with the time limit of its call, even if the call's actor is gone and never releases it.
 */
import type { Clock } from "../../../ports/clock.ts";
import { DramatisError } from "../../../shared/errors.ts";

const MAX_WAIT_MS = 30_000;
const CHECK_MS = 100;

interface Reservation {
  bytes: number;
  /** The time from which the reservation does not count. */
  endsAt: number;
}

export interface ReserveOptions {
  clock: Pick<Clock, "now" | "sleep">;
  /** Milliseconds for which the reservation counts unless it is released before. */
  timeoutMs: number;
  /** Ends the wait. */
  signal: AbortSignal;
}

export class MediaBudget {
  readonly #reservations = new Set<Reservation>();

  constructor(private readonly total = 12 * 1024 * 1024) {}

  /** Returns the bytes that are reserved at a time. */
  held(now: number): number {
    let sum = 0;
    for (const reservation of this.#reservations) {
      if (reservation.endsAt > now) sum += reservation.bytes;
      else this.#reservations.delete(reservation);
    }
    return sum;
  }

  /**
   * Reserves bytes once there is room. Returns a function that releases them. Throws `UNAVAILABLE` after `MAX_WAIT_MS`, and
   * the reason of `signal`.
   */
  async reserve(bytes: number, { clock, timeoutMs, signal }: ReserveOptions): Promise<() => void> {
    const giveUpAt = clock.now() + MAX_WAIT_MS;
    // Actors cannot wake each other, so each looks for itself.
    for (let held = this.held(clock.now()); held > 0 && held + bytes > this.total; ) {
      if (clock.now() >= giveUpAt) {
        const message = "Too many calls with images or files at the same time. Try again.";
        throw new DramatisError("UNAVAILABLE", message, { retriable: true });
      }
      await clock.sleep(CHECK_MS, signal);
      held = this.held(clock.now());
    }
    const reservation = { bytes, endsAt: clock.now() + timeoutMs };
    this.#reservations.add(reservation);
    return () => void this.#reservations.delete(reservation);
  }
}
