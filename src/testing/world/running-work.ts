/**
 * Work of a test app that takes real time.
 *
 * TESTWORLD-2  The clock waits for running tools and signatures. A tool that runs for a second of real time waits for the clock instead.
 */
import { setTimeout as pause } from "node:timers/promises";

/** Real time after which a tool that still runs counts as waiting for the clock. Milliseconds. */
const HANG_MS = 1_000;

export class RunningWork {
  readonly #busy = new Set<Promise<unknown>>();
  /** Calls of real models. */
  readonly #remote = new WeakSet<Promise<unknown>>();
  /** Work that waits for the clock. */
  readonly #hung = new WeakSet<Promise<unknown>>();

  get isBusy(): boolean {
    return this.#busy.size > 0;
  }

  /** The clock stops until the work is done; for work of a tool, up to `HANG_MS`. */
  async during<Value>(work: Promise<Value>, isTool = true): Promise<Value> {
    this.#busy.add(work);
    if (!isTool) this.#remote.add(work);
    try {
      return await work;
    } finally {
      this.#busy.delete(work);
    }
  }

  /** Waits until all running work is done or waits for the clock. `settle` runs what the work has made due. */
  async whileBusy(settle: () => Promise<void>): Promise<void> {
    for (;;) {
      const waiting = [...this.#busy].filter((work) => !this.#hung.has(work));
      if (waiting.length === 0) return;
      const abort = new AbortController();
      const timeout = pause(HANG_MS, true, { signal: abort.signal }).catch(() => false);
      const isHung = await Promise.race([Promise.allSettled(waiting).then(() => false), timeout]);
      abort.abort();
      if (isHung) for (const work of waiting) if (!this.#remote.has(work)) this.#hung.add(work);
      await settle();
    }
  }
}
