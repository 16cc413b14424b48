/**
 * The turns of tenants in one isolate: work that keeps the isolate busy begins one piece at a time for each tenant.
 *
 * TAKETURNS-1  Pieces of one tenant begin in the order of their requests, and at least `PACE_MS` apart. Pieces of different tenants do not
 *              wait for each other. The first piece of an idle tenant begins at once.
 * TAKETURNS-2  A timer fires between two pieces of a tenant. The isolate reads requests from the network before it runs timers, so it
 *              answers requests of other tenants in between.
 * TAKETURNS-3  An actor that dies while it waits, or right after its turn, delays the other actors by at most `DEAD_MS`.
 */
import type { Clock } from "../../../ports/clock.ts";

/** Milliseconds between the beginnings of two pieces. */
export const PACE_MS = 5;
/** Milliseconds until an actor that misses its turn counts as dead. */
export const DEAD_MS = 2_000;

interface Waiting {
  /** The time of its next check, in milliseconds since the epoch. */
  lookAt: number;
}

interface Line {
  waiting: Waiting[];
  /** From this time the next piece may begin, even if the timer of the newest piece is lost. */
  busyUntil: number;
}

export class TenantTurns {
  readonly #lines = new Map<string, Line>();

  /** Resolves when a piece of work of a tenant may begin. Each piece has its own timer, because actors must not share a promise. */
  async take(tenant: string, clock: Pick<Clock, "now" | "timer">): Promise<void> {
    const line = this.#lines.get(tenant) ?? { waiting: [], busyUntil: 0 };
    this.#lines.set(tenant, line);
    if (line.waiting.length > 0 || clock.now() < line.busyUntil) await this.#wait(line, clock);
    line.busyUntil = clock.now() + DEAD_MS;
    clock.timer(PACE_MS, () => {
      line.busyUntil = 0;
      if (line.waiting.length === 0) this.#lines.delete(tenant);
    });
  }

  async #wait(line: Line, clock: Pick<Clock, "now" | "timer">): Promise<void> {
    const own: Waiting = { lookAt: 0 };
    line.waiting.push(own);
    for (;;) {
      const wait = (line.waiting.indexOf(own) + 1) * PACE_MS;
      own.lookAt = clock.now() + wait;
      await new Promise<void>((resolve) => void clock.timer(wait, resolve));
      const now = clock.now();
      line.waiting = line.waiting.filter((one) => one === own || one.lookAt + DEAD_MS > now);
      // The others had counted it as dead.
      if (!line.waiting.includes(own)) line.waiting.unshift(own);
      if (line.waiting[0] !== own || now < line.busyUntil) continue;
      line.waiting.shift();
      return;
    }
  }
}
