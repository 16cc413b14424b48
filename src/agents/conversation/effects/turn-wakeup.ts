/**
 * The wake-up of a conversation's active turns: arms it, and remembers whether it is armed.
 *
 * RUN-6  A message is acknowledged only when the wake-up of its turn is armed. A wake-up that failed to arm is armed again
 *        with the next commit, or a second later, by one timer however many attempts fail meanwhile. This also happens
 *        where the turns are over by then, because the same wake-up publishes to the directory.
 */
import type { Clock } from "../../../ports/clock.ts";
import { HEARTBEAT_MS } from "../core/limits.ts";

export interface TurnWakeupPorts {
  /**
   * Arms the actor's wake-up for at most `milliseconds` from now. Called inside the transaction that needs it: the wake-up
   * commits with the transaction, and the call throws if it cannot be written. Resolves when it is armed.
   */
  armWakeup(milliseconds: number): Promise<void>;
  clock: Clock;
}

/** Milliseconds before a wake-up that failed to arm is armed again. */
const ARM_RETRY_MS = 1_000;

export class TurnWakeup {
  /** The last arming; `null` while nothing is known to be armed. */
  #armed: Promise<void> | null = null;
  #isRetrying = false;

  /** `dueIn` returns in how many milliseconds the wake-up must come; `null` while no turn is active. */
  constructor(
    private readonly ports: TurnWakeupPorts,
    private readonly dueIn: () => number | null,
  ) {}

  /** Reports whether the wake-up is armed, or being armed. */
  get isArmed(): boolean {
    return this.#armed !== null;
  }

  /** Resolves when the wake-up of the active turns is armed. Arms it first where that is not known. */
  async whenArmed(): Promise<void> {
    const due = this.dueIn();
    if (due !== null) await this.#armedFor(due);
  }

  /**
   * Arms the wake-up for `milliseconds` from now, unless it is armed for an earlier time. Call it in the transaction that
   * needs it. Throws if the wake-up cannot be written.
   */
  arm(milliseconds: number): Promise<void> {
    try {
      const armed = this.ports.armWakeup(milliseconds);
      this.#armed = armed;
      armed.catch((error: unknown) => {
        console.error(error);
        if (this.#armed !== armed) return;
        this.#armed = null;
        this.#armLater();
      });
      return armed;
    } catch (error) {
      this.#armLater();
      throw error;
    }
  }

  /** Call it when the transaction that armed the wake-up has failed. */
  forget(): void {
    this.#armed = null;
  }

  async #armedFor(milliseconds: number): Promise<void> {
    await (this.#armed ?? this.arm(milliseconds));
  }

  #armLater(): void {
    if (this.#isRetrying) return;
    this.#isRetrying = true;
    this.ports.clock.timer(ARM_RETRY_MS, () => {
      this.#isRetrying = false;
      this.#armedFor(this.dueIn() ?? HEARTBEAT_MS).catch(() => undefined);
    });
  }
}
