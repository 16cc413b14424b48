/**
 * Erases memories in the current transaction, with all memories that depend only on them. Uses a list instead of recursion, because
 * summaries may be nested thousands deep.
 */
import type { CorpusRows } from "./corpus-rows.ts";
import type { StoredMemory } from "./stored-memory.ts";

export interface Erasure {
  isErased: boolean;
  hash: string | null;
}

/** Erases a memory, with all memories that depend only on it. `now` is in milliseconds since the epoch. */
export function eraseWithDerived(
  rows: CorpusRows,
  now: number,
  memory: StoredMemory,
  erasure: Erasure,
): void {
  const left = [{ memory, erasure }];
  for (let one = left.pop(); one !== undefined; one = left.pop()) {
    const summariesOf = rows.memories.summariesOf(one.memory.n);
    rows.erase(one.memory, now, one.erasure);
    for (const n of summariesOf) {
      const whole = rows.memories.find(n);
      if (whole === undefined || outlivesSource(rows, whole)) continue;
      left.push({ memory: whole, erasure: { isErased: erasure.isErased, hash: null } });
    }
  }
}

/**
 * Hides a memory that has lost a source and marks it for rederivation. Returns `false` if no source or author remains, so the caller must
 * erase it.
 */
export function outlivesSource(rows: CorpusRows, memory: StoredMemory): boolean {
  const { memories, pending } = rows;
  const { n } = memory;
  if (!memories.hasOrigin(n) && !memory.own) return false;
  if (memory.hidden) return true;
  // The older texts may come from the lost source.
  memories.blankLog(n);
  rows.hide(memory, { hidden: true });
  pending.rederive(n);
  return true;
}
