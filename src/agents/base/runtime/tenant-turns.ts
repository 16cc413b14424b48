/**
 * The turns of tenants in one isolate: work that keeps the isolate busy begins one piece at a time for each tenant.
 *
 * TAKETURNS-1  Pieces of one tenant begin in the order in which they asked, and at least `PACE_MS` apart. Pieces of different tenants do not wait for
 *         each other. The first piece of an idle tenant begins at once.
 * TAKETURNS-2  Between two pieces of a tenant a timer fires. The isolate reads requests from the network before timers, so requests of others are
 *         answered in between.
 * TAKETURNS-3  An actor that dies while it waits, or behind its turn, holds up the others for at most `GONE_MS`.
 */
import type { Clock } from "../../../ports/clock.ts";

/** Milliseconds between the beginnings of two pieces. */
export const PACE_MS = 5;
/** Milliseconds after which an actor that did not come back for its turn counts as dead. */
export const GONE_MS = 2_000;

interface Waiting {
  /** When it comes back to look, in milliseconds since the epoch. */
  lookAt: number;
}

interface Line {
  waiting: Waiting[];
  /** The time by which the next piece may begin, even if the timer of the newest one is lost. */
  busyUntil: number;
}

export class TenantTurns {
  readonly #lines = new Map<string, Line>();

  /** Resolves when a piece of work of a tenant may begin. Each waits with a timer of its own: actors share no promise. */
  async take(tenant: string, clock: Pick<Clock, "now" | "timer">): Promise<void> {
    const line = this.#lines.get(tenant) ?? { waiting: [], busyUntil: 0 };
    this.#lines.set(tenant, line);
    if (line.waiting.length > 0 || clock.now() < line.busyUntil) await this.#wait(line, clock);
    line.busyUntil = clock.now() + GONE_MS;
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
      line.waiting = line.waiting.filter((one) => one === own || one.lookAt + GONE_MS > now);
      // The others took it for dead.
      if (!line.waiting.includes(own)) line.waiting.unshift(own);
      if (line.waiting[0] !== own || now < line.busyUntil) continue;
      line.waiting.shift();
      return;
    }
  }
}
