/**
 * The window of a session: the summaries in force, and the newest turns that fit a budget of tokens. Pure and stateless: the
 * same events give the same window.
 *
 * TOKEN-3  The window fits the budget by the same counter. Only the newest unit, with the user's message that opens its
 *          turn, is sent even if it alone exceeds the budget.
 * TOKEN-4  A window begins with a user's turn. Only a newest turn that exceeds the budget is cut: between its moves, never
 *          between a request and its results. Its user's message stays.
 * TOKEN-5  In a growing session each window begins with the previous one, except for rare steps. A step leaves out so
 *          much that later turns fit again. This keeps the provider's prompt cache valid.
 *
 * A step needs no memory. Among the starts that fit and fill at least half of the budget, the window takes the one at which
 * the sequence numbers pass a multiple of the highest power of two: this start stays the best one for long.
 */

import type { ContextMessage } from "../../model/messages.ts";
import { eventToMessage } from "./events.ts";
import { pairedOrder } from "./pairs.ts";
import { shortenedContent } from "./shorten.ts";
import { estimateTokens, messageTokens, type TokenCounter } from "./tokens.ts";
import { type CompactionEvent, coverage, EventAction, isCompaction, type SessionEvent } from "./types.ts";

/** A message as it is sent, and its tokens. */
export interface Measured {
  message: ContextMessage;
  tokens: number;
  isShortened: boolean;
}

/** Returns the message of an event; `null` for an event that no model gets. */
export type Measure = (event: SessionEvent) => Measured | null;

/** Measured events by id: the tokens of the message, and its content if it was shortened. */
export type KnownEvents = Map<string, { tokens: number; shortened?: string }>;

export interface MeasureOptions {
  /** Maximum tokens of all messages together; unlimited when absent. */
  tokenBudget?: number;
  /** Maximum tokens of one tool result; a longer one is shortened. A quarter of the budget when absent. */
  maxResultTokens?: number;
  /** Counts tokens; an estimate when absent. */
  countTokens?: TokenCounter;
  /** Maps an event to a message; `null` omits it. */
  eventToMessage?: (event: SessionEvent) => ContextMessage | null;
  /** Caches measurements, because events never change. Only for events with unique ids. */
  known?: KnownEvents;
}

/** The part of a budget that one tool result may take. */
const RESULT_SHARE = 1 / 4;

export function measuring(options: MeasureOptions): Measure {
  const { tokenBudget = Number.POSITIVE_INFINITY, known } = options;
  const { maxResultTokens = tokenBudget * RESULT_SHARE, eventToMessage: toMessage = eventToMessage } =
    options;
  const isUnlimited = Math.min(tokenBudget, maxResultTokens) === Number.POSITIVE_INFINITY;
  const { countTokens = estimateTokens } = isUnlimited ? { countTokens: () => 0 } : options;
  return (event) => {
    const message = event.action === "unknown" ? null : toMessage(event);
    if (message === null) return null;
    const fact = known?.get(event.id);
    if (fact !== undefined) {
      const { tokens, shortened } = fact;
      const isShortened = shortened !== undefined;
      return { tokens, isShortened, message: isShortened ? { ...message, content: shortened } : message };
    }
    const content =
      message.role === "tool"
        ? shortenedContent(message.content, maxResultTokens, countTokens)
        : message.content;
    const isShortened = content !== message.content;
    const sent = isShortened ? { ...message, content } : message;
    const tokens = messageTokens(sent, countTokens);
    known?.set(event.id, isShortened ? { tokens, shortened: content } : { tokens });
    return { message: sent, tokens, isShortened };
  };
}

export interface Compacted {
  /** The compactions in force, ascending. */
  summaries: CompactionEvent[];
  /** The events that no compaction covers, in order. */
  left: SessionEvent[];
  /** Events with a lower sequence number are covered. */
  covered: number;
}

/** Separates the compactions in force and the events that they do not cover. */
export function compacted(events: readonly SessionEvent[]): Compacted {
  const position = positions(events);
  const covered = events.reduce(
    (most, event, index) => (isCompaction(event) ? Math.max(most, coverage(event, position(index))) : most),
    0,
  );
  if (covered === 0) return { summaries: [], left: [...events], covered };
  const uncovered = events.filter((_, index) => position(index) >= covered);
  return {
    summaries: uncovered.filter(isCompaction),
    left: uncovered.filter((event) => !isCompaction(event)),
    covered,
  };
}

/**
 * Returns the position of an event in its session: its sequence number, which also counts the events before the window.
 * Events that were never stored share a placeholder; their position is the index.
 */
function positions(events: readonly SessionEvent[]): (index: number) => number {
  const ascending = events.every((event, index) => index === 0 || event.seq > (events[index - 1]?.seq ?? 0));
  return (index) => (ascending ? (events[index]?.seq ?? index) : index);
}

export interface WindowOptions {
  /** Maximum tokens of all messages together. */
  tokenBudget: number;
  /**
   * There are earlier events that were not read. Then the first turn may be incomplete: it only determines the position
   * of the others, unless it is the only one. `false` when absent.
   */
  isCutOff?: boolean;
}

/** Returns the summaries in force and the newest turns that fit beside them, each request directly with its results. */
export function windowMessages(
  events: readonly SessionEvent[],
  measure: Measure,
  { tokenBudget, isCutOff = false }: WindowOptions,
): ContextMessage[] {
  const { summaries, left } = compacted(events);
  const front = summaries.map(measure).filter((summary) => summary !== null);
  const budget = tokenBudget - tokensOf(front);
  const turns = grouped(pairedParts(left, measure), ({ event }) => event.action === EventAction.USER_MESSAGE);
  const chosen = turns.slice(stableStart(turns, budget, isCutOff)).flat();
  const fitting = tokensOf(chosen) <= budget ? chosen : cutTurn(turns.at(-1) ?? [], budget);
  return [...front, ...fitting].map(({ message }) => message);
}

/** A message with its event. */
type Part = Measured & { event: SessionEvent };

/** Returns the messages of events, each request directly with all of its results. Omits incomplete pairs. */
export function pairedParts(events: readonly SessionEvent[], measure: Measure): Part[] {
  const parts = events.flatMap((event) => {
    const measured = measure(event);
    return measured === null ? [] : [{ ...measured, event }];
  });
  return pairedOrder(parts.map(({ message }) => message)).flatMap((index) => parts[index] ?? []);
}

/** Cuts a turn that exceeds the budget to its user's message and the last moves that fit beside it. */
function cutTurn(turn: readonly Part[], tokenBudget: number): Part[] {
  const head = turn.slice(0, turn[0]?.event.action === EventAction.USER_MESSAGE ? 1 : 0);
  const moves = grouped(turn.slice(head.length), ({ message }) => message.role !== "tool");
  const start = stableStart(moves, tokenBudget - tokensOf(head), false);
  return [...head, ...moves.slice(start).flat()];
}

/** Returns the index of the group that a window begins with (TOKEN-5); the newest one if none fits. */
function stableStart(groups: readonly Part[][], tokenBudget: number, isCutOff: boolean): number {
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
function rankOf(before: readonly Part[] | undefined, group: readonly Part[] | undefined): number {
  return 31 - Math.clz32((before?.[0]?.event.seq ?? 0) ^ (group?.[0]?.event.seq ?? 0));
}

/** Groups parts. A group begins at each part with `isStart`, the first group at the first part. */
function grouped(parts: readonly Part[], isStart: (part: Part) => boolean): Part[][] {
  const groups: Part[][] = [];
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
