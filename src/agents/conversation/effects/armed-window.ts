/**
 * The wake-up of a conversation's active turns, as this life knows it: being armed, armed, or not known to be.
 *
 * RUN-6  A message is answered for only when the wake-up of its turn is armed; what failed to arm is armed again with the
 *        next commit, or a second later, by one timer however many fail meanwhile; also where the turns are over by
 *        then, because the same wake-up tells the directory.
 */
import type { Clock } from "../../../ports/clock.ts";
import { HEARTBEAT_MS } from "../core/limits.ts";

/** Brings the actor back while turns are active. */
export interface ActiveWindow {
  /**
   * Sees to it that the actor is woken in at most so many milliseconds. Called inside the transaction that gives it
   * something to do by then. What it writes commits with it, and what cannot be written throws there; the promise
   * resolves when the wake-up is armed.
   */
  open(milliseconds: number): Promise<void>;
}

export interface ArmedWindowPorts {
  window: ActiveWindow;
  clock: Clock;
}

/** Before a wake-up that could not be armed is armed again, in milliseconds. */
const ARM_RETRY_MS = 1_000;

export class ArmedWindow {
  /** The arming of the wake-up; `null` while this life does not know that it is armed. */
  #armed: Promise<void> | null = null;
  #isRetrying = false;

  /** `dueIn` says in how many milliseconds the wake-up must come; `null` while no turn is active. */
  constructor(
    private readonly ports: ArmedWindowPorts,
    private readonly dueIn: () => number | null,
  ) {}

  /** Whether it is armed, or being armed. */
  get isArmed(): boolean {
    return this.#armed !== null;
  }

  /** Resolves when the wake-up of the active turns is armed; one that is not known to be armed is armed again. */
  async whenArmed(): Promise<void> {
    const due = this.dueIn();
    if (due !== null) await this.#armedFor(due);
  }

  /**
   * Arms it for so many milliseconds from now, or leaves it where that is earlier. Call it in the transaction that needs
   * it. Throws if the wake-up cannot be written.
   */
  arm(milliseconds: number): Promise<void> {
    const armed = this.#open(milliseconds);
    this.#armed = armed;
    armed.catch((error: unknown) => {
      console.error(error);
      if (this.#armed !== armed) return;
      this.#armed = null;
      this.#armLater();
    });
    return armed;
  }

  async #armedFor(milliseconds: number): Promise<void> {
    await (this.#armed ?? this.arm(milliseconds));
  }

  /** The transaction has failed: what was armed in it is armed no more. */
  forget(): void {
    this.#armed = null;
  }

  #open(milliseconds: number): Promise<void> {
    try {
      return this.ports.window.open(milliseconds);
    } catch (error) {
      this.#armLater();
      throw error;
    }
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
