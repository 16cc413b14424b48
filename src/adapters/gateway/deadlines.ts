/**
 * The time limits of one attempt: until the reply begins, between two pieces, and in total.
 *
 * DEADLINE-1  If a server is silent for too long, before or during the reply, the attempt ends with category `timeout`. A heartbeat ends a
 *             silence.
 * DEADLINE-2  Pauses of the consumer do not count as silence of the server.
 * DEADLINE-3  All timers end with the attempt.
 * DEADLINE-4  The limit until the reply begins starts when the body has been sent. Until then, it limits the time in which the server
 *             accepts one piece of the body. Reading a piece does not count.
 */
import { MODEL_TIMEOUT_MS, type ModelProfile } from "../../model/profile.ts";
import type { Clock } from "../../ports/clock.ts";
import { Deadline } from "../../ports/deadline.ts";
import { ModelFailure } from "../errors/model-errors.ts";

/** Defaults for a profile without limits, in milliseconds. */
export const TIMEOUTS = {
  timeoutMs: MODEL_TIMEOUT_MS,
  firstByteTimeoutMs: 60_000,
  idleTimeoutMs: 60_000,
} as const;

export class AttemptDeadlines {
  readonly #clock: Pick<Clock, "timer" | "now">;
  readonly #idleMs: number;
  readonly #total: Deadline;
  readonly #firstMs: number;
  #stopFirst: (() => void) | undefined;
  #stopIdle: (() => void) | undefined;
  /** Since when the consumer has waited for a piece, in milliseconds; `undefined` while it does not wait. */
  #waitingSince: number | undefined;

  constructor(
    clock: Pick<Clock, "timer" | "now">,
    config: ModelProfile["executionConfig"],
    outer: AbortSignal,
  ) {
    const { timeoutMs, firstByteTimeoutMs, idleTimeoutMs } = { ...TIMEOUTS, ...config };
    this.#clock = clock;
    this.#idleMs = idleTimeoutMs;
    this.#total = new Deadline(clock, timeoutMs, {
      outer,
      reason: () => timeout(`The model took longer than ${timeoutMs} ms.`),
    });
    this.#firstMs = firstByteTimeoutMs;
    this.#stopFirst = this.#watchFirst();
  }

  /** Aborts with a `ModelFailure` when time is up, and with the outer signal. */
  get signal(): AbortSignal {
    return this.#total.signal;
  }

  /** Reports that a read of a body piece has started, or that it has ended and the server may accept the piece. */
  reading(isReading: boolean): void {
    if (this.#stopFirst === undefined) return;
    this.#stopFirst();
    this.#stopFirst = isReading ? () => undefined : this.#watchFirst();
  }

  /** Records a piece of the reply or a heartbeat. Then only the idle limit and the total limit apply. */
  received(): void {
    this.#waitingSince = undefined;
    this.#stopFirst?.();
    this.#stopFirst = undefined;
  }

  /** Notes that the consumer waits for the next piece of the reply, until `received`. */
  waiting(): void {
    if (this.#stopFirst !== undefined) return;
    this.#waitingSince = this.#clock.now();
    this.#stopIdle ??= this.#watch(this.#idleMs);
  }

  stop(): void {
    this.received();
    this.#stopIdle?.();
    this.#total.stop();
  }

  #watchFirst(): () => void {
    return this.#clock.timer(this.#firstMs, () =>
      this.#total.abort(timeout(`The model did not begin to answer within ${this.#firstMs} ms.`)),
    );
  }

  /** One timer serves all pauses: a timer for each would cost more than reading. */
  #watch(milliseconds: number): () => void {
    return this.#clock.timer(milliseconds, () => {
      const silent = this.#waitingSince === undefined ? 0 : this.#clock.now() - this.#waitingSince;
      if (silent < this.#idleMs) {
        this.#stopIdle = this.#watch(Math.min(this.#idleMs, this.#idleMs - silent));
        return;
      }
      this.#total.abort(timeout(`The model sent no data for ${this.#idleMs} ms during its reply.`));
    });
  }
}

function timeout(message: string): ModelFailure {
  return new ModelFailure("timeout", message);
}
