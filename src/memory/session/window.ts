/**
 * The window of a session that fits a budget of tokens. Pure and without state: the same events give the same window.
 *
 * TOKEN-3  What is chosen fits the budget by the same counter. Only the newest unit, with the user's message that opens
 *          its turn, is sent even if it alone exceeds it.
 * TOKEN-4  A window begins with a user's turn. Only a newest turn that exceeds the budget is cut: between its moves,
 *          never between a request and its results, and its user's message stays.
 * TOKEN-5  While a session grows, a window begins with the one before it, but for rare steps: then it leaves out so much
 *          at once that later turns fit again. So a provider finds its prompt cache again.
 *
 * A step needs no memory. Among the starts that fit and leave at least half of the budget, the window takes the one at
 * which the session's numbering passes the multiple of the highest power of two: that one stays the best for long.
 */

import type { ContextMessage } from "../../model/messages.ts";
import { eventToMessage } from "./events.ts";
import { pairedOrder } from "./pairs.ts";
import { shortenedContent } from "./shorten.ts";
import { estimateTokens, messageTokens, type TokenCounter } from "./tokens.ts";
import { EventAction, type SessionEvent } from "./types.ts";

/** A message as it is sent, and its tokens. */
export interface Measured {
  message: ContextMessage;
  tokens: number;
}

/** Says what an event is to a model; `null` for what no model should see. */
export type Measure = (event: SessionEvent) => Measured | null;

/** What is known of events by their ids: the tokens of the message, and its content where that was shortened. */
export type KnownEvents = Map<string, { tokens: number; shortened?: string }>;

export interface MeasureOptions {
  /** Tokens of one tool result; a longer one is shortened. */
  maxResultTokens: number;
  countTokens?: TokenCounter;
  /** Maps an event to a message; `null` leaves it out. */
  eventToMessage?: (event: SessionEvent) => ContextMessage | null;
  /** Is read, and learns: events never change, so none is counted twice. Only for events whose ids are unique. */
  known?: KnownEvents;
}

export function measuring(options: MeasureOptions): Measure {
  const { maxResultTokens, countTokens = estimateTokens, known } = options;
  const toMessage = options.eventToMessage ?? eventToMessage;
  return (event) => {
    const message = event.action === "unknown" ? null : toMessage(event);
    if (message === null) return null;
    const fact = known?.get(event.id);
    if (fact !== undefined) {
      const { tokens, shortened } = fact;
      return { tokens, message: shortened === undefined ? message : { ...message, content: shortened } };
    }
    const content =
      message.role === "tool"
        ? shortenedContent(message.content, maxResultTokens, countTokens)
        : message.content;
    const sent = content === message.content ? message : { ...message, content };
    const tokens = messageTokens(sent, countTokens);
    known?.set(event.id, sent === message ? { tokens } : { tokens, shortened: content });
    return { message: sent, tokens };
  };
}

export interface WindowOptions {
  /** Tokens that the messages may take together. */
  tokenBudget: number;
  /**
   * Whether events before the given ones were not read. Then the first turn, which may be a part of one, only serves to
   * place the others, unless it is the only one.
   */
  isCutOff?: boolean;
}

/**
 * The messages of a session's events that fit the budget: a tail of its turns, each request directly with its results.
 * `events` ascend; what a compaction covers, and its summary, are the caller's business.
 */
export function budgetedWindow(
  events: readonly SessionEvent[],
  measure: Measure,
  options: WindowOptions,
): ContextMessage[] {
  const turns = grouped(
    pairedParts(events, measure),
    ({ event }) => event.action === EventAction.USER_MESSAGE,
  );
  const { isCutOff = false, tokenBudget } = options;
  const start = stableStart(turns, { tokenBudget, isCutOff });
  const chosen = turns.slice(start).flat();
  if (tokensOf(chosen) <= tokenBudget) return messagesOf(chosen);
  return messagesOf(cutTurn(turns.at(-1) ?? [], tokenBudget));
}

/** A message with its event. */
type Part = Measured & { event: SessionEvent };

/** What events are to a model, each request directly with all of its results, or neither. */
export function pairedParts(events: readonly SessionEvent[], measure: Measure): Part[] {
  const parts = events.flatMap((event) => {
    const measured = measure(event);
    return measured === null ? [] : [{ ...measured, event }];
  });
  return pairedOrder(parts.map(({ message }) => message)).flatMap((index) => parts[index] ?? []);
}

/** A turn too large for the budget: its user's message, and the last of its moves that fit beside it. */
function cutTurn(turn: readonly Part[], tokenBudget: number): Part[] {
  const head = turn.slice(0, turn[0]?.event.action === EventAction.USER_MESSAGE ? 1 : 0);
  const moves = grouped(turn.slice(head.length), ({ message }) => message.role !== "tool");
  const start = stableStart(moves, { tokenBudget: tokenBudget - tokensOf(head), isCutOff: false });
  return [...head, ...moves.slice(start).flat()];
}

interface StartOptions {
  tokenBudget: number;
  isCutOff: boolean;
}

/** The index of the group that a window begins with (TOKEN-5); the newest where none fits. */
function stableStart(groups: readonly Part[][], { tokenBudget, isCutOff }: StartOptions): number {
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

/** The highest power of two of which the session's numbers pass a multiple on the way from one group to the next. */
function rankOf(before: readonly Part[] | undefined, group: readonly Part[] | undefined): number {
  return 31 - Math.clz32((before?.[0]?.event.seq ?? 0) ^ (group?.[0]?.event.seq ?? 0));
}

/** The parts in groups: each begins where `isStart` holds, and the first with whatever is first. */
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

function messagesOf(parts: readonly Measured[]): ContextMessage[] {
  return parts.map(({ message }) => message);
}
