/**
 * Copies a fact that an actor owns to the directory. Retries until the directory has the newest state.
 *
 * PUB-1  The transaction of a change also notes it and writes the wake-up that publishes it. The change survives crashes and outages of the
 *        directory.
 * PUB-2  Puts run one at a time. A change during a put causes another put, so the directory ends with the newest state.
 * PUB-3  The pause between two attempts is the time that the directory has been behind, from 15 seconds to 15 minutes.
 * PUB-4  A put may request its repetition after a time. A change is put earlier.
 * PUB-5  Without a directory there is no wake-up.
 */
import type { Clock } from "../../../ports/clock.ts";
import type { Wakeup } from "../timers/wakeups.ts";

export interface CopiedData<Target> {
  clock: Pick<Clock, "now">;
  /** Returns `null` if there is no directory. */
  directory(): Target | null;
  /** Puts the actor's current state. Idempotent. Returns milliseconds if it must be called again after that time. */
  put(directory: Target): Promise<unknown>;
  /** Reports whether an earlier life may have left a change to put; `true` when absent. */
  mayBeBehind?(): boolean;
  /**
   * The time of the newest stored change, in milliseconds since the epoch. Without it, each life restarts its back-off and doubles
   * its pauses.
   */
  changedAt?(): number;
  /** The wake-up that calls `wake`. */
  wakeup: Wakeup;
}

const MIN_RETRY_MS = 15_000;
const MAX_RETRY_MS = 15 * 60_000;

export class Copy<Target = unknown> {
  /** `null` until this life has looked. */
  #isBehind: boolean | null = null;
  /** The time at which this life found the directory behind, minus the minimal pause; `null` while the directory is current. */
  #behindSince: number | null = null;
  #changes = 0;
  #wakeAt = 0;
  /** The earliest time of the next attempt after a failure. */
  #retryAt = 0;
  #running: Promise<void> | null = null;

  constructor(private readonly ports: CopiedData<Target>) {}

  /** Reports whether a change or an earlier life may have left something to put. `true` until this life has looked. */
  get isBehind(): boolean {
    return this.#isBehind !== false && this.ports.directory() !== null;
  }

  /**
   * Notes a change. Call it in the transaction that makes the change, and `publish` after the commit. Resolves when the
   * wake-up is armed: await that before acknowledging the change. Throws if the wake-up cannot be written.
   */
  note(): Promise<void> {
    if (this.ports.directory() === null) return Promise.resolve();
    const now = this.ports.clock.now();
    this.#isBehind = true;
    this.#behindSince ??= now - MIN_RETRY_MS;
    this.#changes += 1;
    this.#wakeAt = now + MIN_RETRY_MS;
    this.#retryAt = 0;
    return this.ports.wakeup.arm(MIN_RETRY_MS);
  }

  /** Puts pending changes, unless a retry is not due yet. The wake-up retries failures. Never rejects. */
  async publish(): Promise<void> {
    if (this.ports.clock.now() < this.#retryAt) return;
    this.#running ??= this.#publish().finally(() => {
      this.#running = null;
    });
    await this.#running;
  }

  /** Starts a due put. Returns the milliseconds until the next call; `null` when the directory is up to date. */
  wake(): number | null {
    if (this.ports.directory() === null || !this.#checkBehind()) return null;
    const now = this.ports.clock.now();
    if (now < this.#retryAt) return this.#retryAt - now;
    this.#behindSince ??= now - MIN_RETRY_MS;
    const behindFor = now - (this.ports.changedAt?.() ?? this.#behindSince);
    const pause = Math.min(Math.max(behindFor, MIN_RETRY_MS), MAX_RETRY_MS);
    this.#wakeAt = now + pause;
    void this.publish();
    return pause;
  }

  /** Puts again after a time. */
  async #later(milliseconds: number): Promise<void> {
    this.#retryAt = this.ports.clock.now() + milliseconds;
    this.#wakeAt = this.#retryAt;
    this.#behindSince = null;
    await this.ports.wakeup.arm(milliseconds);
  }

  #checkBehind(): boolean {
    this.#isBehind ??= this.ports.mayBeBehind?.() ?? true;
    return this.#isBehind;
  }

  async #publish(): Promise<void> {
    try {
      const directory = this.ports.directory();
      if (directory === null) return;
      while (this.#checkBehind()) {
        const changes = this.#changes;
        const again = await this.ports.put(directory);
        this.#isBehind = changes !== this.#changes || typeof again === "number";
        if (typeof again === "number" && changes === this.#changes) return await this.#later(again);
      }
      this.#behindSince = null;
      // Disarming costs less than a wake-up without work.
      this.ports.wakeup.disarm();
    } catch (error) {
      this.#retryAt = this.#wakeAt;
      console.error("Publishing to the directory failed; it will be retried:", error);
    }
  }
}
