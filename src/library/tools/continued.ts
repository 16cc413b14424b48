/** The value of a call that continues elsewhere. */

/** An attempt that has ended while the work continues. The next attempt asks for the result, no earlier than `at`. */
export class Continued {
  constructor(
    /** Milliseconds since the epoch. */
    readonly at: number,
  ) {}
}
