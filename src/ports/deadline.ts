/** Waiting that ends with a timer or a signal. */
import { type DramatisError, unavailable } from "../shared/errors.ts";
import type { Clock } from "./clock.ts";

/** Implements `Clock.sleep` with `Clock.timer`. */
export function sleepWith(timer: Clock["timer"], milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = () => {
      cancel();
      reject(signal?.reason);
    };
    const cancel = timer(milliseconds, () => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    });
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

export interface DeadlineOptions {
  /** The deadline's signal also aborts with this signal, for the same reason. */
  outer?: AbortSignal;
  /** Makes the reason of the abort at expiry. Default: a `TimeoutError`. */
  reason?: () => unknown;
}

/** A signal that aborts after a time, with an outer signal, or by hand. Stop it when the work is done. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #release: () => void;

  constructor(
    clock: Pick<Clock, "timer">,
    milliseconds: number,
    { outer, reason = () => timedOut(milliseconds) }: DeadlineOptions = {},
  ) {
    const forward = () => this.abort(outer?.reason);
    if (outer?.aborted) forward();
    outer?.addEventListener("abort", forward, { once: true });
    const cancel = clock.timer(milliseconds, () => this.abort(reason()));
    this.#release = () => {
      cancel();
      outer?.removeEventListener("abort", forward);
    };
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(reason: unknown): void {
    this.#controller.abort(reason);
  }

  /** Releases the timer and the outer signal. The deadline's signal then no longer aborts. */
  stop(): void {
    this.#release();
  }
}

/**
 * Starts `run` and returns its result. Rejects with the signal's reason if the signal aborts first, even if `run` ignores
 * the signal. A late result goes to `discard`; a late failure is ignored.
 */
export async function race<Value>(
  run: () => Promise<Value>,
  signal: AbortSignal,
  discard: (late: Value) => unknown = () => undefined,
): Promise<Value> {
  signal.throwIfAborted();
  let onAbort = () => {};
  // Listens before `run` does, so what `run` does about an abort comes too late.
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
  });
  let running: Promise<Value> | undefined;
  try {
    running = run();
    return await Promise.race([running, aborted]);
  } catch (error) {
    running?.then(discard).catch(() => undefined);
    throw error;
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/**
 * Runs `work` for at most `milliseconds`. Rejects with the deadline's reason when time is up or the outer signal aborts.
 *
 * @example await withDeadline(clock, 10_000, (signal) => fetch(url, { signal }))
 */
export async function withDeadline<Value>(
  clock: Pick<Clock, "timer">,
  milliseconds: number,
  work: (signal: AbortSignal) => Promise<Value>,
  options?: DeadlineOptions,
): Promise<Value> {
  const deadline = new Deadline(clock, milliseconds, options);
  try {
    return await race(() => work(deadline.signal), deadline.signal);
  } finally {
    deadline.stop();
  }
}

/**
 * Returns the `reason` for a deadline of `what`: a retriable `UNAVAILABLE`.
 *
 * @example await withDeadline(clock, 10_000, query, { reason: unanswered("The database", 10_000) })
 */
export function unanswered(what: string, milliseconds: number): () => DramatisError {
  const message = `${what} did not answer within ${milliseconds / 1_000} s. Try again.`;
  return () => unavailable(message, { retriable: true });
}

function timedOut(milliseconds: number): DOMException {
  return new DOMException(`Timed out after ${milliseconds} ms.`, "TimeoutError");
}
