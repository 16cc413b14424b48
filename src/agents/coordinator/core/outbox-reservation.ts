/**
 * Outbox room for the envelopes that start work in one commit of a run. Pure.
 *
 * RUNOUTBOX-1  The starts of one commit have a maximum number and size, and fit into the free room of the outbox. A token without outbox room
 *              stays ready and begins in a later commit. Other tokens continue. A start that could never fit fails its node with `TOO_LARGE`.
 */
import { MAX_COMMIT_START_BYTES, MAX_COMMIT_STARTS, MAX_OPEN_PARTS, PART_START_BYTES } from "./run-limits.ts";

/** Free room in an outbox: envelopes, and their bytes as JSON. */
export interface OutboxRoom {
  readonly envelopes: number;
  readonly bytes: number;
}

export const UNLIMITED_ROOM: OutboxRoom = {
  envelopes: Number.POSITIVE_INFINITY,
  bytes: Number.POSITIVE_INFINITY,
};

export class OutboxReservation {
  /** `undefined` before the first start. Most commits start no work and skip the query. */
  #left: OutboxRoom | undefined;
  #isFull = false;

  /** `room` returns the outbox room before the commit. */
  constructor(private readonly room: () => OutboxRoom) {}

  /** True after a start without room. Later starts of the commit must not overtake it. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /** Reserves room for a start of so many bytes. Returns true if it succeeds. */
  take(bytes: number): boolean {
    this.#left ??= boundedBy(this.room());
    const left = { envelopes: this.#left.envelopes - 1, bytes: this.#left.bytes - bytes };
    this.#isFull ||= left.envelopes < 0 || left.bytes < 0;
    if (!this.#isFull) this.#left = left;
    return !this.#isFull;
  }
}

/** Returns the room for the starts of one commit, without the room reserved for parts. */
function boundedBy({ envelopes, bytes }: OutboxRoom): OutboxRoom {
  return {
    envelopes: Math.min(envelopes - MAX_OPEN_PARTS, MAX_COMMIT_STARTS),
    bytes: Math.min(bytes - MAX_OPEN_PARTS * PART_START_BYTES, MAX_COMMIT_START_BYTES),
  };
}
