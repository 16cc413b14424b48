/** The place of one reader in the published entries of an actor. */

/** Takes a text, or refuses it for now. */
export type Take = (text: { readonly text: string }) => boolean;

/** A place to continue at: behind an entry. */
export interface ReaderPlace {
  /** The number of the entry. */
  from: number;
  /** The reader has everything up to `from`, including text in progress. */
  has?: "texts";
}

export interface ReaderCursor<Published> {
  /** Number of the last entry that the reader has; `undefined` before the first. */
  readonly seq: number | undefined;
  /** The reader misses something. */
  readonly isBehind: boolean;
  /** The reader has everything that can come. */
  readonly isOver: boolean;
  /** Passes published frames to a reader that is not behind. A reader that refuses a frame is behind. */
  offer(published: readonly Published[], take: Take): void;
  /**
   * Passes missed texts to the reader, until it refuses a text or is up to date. `room` returns the length that the reader may take now,
   * and bounds the reads.
   */
  catchUp(take: Take, room: () => number): void;
}
