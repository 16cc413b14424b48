/**
 * The place where a compaction cuts a session that fills its budget. Pure.
 *
 * CUT-1  A cut lies at the beginning of a turn behind the newest compaction, so that a summary includes the one before it.
 * CUT-2  What is kept fits its share of the budget. Only the newest turn is kept even if it exceeds the share.
 */
import type { Measure } from "./measure.ts";
import { EventAction, isCompaction, type SessionEvent } from "./types.ts";
import { compacted } from "./window.ts";

/** The sizes of a window's parts. */
export interface WindowSizes {
  /** Tokens of the summaries in force. */
  summaries: number;
  /** Sequence number of the newest compaction; -1 if there is none. */
  compactedAt: number;
  /** The turns that no compaction covers, in order. */
  turns: readonly TurnSize[];
}

/** The size of a turn. */
export interface TurnSize {
  /** Sequence number of the turn's first event. */
  from: number;
  tokens: number;
}

/** The shares of a budget, in tokens. */
export interface CutLimits {
  /** A window with more tokens is cut. */
  high: number;
  /** Most tokens of the turns that are kept. */
  keep: number;
  /** Least tokens that are worth a summary. */
  least: number;
}

/** A cut of a window. */
export interface Cut {
  /** The events below this sequence number are to be covered. */
  cover: number;
  /** Tokens of what the summary is to replace. */
  tokens: number;
}

/** Returns the sizes of a window of events. */
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

/** Returns the tokens of a window. */
export function windowTokens({ summaries, turns }: WindowSizes): number {
  return turns.reduce((sum, { tokens }) => sum + tokens, summaries);
}

/** Returns the cut of a window that is too large; `null` if it is not, or no cut is worth a summary. */
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
