/**
 * Reads the entries of a journal, one after another.
 *
 * JOURNALTURN-1  The journal of a turn has the entries that name the turn, in their order, in pages of any size.
 * JOURNALTURN-2  Reading an ended turn reads the rows from its start to its end, and the rows of its late entries. The number of rows that
 *                it reads does not depend on the length of the journal.
 */
import type { Numbered } from "../core/record/fold.ts";
import type { Turn } from "../core/turn.ts";
import type { Journal } from "../store/journal.ts";

/** Journal rows read at a time. */
const SLICE = 64;

type Order = "asc" | "desc";

/** Yields the entries after `cursor`, an entry number, from entry `oldest` to entry `newest`; from the end backward if `order` is `desc`. */
export function* journalEntries(
  journal: Pick<Journal, "forward" | "backward">,
  order: Order,
  cursor: number | undefined,
  newest: number,
  oldest = 1,
): Generator<Numbered> {
  const step = order === "asc" ? 1 : -1;
  const from = cursor === undefined ? (step === 1 ? oldest : newest) : cursor + step;
  let next = step === 1 ? Math.max(from, oldest) : Math.min(from, newest);
  while (next >= oldest && next <= newest) {
    // A row has one entry or more.
    const limit = Math.min(SLICE, 1 + (step === 1 ? newest - next : next - oldest));
    const rows = step === 1 ? journal.forward(next, limit) : journal.backward(next, limit);
    if (rows.length === 0) return;
    for (const { seq: first, at, entries } of rows) {
      const numbered = entries.map((entry, index) => ({ entry, seq: first + index, at }));
      for (const item of step === 1 ? numbered : numbered.toReversed()) {
        // A row may begin before the first entry of this slice, or end behind it.
        if ((item.seq - next) * step < 0) continue;
        if (item.seq > newest || item.seq < oldest) return;
        yield item;
        next = item.seq + step;
      }
    }
  }
}

/** Yields the entries of a turn after `cursor`, and the entries of other turns between them. Without a turn it yields all entries. */
export function* entriesAround(
  journal: Pick<Journal, "forward" | "backward" | "endOf">,
  turn: Pick<Turn, "n" | "firstSeq" | "lateEntries"> | undefined,
  order: Order,
  cursor: number | undefined,
  newest: number,
): Generator<Numbered> {
  if (turn === undefined) return yield* journalEntries(journal, order, cursor, newest);
  const { n, firstSeq, lateEntries = [] } = turn;
  const end = journal.endOf(firstSeq, n)?.seq ?? newest;
  const ranges = [[firstSeq, end] as const, ...lateEntries.map((seq) => [seq, seq] as const)];
  for (const [from, to] of order === "asc" ? ranges : ranges.toReversed())
    yield* journalEntries(journal, order, cursor, to, from);
}
