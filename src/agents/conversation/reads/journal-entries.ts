/** Reads the entries of a journal, one after another. */
import type { Numbered } from "../core/record/fold.ts";
import type { Journal } from "../store/journal.ts";

/** Journal rows read at a time. */
const SLICE = 64;

/** Yields the entries after `cursor`, an entry number, up to entry `newest`; from the end backward if `order` is `desc`. */
export function* journalEntries(
  journal: Pick<Journal, "forward" | "backward">,
  order: "asc" | "desc",
  cursor: number | undefined,
  newest: number,
): Generator<Numbered> {
  const step = order === "asc" ? 1 : -1;
  let next = cursor === undefined ? (step === 1 ? 1 : newest) : cursor + step;
  while (next >= 1 && next <= newest) {
    const rows = step === 1 ? journal.forward(next, SLICE) : journal.backward(next, SLICE);
    if (rows.length === 0) return;
    for (const { seq: first, at, entries } of rows) {
      const numbered = entries.map((entry, index) => ({ entry, seq: first + index, at }));
      for (const item of step === 1 ? numbered : numbered.toReversed()) {
        // A row may begin before the first entry of this slice, or end behind it.
        if ((item.seq - next) * step < 0) continue;
        yield item;
        next = item.seq + step;
      }
    }
  }
}
