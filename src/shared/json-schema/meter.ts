/** The budget of a check. Pure. */

/** The budget is used up. */
export class Spent extends Error {}

/** Counts the steps of checks and stops them at a limit. A step takes about 50 nanoseconds, and never more than some hundred. */
export class Meter {
  #spent = 0;
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** The steps that were spent. At most one request beyond the limit. */
  get spent(): number {
    return this.#spent;
  }

  get left(): number {
    return Math.max(0, this.#limit - this.#spent);
  }

  /** Takes steps before they are made. Throws `Spent` if they are not left; they must not be made then. */
  spend(steps: number): void {
    if (!(steps <= this.#limit - this.#spent)) throw new Spent();
    this.#spent += steps;
  }
}
