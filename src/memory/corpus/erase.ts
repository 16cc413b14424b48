/** Erases memories in the current transaction, with what was made of them alone. A list takes the place of calls: summaries of summaries may be thousands deep. */
import type { CorpusRows } from "./corpus-rows.ts";
import type { StoredMemory } from "./stored-memory.ts";

/** The tombstone that an erasure leaves, as `CorpusRows.erase` takes it. */
export interface ErasureMark {
  isErased: boolean;
  hash: string | null;
}

/** Erases a memory, and what was made of it alone. `now` is in milliseconds since the epoch. */
export function eraseWithDerived(
  rows: CorpusRows,
  now: number,
  memory: StoredMemory,
  mark: ErasureMark,
): void {
  const left = [{ memory, mark }];
  for (let one = left.pop(); one !== undefined; one = left.pop()) {
    const wholes = rows.memories.wholes(one.memory.n);
    rows.erase(one.memory, now, one.mark);
    for (const n of wholes) {
      const whole = rows.memories.find(n);
      if (whole === undefined || outlivesSource(rows, whole)) continue;
      left.push({ memory: whole, mark: { isErased: mark.isErased, hash: null } });
    }
  }
}

/** Hides a memory that has lost a source, and marks it to be derived again. Returns `false` for one that has none left and that nobody wrote: it is to be erased. */
export function outlivesSource(rows: CorpusRows, memory: StoredMemory): boolean {
  const { memories, pending } = rows;
  const { n } = memory;
  if (!memories.hasOrigin(n) && !memory.own) return false;
  if (memory.hidden) return true;
  // The older texts may be those of the source.
  memories.blankLog(n);
  rows.hide(memory, { hidden: true });
  pending.rederive(n);
  return true;
}
