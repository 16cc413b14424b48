/** The place of one reader in what an actor publishes, as the reader's socket uses it. */

/** Takes a text, or refuses it for now. */
export type Take = (text: { readonly text: string }) => boolean;

/** A place to continue at: behind an entry. */
export interface ReaderPlace {
  /** The number of the entry. */
  from: number;
  /** The reader has everything up to `from`, also what is no entry. */
  has?: "texts";
}

export interface ReaderCursor<Published> {
  /** Number of the last entry that the reader has; `undefined` before the first. */
  readonly seq: number | undefined;
  /** The reader misses something. */
  readonly isBehind: boolean;
  /** The reader has everything that can come. */
  readonly isOver: boolean;
  /** Passes on what was published, to a reader that is not behind. It is behind if it refuses something. */
  offer(published: readonly Published[], take: Take): void;
  /**
   * Passes on what the reader has missed, until it refuses a text or nothing is missing. `room` returns the length that the reader may take
   * at that moment: little more is read.
   */
  catchUp(take: Take, room: () => number): void;
}
