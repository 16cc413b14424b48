/**
 * Callers that wait for the end of a turn (`runTurn`).
 *
 * RUNTURN-1  The call resolves with the turn once it is over, completed or failed. A refused message is an error.
 * RUNTURN-2  The same key and body wait for the same turn, while it is active and afterwards.
 * RUNTURN-3  A call waits for at most 15 minutes, the platform's limit. The turn continues.
 */
import type { Clock } from "../../../ports/clock.ts";
import { withDeadline } from "../../../ports/deadline.ts";
import { turnId } from "../../../protocol/ids.ts";
import { unavailable } from "../../../shared/errors.ts";
import type { Turn } from "../core/turn.ts";

/** Milliseconds. */
const MAX_TURN_WAIT_MS = 15 * 60_000;

interface Waiter {
  id: string;
  end(turn: Turn): void;
}

export class TurnEnds {
  readonly #waiting = new Set<Waiter>();

  constructor(private readonly clock: Pick<Clock, "timer">) {}

  /** Ends the waits for a finished turn. Call it after the commit. */
  note(turn: Turn): void {
    for (const waiter of this.#waiting) if (waiter.id === turnId(turn)) waiter.end(turn);
  }

  /** Resolves with an active turn once it is over. Throws `UNAVAILABLE` after `MAX_TURN_WAIT_MS`. The turn continues. */
  async next(id: string): Promise<Turn> {
    let waiter: Waiter | undefined;
    const ended = new Promise<Turn>((end) => {
      waiter = { id, end };
      this.#waiting.add(waiter);
    });
    const reason = () =>
      unavailable(
        `The turn ${id} has not ended after ${MAX_TURN_WAIT_MS / 60_000} minutes. It continues. Read it, or send the message again with the same key to wait longer.`,
        { retriable: true },
      );
    try {
      return await withDeadline(this.clock, MAX_TURN_WAIT_MS, () => ended, { reason });
    } finally {
      if (waiter !== undefined) this.#waiting.delete(waiter);
    }
  }
}
