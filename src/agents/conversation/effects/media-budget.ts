/**
 * The memory for media in model calls, which all conversations of an isolate share. A request holds its media several times:
 * as bytes, as base64, and in the body.
 *
 * MEDIABUDGET-1  Calls with media hold at most `total` bytes of media together; a larger call goes alone. The others wait,
 *                and fail with the retriable error `UNAVAILABLE` after `MAX_WAIT_MS`.
 */
import type { Clock } from "../../../ports/clock.ts";
import { DramatisError } from "../../../shared/errors.ts";

const MAX_WAIT_MS = 30_000;
const CHECK_MS = 100;

export class MediaBudget {
  #held = 0;

  constructor(private readonly total = 12 * 1024 * 1024) {}

  /** Bytes that are reserved. */
  get held(): number {
    return this.#held;
  }

  /** Reserves bytes once there is room. Returns a function that releases them. */
  async reserve(
    bytes: number,
    clock: Pick<Clock, "now" | "sleep">,
    signal: AbortSignal,
  ): Promise<() => void> {
    const giveUpAt = clock.now() + MAX_WAIT_MS;
    // Actors cannot wake each other, so each looks for itself.
    while (this.#held > 0 && this.#held + bytes > this.total) {
      if (clock.now() >= giveUpAt) {
        const message = "Too many calls with images or files at the same time. Try again.";
        throw new DramatisError("UNAVAILABLE", message, { retriable: true });
      }
      await clock.sleep(CHECK_MS, signal);
    }
    this.#held += bytes;
    let isHeld = true;
    return () => {
      if (isHeld) this.#held -= bytes;
      isHeld = false;
    };
  }
}
