/**
 * The order of the operations of a workspace that change files.
 *
 * WORKSPACE-8  Operations that change files run one after the other. One that is cancelled while it waits, or that waits too long, does not
 *              begin.
 */
import type { Clock } from "../../ports/clock.ts";
import { withDeadline } from "../../ports/deadline.ts";
import { DramatisError, unavailable } from "../../shared/errors.ts";

/** Milliseconds that an operation waits for others, which is less than the time limits of tools. */
const MAX_WAIT_MS = 45_000;

export class OperationQueue {
  /** The operations that wait or run, by their keys. */
  readonly #calls = new Map<string, Set<AbortController>>();
  /** Resolves when all operations have ended. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(private readonly clock: Pick<Clock, "timer">) {}

  /** Runs an operation in its turn. The signal tells it of a cancellation. Throws `CANCELLED`, or `UNAVAILABLE` after a long wait. */
  run<Value>(key: string, operation: (signal: AbortSignal) => Promise<Value>): Promise<Value> {
    const others = this.#last;
    const call = new AbortController();
    const calls = this.#calls.get(key) ?? new Set();
    this.#calls.set(key, calls.add(call));
    const options = { outer: call.signal, reason: isBusy };
    const result = withDeadline(this.clock, MAX_WAIT_MS, () => others, options).then(() => {
      call.signal.throwIfAborted();
      return operation(call.signal);
    });
    const ended = result
      .catch(() => undefined)
      .then(() => {
        calls.delete(call);
        if (calls.size === 0) this.#calls.delete(key);
      });
    this.#last = Promise.all([others, ended]);
    return result;
  }

  cancel(key: string): void {
    const message = "The call was cancelled before it began. No file changed.";
    for (const call of this.#calls.get(key) ?? []) call.abort(new DramatisError("CANCELLED", message));
  }
}

function isBusy(): DramatisError {
  const message = "Other commands run in the workspace. Try again when they have ended.";
  return unavailable(message, { retriable: true });
}
