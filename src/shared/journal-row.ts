/** A row of a journal: the entries of one commit. */
export interface JournalRowOf<Entry> {
  /** The number of its first entry. */
  readonly seq: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly entries: readonly Entry[];
}

export function lastSeq({ seq, entries }: JournalRowOf<unknown>): number {
  return seq + entries.length - 1;
}
