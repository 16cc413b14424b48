/**
 * Journal entries: the only record of order and decisions. An entry names its turn and item. Content stays with its owner:
 * the turn's row while the turn is active, the session's events once it is over.
 */
import type { EntryType } from "../../../protocol/journal.ts";
import type { JournalRowOf } from "../../../shared/journal-row.ts";
import type { Json } from "../../../shared/json.ts";

export interface JournalEntry {
  type: EntryType;
  turn?: number;
  item?: number;
  data?: Json;
}

export type JournalRow = JournalRowOf<JournalEntry>;
