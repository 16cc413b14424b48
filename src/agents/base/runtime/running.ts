/**
 * The effects of an actor that run, by key.
 *
 * EFFECT-2  A running effect is not started again. A lost effect may be.
 */

/** All aborts share this error. An error with its own stack for each commit would cost more than the rest of the abort. */
const NOT_CALLED_FOR = new DOMException("The effect is no longer needed.", "AbortError");

export class RunningEffects {
  readonly #running = new Map<string, AbortController>();

  has(key: string): boolean {
    return this.#running.has(key);
  }

  /** Runs `work` under `key`, unless the key already runs. Resolves when the work has ended, failed or not. Logs its error. */
  run(key: string, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    if (this.#running.has(key)) return Promise.resolve();
    const controller = new AbortController();
    this.#running.set(key, controller);
    return work(controller.signal)
      .catch((error: unknown) => console.error(error))
      .finally(() => this.#running.delete(key));
  }

  abort(key: string): void {
    this.#running.get(key)?.abort(NOT_CALLED_FOR);
  }
}
