/**
 * The wake-up of an actor's work: arms it, and remembers whether it is armed.
 *
 * RUN-6  Work is acknowledged only when its wake-up is armed. A wake-up that failed to arm is armed again with the next
 *        commit, or a second later, by one timer however many attempts fail meanwhile. This also happens where the work is
 *        over by then, because the same wake-up publishes to the directory.
 * RUN-8  What was armed while the actor started does not count as armed: the platform sets its alarm after the start, and
 *        may fail. It is armed again with the next commit, or a second later.
 */
import type { Clock } from "../../../ports/clock.ts";

export interface WakeupPorts {
  clock: Clock;
  /**
   * Arms the actor's wake-up for at most `milliseconds` from now. Called inside the transaction that needs it: the wake-up
   * commits with the transaction, and the call throws if it cannot be written. Resolves when it is armed.
   */
  armWakeup(milliseconds: number): Promise<void>;
}

/** Milliseconds before a wake-up that failed to arm is armed again. */
const ARM_RETRY_MS = 1_000;
/** Tries in a row in which the time of the wake-up could not be read. An actor of a newer version must not stay awake for them. */
const MAX_READS = 2;

export class ArmedWakeup {
  /** The last arming; `null` while nothing is known to be armed. */
  #armed: Promise<void> | null = null;
  #isRetrying = false;
  #failedReads = 0;

  /** `dueIn` returns in how many milliseconds the wake-up must come; `null` while there is no work. */
  constructor(
    private readonly ports: WakeupPorts,
    private readonly dueIn: () => number | null,
  ) {}

  /** Reports whether the wake-up is armed, or being armed. */
  get isArmed(): boolean {
    return this.#armed !== null;
  }

  /** Resolves when the wake-up is armed. Arms it first where that is not known. */
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
      // Handled by `adopt`; a transaction that rolls back adopts nothing.
      armed.catch(() => undefined);
      return armed;
    } catch (error) {
      this.#armLater();
      throw error;
    }
  }

  /** Remembers an arming whose transaction has committed. */
  adopt(armed: Promise<void>): void {
    this.#armed = armed;
    armed.catch((error: unknown) => {
      console.error(error);
      if (this.#armed !== armed) return;
      this.#armed = null;
      this.#armLater();
    });
  }

  /** Forgets an arming of the actor's start (RUN-8). */
  doubt(): void {
    this.#armed = null;
    this.ports.clock.timer(ARM_RETRY_MS, () => void this.whenArmed().catch(() => this.#readLater()));
  }

  async #armedFor(milliseconds: number): Promise<void> {
    if (this.#armed === null) this.adopt(this.write(milliseconds));
    await this.#armed;
  }

  #armLater(): void {
    if (this.#isRetrying) return;
    this.#isRetrying = true;
    this.ports.clock.timer(ARM_RETRY_MS, () => {
      this.#isRetrying = false;
      const armed = (async () => this.#armedFor(this.dueIn() ?? 0))();
      armed.then(
        () => {
          this.#failedReads = 0;
        },
        () => this.#readLater(),
      );
    });
  }

  #readLater(): void {
    this.#failedReads += 1;
    if (this.#failedReads <= MAX_READS) this.#armLater();
  }
}
