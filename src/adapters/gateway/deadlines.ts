/**
 * How long an attempt may take: until its reply begins, between two pieces of it, and in all.
 *
 * DEADLINE-1  A server that is silent for too long ends the attempt with category `timeout`, before its reply has begun as
 *             in the middle of it. A heartbeat is no silence.
 * DEADLINE-2  The pauses of whoever reads the reply do not count as silence of the server.
 * DEADLINE-3  When an attempt is over, none of its timers is left.
 */

import type { ModelProfile } from "../../model/profile.ts";
import type { Clock } from "../../ports/clock.ts";
import { ModelFailure } from "../errors/model-errors.ts";

/** Milliseconds, where a profile says nothing. */
export const TIMEOUTS = { timeoutMs: 120_000, firstByteTimeoutMs: 60_000, idleTimeoutMs: 60_000 } as const;

export class AttemptDeadlines {
  readonly #controller = new AbortController();
  readonly #clock: Pick<Clock, "timer" | "now">;
  readonly #idleMs: number;
  readonly #outer: AbortSignal;
  readonly #forward: () => void;
  readonly #stopTotal: () => void;
  #stopFirst: (() => void) | undefined;
  #stopIdle: (() => void) | undefined;
  /** Since when a piece is awaited, in milliseconds; `undefined` while none is. */
  #waitingSince: number | undefined;

  constructor(
    clock: Pick<Clock, "timer" | "now">,
    config: ModelProfile["executionConfig"],
    outer: AbortSignal,
  ) {
    const { timeoutMs, firstByteTimeoutMs, idleTimeoutMs } = { ...TIMEOUTS, ...config };
    this.#clock = clock;
    this.#idleMs = idleTimeoutMs;
    this.#outer = outer;
    this.#forward = () => this.#controller.abort(outer.reason);
    if (outer.aborted) this.#forward();
    else outer.addEventListener("abort", this.#forward, { once: true });
    this.#stopTotal = this.#after(timeoutMs, `The model took longer than ${timeoutMs} ms.`);
    this.#stopFirst = this.#after(
      firstByteTimeoutMs,
      `The model did not begin to answer within ${firstByteTimeoutMs} ms.`,
    );
  }

  /** Aborts with a `ModelFailure` when time is up, or as the caller's signal does. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The reply has begun, or goes on: from now on only pauses in it count. */
  heard(): void {
    this.#waitingSince = undefined;
    this.#stopFirst?.();
    this.#stopFirst = undefined;
  }

  /** The next piece of a reply is awaited, until `heard`. */
  waits(): void {
    if (this.#stopFirst !== undefined) return;
    this.#waitingSince = this.#clock.now();
    this.#stopIdle ??= this.#lookIn(this.#idleMs);
  }

  /** Forgets every timer. */
  stop(): void {
    this.heard();
    this.#stopIdle?.();
    this.#stopTotal();
    this.#outer.removeEventListener("abort", this.#forward);
  }

  /** One timer for all pauses: one for each would cost more than reading does. */
  #lookIn(milliseconds: number): () => void {
    return this.#clock.timer(milliseconds, () => {
      const silent = this.#waitingSince === undefined ? 0 : this.#clock.now() - this.#waitingSince;
      if (silent < this.#idleMs) {
        this.#stopIdle = this.#lookIn(Math.min(this.#idleMs, this.#idleMs - silent));
        return;
      }
      const message = `The model fell silent for ${this.#idleMs} ms in its reply.`;
      this.#controller.abort(new ModelFailure("timeout", message));
    });
  }

  #after(milliseconds: number, message: string): () => void {
    return this.#clock.timer(milliseconds, () =>
      this.#controller.abort(new ModelFailure("timeout", message)),
    );
  }
}
