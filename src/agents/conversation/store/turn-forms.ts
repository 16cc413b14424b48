/**
 * Turns as rows have them: as JSON, in the form of the release that wrote them. Rows are not rewritten when a release
 * changes the form: an active turn's row changes with its next commit, a finished turn's never. So readers take all forms.
 *
 * FORM-1  `currentForm(storedForm(turn))` equals the turn.
 */
import type { Turn } from "../core/turn.ts";

type Snapshot = Pick<Turn, "firstSeq" | "snapshotSeq">;

/** Leaves out what `currentForm` adds: the first cycle of a turn begins with its first entry. */
export function storedForm<Members extends Snapshot>(
  turn: Members,
): Omit<Members, "snapshotSeq"> & Partial<Snapshot> {
  const { snapshotSeq, ...others } = turn;
  return snapshotSeq === turn.firstSeq ? others : turn;
}

/**
 * Returns a parsed row in the form of this release. Up to 0.3.0 rows had `snapshot`, a position in the session of the
 * turn's agent; these turns had one cycle only. `newer` had texts of messages, which are in the turns after this one.
 */
export function currentForm<Members extends { firstSeq: number }>(
  stored: Members & { snapshot?: number; newer?: readonly string[] },
): Members & Snapshot {
  const { snapshot: _position, newer: _texts, ...others } = stored;
  // SAFETY: `Members` are the members of today's form.
  return { snapshotSeq: others.firstSeq, ...others } as unknown as Members & Snapshot;
}
