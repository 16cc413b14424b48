/**
 * Tells the directory of an actor until the directory has taken it. The actor owns the fact; the directory follows.
 *
 * PUB-1  A change is noted in the transaction that makes it, with the wake-up that publishes it: neither a crash nor a
 *        directory that is down for a while loses it.
 * PUB-2  Puts are made one at a time, and what changed during one is put again: the directory ends with the newest.
 * PUB-3  Between two attempts as much time passes as the directory has been behind, from 15 seconds to 15 minutes.
 */

/** What is published, and how the actor is woken for it. */
export interface PublicationPorts {
  /** Puts what the actor stores now; doing it twice is doing it once. */
  put(): Promise<void>;
  /** When what is stored was last changed, in milliseconds since the epoch. */
  changedAt(): number;
  now(): number;
  /** As `Wakeups.arm`, for the wake-up that calls `wake`. */
  arm(milliseconds: number): Promise<void>;
  /** As `Wakeups.disarm`. */
  disarm(): void;
}

const MIN_RETRY_MS = 15_000;
const MAX_RETRY_MS = 15 * 60_000;

export class Publication {
  /** A life does not know what the one before has published, and is asked only where something may be left. */
  #isBehind = true;
  #changes = 0;
  #running: Promise<void> | null = null;

  constructor(private readonly ports: PublicationPorts) {}

  /**
   * Call it in the transaction that makes a change, and `publish` after the commit. Resolves when the wake-up is armed:
   * await that before you acknowledge the change. Throws if the wake-up cannot be written.
   */
  note(): Promise<void> {
    this.#isBehind = true;
    this.#changes += 1;
    return this.ports.arm(MIN_RETRY_MS);
  }

  /** Tells the directory what it does not know yet. What does not work is left to the wake-up; never rejects. */
  publish(): Promise<void> {
    this.#running ??= this.#publish().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** Starts what is due. Answers after how many milliseconds to be called again; `null` when the directory knows all. */
  wake(): number | null {
    if (!this.#isBehind) return null;
    void this.publish();
    const behindFor = this.ports.now() - this.ports.changedAt();
    return Math.min(Math.max(behindFor, MIN_RETRY_MS), MAX_RETRY_MS);
  }

  async #publish(): Promise<void> {
    try {
      while (this.#isBehind) {
        const changes = this.#changes;
        await this.ports.put();
        this.#isBehind = changes !== this.#changes;
      }
      // Cheaper than to let it come and end: a sleeping actor would wake, and put once more, for nothing.
      this.ports.disarm();
    } catch (error) {
      console.error("The directory could not be told:", error);
    }
  }
}
