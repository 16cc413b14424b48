/** The values of attempts that end without a result. */
import type { Elicited } from "../../protocol/elicitation.ts";

/** An attempt that has ended while the work continues. The next attempt asks for the result, no earlier than `at`. */
export class Continued {
  constructor(
    /** Milliseconds since the epoch. */
    readonly at: number,
  ) {}
}

/** An attempt that has ended with a question to a person. The next attempt has the answer. */
export class Asked {
  constructor(
    readonly elicited: Elicited,
    /** The error of a call that cannot ask a person. */
    readonly problem: string,
  ) {}
}
