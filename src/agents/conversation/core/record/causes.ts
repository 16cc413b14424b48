/**
 * The causes of the entries of a turn. Pure.
 *
 * LINK-1  The cause of an entry is an earlier entry of its turn: the newest entry of its item. The first entry of a tool's call follows from
 *          the newest entry of a message. Any other entry follows from the newest entry of the turn.
 * LINK-2  The first entry of a turn has no cause in the journal, and `entry.erased` has none.
 * LINK-4  If the first entries of the turn were not read, a cause among them is unknown. Such an entry has no cause.
 * LINK-3  A chain backward ends at an entry without a cause. A chain forward has all entries with a cause in the chain.
 */
import type { EntryType } from "../../../../protocol/journal.ts";
import { defined } from "../../../../shared/defined.ts";
import type { Numbered } from "./fold.ts";

export type Caused = Numbered & { cause?: number };

/** The types of entries that can only be the first of their item. */
const BEGINS: ReadonlySet<EntryType> = new Set(["message.user", "message.started", "tool.requested"]);

/** Returns entries with their causes. `entries` are the entries of a turn, ascending; without its first entries if `isCut`. */
export function causedEntries(entries: readonly Numbered[], isCut = false): Caused[] {
  const items = new Map<number, number>();
  let newest: number | undefined;
  let message: number | undefined;
  return entries.map((numbered) => {
    const { seq } = numbered;
    const { type, item } = numbered.entry;
    if (type === "entry.erased") return numbered;
    const own = item === undefined ? undefined : items.get(item);
    const isBegun = isCut && item !== undefined && !BEGINS.has(type);
    const before = type === "tool.requested" ? (message ?? (isCut ? undefined : newest)) : newest;
    const cause = own ?? (isBegun ? undefined : before);
    if (item !== undefined) items.set(item, seq);
    if (type.startsWith("message.")) message = seq;
    newest = seq;
    return { ...numbered, ...defined({ cause }) };
  });
}

/** Returns the chain from entry `start`, which comes first: backward descending, forward ascending. */
export function chainFrom(
  entries: readonly Numbered[],
  start: number,
  direction: "backward" | "forward",
  isCut = false,
): Caused[] {
  const found = new Set([start]);
  const all = causedEntries(entries, isCut);
  const ordered = direction === "backward" ? all.toReversed() : all;
  return ordered.filter(({ seq, cause }) => {
    if (direction === "forward" && cause !== undefined && found.has(cause)) found.add(seq);
    const isFound = found.has(seq);
    if (direction === "backward" && isFound && cause !== undefined) found.add(cause);
    return isFound;
  });
}
