/**
 * The wake-up of a conversation's active turns, as this life knows it: being armed, armed, or not known to be.
 *
 * RUN-6  A message is answered for only when the wake-up of its turn is armed; what failed to arm is armed again with the
 *        next commit, or a second later, by one timer however many fail meanwhile.
 */
import type { Clock } from "../../ports/clock.ts";

/** Keeps the actor alive, and brings it back, while turns are active. */
export interface ActiveWindow {
  /**
   * Called inside the transaction that makes the first turn active. What it writes commits with it, and what cannot be
   * written throws there; the promise resolves when the wake-up is armed.
   */
  open(): Promise<void>;
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

  /** `isNeeded` says whether turns are active. */
  constructor(
    private readonly ports: ArmedWindowPorts,
    private readonly isNeeded: () => boolean,
  ) {}

  /** Whether it is armed, or being armed. */
  get isArmed(): boolean {
    return this.#armed !== null;
  }

  /** Resolves when the wake-up of the active turns is armed; one that is not known to be armed is armed again. */
  async whenArmed(): Promise<void> {
    if (this.isNeeded()) await (this.#armed ?? this.arm());
  }

  /** Call it in the transaction that makes turns active. Throws if the wake-up cannot be written. */
  arm(): Promise<void> {
    const armed = this.#open();
    this.#armed = armed;
    armed.catch((error: unknown) => {
      console.error(error);
      if (this.#armed !== armed) return;
      this.#armed = null;
      this.#armLater();
    });
    return armed;
  }

  /** The transaction has failed: what was armed in it is armed no more. */
  forget(): void {
    this.#armed = null;
  }

  #open(): Promise<void> {
    try {
      return this.ports.window.open();
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
      void this.whenArmed().catch(() => undefined);
    });
  }
}
