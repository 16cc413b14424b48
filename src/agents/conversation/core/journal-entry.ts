/**
 * Journal entries: the one truth about order and decisions. An entry names its turn and item; content stays with its
 * owner (the turn's row, then the session's events).
 */
import type { Json } from "../../../shared/json.ts";

export const ENTRY_TYPES = [
  "conversation.started",
  "turn.started",
  "turn.resumed",
  "turn.waiting",
  "turn.completed",
  "turn.failed",
  "turn.finalized",
  "message.user",
  "message.started",
  "message.reset",
  "message.completed",
  "llm.call.failed",
  "tool.requested",
  "tool.completed",
  "tool.failed",
] as const;

export type EntryType = (typeof ENTRY_TYPES)[number];

export interface JournalEntry {
  type: EntryType;
  turn?: number;
  item?: number;
  data?: Json;
}

/** Entries that were committed together, as they are read back. */
export interface JournalRow {
  /** Number of the first entry. */
  seq: number;
  /** Milliseconds since the epoch. */
  at: number;
  entries: JournalEntry[];
}
