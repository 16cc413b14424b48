/**
 * The room for the envelopes that a commit of a run begins work with. Pure.
 *
 * RUNROOM-1  The starts of one commit are bounded in number and bytes, and fit into the outbox as it is. Tokens whose start finds no room stay
 *            ready, and begin in a later commit, while the others go on. A start that could never fit fails its node with `TOO_LARGE`.
 */
import { MAX_COMMIT_START_BYTES, MAX_COMMIT_STARTS, MAX_OPEN_PARTS, PART_START_BYTES } from "./run-limits.ts";

/** Room in an outbox: envelopes, and their bytes as JSON. */
export interface Room {
  readonly envelopes: number;
  readonly bytes: number;
}

/** An outbox without a bound of its own. */
export const AMPLE: Room = { envelopes: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY };

export class StartRoom {
  /** `undefined` before the first start: most commits have none, and do not ask. */
  #left: Room | undefined;
  #isFull = false;

  /** `room` returns that of the outbox before the commit, for what begins work. */
  constructor(private readonly room: () => Room) {}

  /** A start has found no room. Those behind it are not to overtake it. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /** Takes the room for a start of so many bytes. Returns whether there was any. */
  take(bytes: number): boolean {
    this.#left ??= boundedBy(this.room());
    const left = { envelopes: this.#left.envelopes - 1, bytes: this.#left.bytes - bytes };
    this.#isFull ||= left.envelopes < 0 || left.bytes < 0;
    if (!this.#isFull) this.#left = left;
    return !this.#isFull;
  }
}

/** Returns the room for the starts of one commit. That of parts, which no token waits with, is kept. */
function boundedBy({ envelopes, bytes }: Room): Room {
  return {
    envelopes: Math.min(envelopes - MAX_OPEN_PARTS, MAX_COMMIT_STARTS),
    bytes: Math.min(bytes - MAX_OPEN_PARTS * PART_START_BYTES, MAX_COMMIT_START_BYTES),
  };
}
