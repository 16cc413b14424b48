/**
 * The memory for media in model calls, which all conversations of an isolate share. A request holds its media several times:
 * as bytes, as base64, and in the body.
 *
 * MEDIABUDGET-1  Calls with media hold at most `total` bytes of media together; a larger call goes alone. The others wait
 *                in their order, and fail with the retriable error `UNAVAILABLE` after `MAX_WAIT_MS`. A call without media
 *                never waits.
 * MEDIABUDGET-2  A reservation ends after `HOLD_MS`, when its body has left: neither a provider that is silent nor an actor
 *                that is gone holds the media of others.
 */
import type { Clock } from "../../../ports/clock.ts";
import { DramatisError } from "../../../shared/errors.ts";

/** Bytes of media in the calls of an isolate that are being sent. */
const MAX_SENDING_BYTES = 12 * 1024 * 1024;
const MAX_WAIT_MS = 30_000;
/** Milliseconds for which a reservation counts unless it is released before. */
const HOLD_MS = 10_000;
const CHECK_MS = 100;
/** Milliseconds after its last look for which a call keeps its place: its actor may be gone. */
const PLACE_MS = 1_000;

interface Reservation {
  bytes: number;
  /** The time from which the reservation does not count. */
  endsAt: number;
}

export interface ReserveOptions {
  clock: Pick<Clock, "now" | "sleep">;
  /** Ends the wait. */
  signal: AbortSignal;
}

/** The place of a call that waits. */
interface Place {
  lookedAt: number;
}

export class MediaBudget {
  readonly #reservations = new Set<Reservation>();
  /** The calls that wait, in the order of their arrival. */
  readonly #places = new Set<Place>();

  constructor(private readonly total = MAX_SENDING_BYTES) {}

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
  async reserve(bytes: number, { clock, signal }: ReserveOptions): Promise<() => void> {
    if (bytes === 0) return () => undefined;
    const place = { lookedAt: clock.now() };
    const giveUpAt = place.lookedAt + MAX_WAIT_MS;
    try {
      // Actors cannot wake each other, so each looks for itself.
      while (!this.#admits(place, bytes, clock.now())) {
        if (clock.now() >= giveUpAt) {
          const message = "Too many calls with images or files at the same time. Try again.";
          throw new DramatisError("UNAVAILABLE", message, { retriable: true });
        }
        await clock.sleep(CHECK_MS, signal);
      }
    } finally {
      this.#places.delete(place);
    }
    const reservation = { bytes, endsAt: clock.now() + HOLD_MS };
    this.#reservations.add(reservation);
    return () => void this.#reservations.delete(reservation);
  }

  /** Reports whether a call is the first that waits, and there is room for it. */
  #admits(place: Place, bytes: number, now: number): boolean {
    place.lookedAt = now;
    this.#places.add(place);
    for (const other of this.#places) if (other.lookedAt + PLACE_MS < now) this.#places.delete(other);
    const [first] = this.#places;
    const held = this.held(now);
    return first === place && (held === 0 || held + bytes <= this.total);
  }
}
