/**
 * Chooses the cut of a compaction in a session that fills its budget. Pure.
 *
 * CUT-1  A cut is at the start of a turn after the newest compaction, so a summary includes the previous summary.
 * CUT-2  The kept turns fit their share of the budget. Only the newest turn is kept even if it exceeds the share.
 */
import type { Measure } from "./measure.ts";
import { EventAction, isCompaction, type SessionEvent } from "./session-event.ts";
import { compacted } from "./window.ts";

export interface WindowSizes {
  /** Tokens of the summaries in force. */
  summaries: number;
  /** Sequence number of the newest compaction, or -1. */
  compactedAt: number;
  /** The uncovered turns, in order. */
  turns: readonly TurnSize[];
}

export interface TurnSize {
  /** Sequence number of the turn's first event. */
  from: number;
  tokens: number;
}

/** The shares of a budget, in tokens. */
export interface CutLimits {
  /** A larger window is cut. */
  high: number;
  /** Most tokens of the kept turns. */
  keep: number;
  /** Fewest tokens that are worth a summary. */
  least: number;
}

export interface Cut {
  /** Covers the events below this sequence number. */
  cover: number;
  /** Tokens that the summary replaces. */
  tokens: number;
}

export function sizesOf(events: readonly SessionEvent[], measure: Measure): WindowSizes {
  const { summaries, left } = compacted(events);
  const turns: TurnSize[] = [];
  for (const event of left) {
    const last = turns.at(-1);
    const tokens = measure(event)?.tokens ?? 0;
    if (last === undefined || event.action === EventAction.USER_MESSAGE)
      turns.push({ from: event.seq, tokens });
    else last.tokens += tokens;
  }
  return {
    summaries: summaries.reduce((sum, event) => sum + (measure(event)?.tokens ?? 0), 0),
    compactedAt: events.findLast(isCompaction)?.seq ?? -1,
    turns,
  };
}

export function windowTokens({ summaries, turns }: WindowSizes): number {
  return turns.reduce((sum, { tokens }) => sum + tokens, summaries);
}

/** Returns the cut of a window that is too large. `null` if it fits, or if no cut is worth a summary. */
export function cutOf(sizes: WindowSizes, { high, keep, least }: CutLimits): Cut | null {
  const { summaries, compactedAt, turns } = sizes;
  const total = windowTokens(sizes);
  if (total <= high) return null;
  let covered = summaries;
  let cut: Cut | null = null;
  for (const [index, { from, tokens }] of turns.entries()) {
    if (index > 0 && from > compactedAt) {
      cut = { cover: from, tokens: covered };
      if (total - covered <= keep) break;
    }
    covered += tokens;
  }
  return cut !== null && cut.tokens >= least ? cut : null;
}
