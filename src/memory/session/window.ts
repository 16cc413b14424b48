/**
 * The window of a session: the active summaries, and the newest turns that fit a token budget. Pure and stateless: equal events give an
 * equal window.
 *
 * TOKEN-3  The window fits the budget by the same counter. Only the newest unit, with the user's message that opens its turn, is sent even
 *          if it alone exceeds the budget.
 * TOKEN-4  A window begins with a user's turn. Only a newest turn that exceeds the budget is cut: between its moves, never between a
 *          request and its results. Its user's message stays.
 * TOKEN-5  In a growing session each window begins with the previous window, except for rare steps. A step drops enough that later turns
 *          fit again. This keeps the provider's prompt cache valid.
 *
 * A step needs no memory. Each candidate start fits and fills at least half of the budget. The window chooses the start that crosses a
 * multiple of the highest power of two in the sequence numbers. This start stays the best for long.
 */
import type { ContextMessage } from "../../model/messages.ts";
import type { Measure, Measured } from "./measure.ts";
import { isPaired, pairedOrder } from "./pairs.ts";
import {
  type CompactionEvent,
  coverage,
  EventAction,
  isCompaction,
  type SessionEvent,
} from "./session-event.ts";

export interface Compacted {
  /** The active compactions, ascending. */
  summaries: CompactionEvent[];
  /** The uncovered events, in order. */
  left: readonly SessionEvent[];
  /** Events with a lower sequence number are covered. */
  covered: number;
}

/** Separates the active compactions from the uncovered events. */
export function compacted(events: readonly SessionEvent[]): Compacted {
  if (!events.some(isCompaction)) return { summaries: [], left: events, covered: 0 };
  const position = positions(events);
  const covered = events.reduce(
    (most, event, index) => (isCompaction(event) ? Math.max(most, coverage(event, position(index))) : most),
    0,
  );
  if (covered === 0) return { summaries: [], left: events, covered };
  const uncovered = events.filter((_, index) => position(index) >= covered);
  return {
    summaries: uncovered.filter(isCompaction),
    left: uncovered.filter((event) => !isCompaction(event)),
    covered,
  };
}

/**
 * Returns the position of an event in its session: its sequence number, which also counts the events before the window. Unstored events
 * share a placeholder. Their position is the index.
 */
function positions(events: readonly SessionEvent[]): (index: number) => number {
  const ascending = events.every((event, index) => index === 0 || event.seq > (events[index - 1]?.seq ?? 0));
  return (index) => (ascending ? (events[index]?.seq ?? index) : index);
}

export interface WindowOptions {
  /** Maximum tokens of all messages together. */
  tokenBudget: number;
  /**
   * Set if there are earlier unread events. Then the first turn may be incomplete. It only determines the position of the others, unless it
   * is the only turn. Default: `false`.
   */
  isCutOff?: boolean;
}

/** Returns the active summaries and the newest turns that fit after them, each request directly with its results. */
export function windowMessages(
  events: readonly SessionEvent[],
  measure: Measure,
  { tokenBudget, isCutOff = false }: WindowOptions,
): ContextMessage[] {
  const { summaries, left } = compacted(events);
  const front = summaries.map(measure).filter((summary) => summary !== null);
  const chosen = newestParts(pairedParts(left, measure), tokenBudget - tokensOf(front), isCutOff);
  return [...front, ...chosen].map(({ message }) => message);
}

/** Returns the newest turns that fit (TOKEN-3 to TOKEN-5). */
function newestParts(
  parts: readonly Measured[],
  tokenBudget: number,
  isCutOff: boolean,
): readonly Measured[] {
  // Skips the count if all parts fit and no shorter window fills half of the budget.
  if (mostTokensOf(parts) < (isCutOff ? tokenBudget / 2 : tokenBudget)) {
    const second = isCutOff ? parts.findIndex((part, index) => index > 0 && beginsTurn(part)) : 0;
    return parts.slice(Math.max(0, second));
  }
  const turns = grouped(parts, beginsTurn);
  const chosen = turns.slice(stableStart(turns, tokenBudget, isCutOff)).flat();
  return tokensOf(chosen) <= tokenBudget ? chosen : cutTurn(turns.at(-1) ?? [], tokenBudget);
}

function beginsTurn({ event }: Measured): boolean {
  return event.action === EventAction.USER_MESSAGE;
}

/** Returns the messages of events, each request directly with all of its results. Omits incomplete pairs. */
export function pairedParts(events: readonly SessionEvent[], measure: Measure): Measured[] {
  const parts = events.map(measure).filter((part) => part !== null);
  const messages = parts.map(({ message }) => message);
  return isPaired(messages) ? parts : pairedOrder(messages).flatMap((index) => parts[index] ?? []);
}

/** Cuts a turn that exceeds the budget to its user's message and the last moves that fit. */
function cutTurn(turn: readonly Measured[], tokenBudget: number): Measured[] {
  const head = turn.slice(0, turn[0] !== undefined && beginsTurn(turn[0]) ? 1 : 0);
  const moves = grouped(turn.slice(head.length), ({ message }) => message.role !== "tool");
  const start = stableStart(moves, tokenBudget - tokensOf(head), false);
  return [...head, ...moves.slice(start).flat()];
}

/** Returns the index of the group that a window begins with (TOKEN-5). Returns the newest group if no group fits. */
function stableStart(groups: readonly Measured[][], tokenBudget: number, isCutOff: boolean): number {
  const newest = Math.max(0, groups.length - 1);
  const first = isCutOff && newest > 0 ? 1 : 0;
  let best = newest;
  let bestRank = -1;
  let tokens = 0;
  for (let index = newest; index >= first; index--) {
    tokens += tokensOf(groups[index] ?? []);
    if (tokens > tokenBudget) break;
    if (index === 0) return 0;
    const isEnough = tokens >= tokenBudget / 2;
    const rank = isEnough ? rankOf(groups[index - 1], groups[index]) : -1;
    if (rank >= bestRank) {
      best = index;
      bestRank = rank;
    }
  }
  return best;
}

/** Returns the exponent of the highest power of two with a multiple between the sequence numbers of two groups. */
function rankOf(before: readonly Measured[] | undefined, group: readonly Measured[] | undefined): number {
  return 31 - Math.clz32((before?.[0]?.event.seq ?? 0) ^ (group?.[0]?.event.seq ?? 0));
}

/** Groups parts. A group begins at each part with `isStart`, the first group at the first part. */
function grouped(parts: readonly Measured[], isStart: (part: Measured) => boolean): Measured[][] {
  const groups: Measured[][] = [];
  for (const part of parts) {
    const last = groups.at(-1);
    if (last === undefined || isStart(part)) groups.push([part]);
    else last.push(part);
  }
  return groups;
}

function tokensOf(parts: readonly Measured[]): number {
  return parts.reduce((sum, { tokens }) => sum + tokens, 0);
}

function mostTokensOf(parts: readonly Measured[]): number {
  return parts.reduce((sum, part) => sum + part.mostTokens, 0);
}
