/**
 * The wake-up of an actor's work: arms it, and remembers whether it is armed.
 *
 * RUN-6  Work is acknowledged only when its wake-up is armed. If arming fails, the next commit or a timer arms it again, the timer after a
 *        second. Repeated failures share one timer. This also happens if the work has ended, because the same wake-up publishes to the
 *        directory.
 * RUN-8  A wake-up that was armed during the actor's start does not count as armed. The platform sets its alarm after the start, and may
 *        fail. The wake-up is armed again with the next commit, or after a second.
 */
import type { Clock } from "../../../ports/clock.ts";
import { RETRY_MS, RetryTimer } from "./retry-timer.ts";

export interface WakeupPorts {
  clock: Clock;
  /**
   * Arms the actor's wake-up for at most `milliseconds` from now. Called inside the transaction that needs it: the wake-up
   * commits with the transaction, and the call throws if it cannot be written. Resolves when it is armed.
   */
  armWakeup(milliseconds: number): Promise<void>;
  /**
   * Arms the wake-up of the actor's copies in the current transaction, if the wake-up of its work in `milliseconds` is too late for them.
   * Throws if the wake-up cannot be written. Absent if the actor has no copies.
   */
  armCopies?(milliseconds: number): void;
}

/**
 * Maximum number of consecutive failed reads of the wake-up's time. An actor with storage of a newer version must not stay awake for
 * retries.
 */
const MAX_READS = 2;

export class ArmedWakeup {
  /** The last arming; `null` if no wake-up is known to be armed. */
  #armed: Promise<void> | null = null;
  readonly #retry: RetryTimer;
  #failedReads = 0;

  /** `dueIn` returns in how many milliseconds the wake-up must come; `null` while there is no work. */
  constructor(
    private readonly ports: WakeupPorts,
    private readonly dueIn: () => number | null,
  ) {
    this.#retry = new RetryTimer(ports.clock, () => this.#armAgain());
  }

  get isArmed(): boolean {
    return this.#armed !== null;
  }

  /** Resolves when the wake-up is armed. Arms it first if it is not known to be armed. */
  async whenArmed(): Promise<void> {
    const due = this.dueIn();
    if (due !== null) await this.#armedFor(due);
  }

  /**
   * Writes the wake-up for `milliseconds` from now in the current transaction, unless it is armed for an earlier time. Call
   * `adopt` with the result after the commit. Throws if the wake-up cannot be written.
   */
  write(milliseconds: number): Promise<void> {
    try {
      const armed = this.ports.armWakeup(milliseconds);
      // `adopt` handles the error. After a rollback, `adopt` is not called.
      armed.catch(() => undefined);
      return armed;
    } catch (error) {
      this.#retry.start();
      throw error;
    }
  }

  /** Remembers a committed arming. */
  adopt(armed: Promise<void>): void {
    this.#armed = armed;
    armed.catch((error: unknown) => {
      console.error(error);
      if (this.#armed !== armed) return;
      this.#armed = null;
      this.#retry.start();
    });
  }

  /** Forgets an arming of the actor's start (RUN-8). */
  doubt(): void {
    this.#armed = null;
    this.ports.clock.timer(RETRY_MS, () => void this.whenArmed().catch(() => this.#readLater()));
  }

  async #armedFor(milliseconds: number): Promise<void> {
    if (this.#armed === null) this.adopt(this.write(milliseconds));
    await this.#armed;
  }

  #armAgain(): void {
    const armed = (async () => this.#armedFor(this.dueIn() ?? 0))();
    armed.then(
      () => {
        this.#failedReads = 0;
      },
      () => this.#readLater(),
    );
  }

  #readLater(): void {
    this.#failedReads += 1;
    if (this.#failedReads <= MAX_READS) this.#retry.start();
  }
}
