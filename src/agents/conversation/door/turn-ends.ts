/**
 * Callers that wait for the end of a turn (`runTurn`).
 *
 * RUNTURN-1  The call resolves with the turn once it is over, completed or failed. A refused message is an error.
 * RUNTURN-2  The same key and body wait for the same turn, while it is active and afterwards.
 * RUNTURN-3  A call waits for at most 15 minutes, the platform's limit. The turn goes on.
 */
import type { Clock } from "../../../ports/clock.ts";
import { withDeadline } from "../../../ports/deadline.ts";
import { endsTurn, type Frame } from "../../../protocol/frames.ts";
import { DramatisError } from "../../../shared/errors.ts";

/** Milliseconds. */
const MAX_TURN_WAIT_MS = 15 * 60_000;

export class TurnEnds {
  readonly #waiting = new Set<{ turnId: string; end: () => void }>();

  constructor(private readonly clock: Pick<Clock, "timer">) {}

  /** Ends the waits for the turns that these frames end. */
  note(frames: readonly Frame[]): void {
    for (const frame of frames.filter(endsTurn)) {
      for (const waiter of this.#waiting) if (waiter.turnId === frame.turnId) waiter.end();
    }
  }

  /** Resolves when an active turn has ended. Throws `UNAVAILABLE` after `MAX_TURN_WAIT_MS`: the turn goes on. */
  async next(turnId: string): Promise<void> {
    let waiter: { turnId: string; end: () => void } | undefined;
    const ended = new Promise<void>((end) => {
      waiter = { turnId, end };
      this.#waiting.add(waiter);
    });
    const reason = () =>
      new DramatisError(
        "UNAVAILABLE",
        `The turn ${turnId} is not over after ${MAX_TURN_WAIT_MS / 60_000} minutes. It goes on: read it, or send the message again with the same key to wait on.`,
        { retriable: true },
      );
    try {
      await withDeadline(this.clock, MAX_TURN_WAIT_MS, () => ended, { reason });
    } finally {
      if (waiter !== undefined) this.#waiting.delete(waiter);
    }
  }
}
