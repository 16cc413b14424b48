/**
 * Limits the history that a model receives, by turns, messages or tokens. Serves the actor's session and the engine's messages. Pure.
 *
 * HISTORY-1  No limit separates a call from its results. The newest unit is sent even if it alone exceeds the limit, and a token budget
 *            keeps the user's message of the newest turn too.
 * HISTORY-2  `truncated` is true if and only if a message was left out or shortened.
 * HISTORY-4  Known measurements and cheap limits never change the selection. It equals a selection that counts every text.
 */
import type { ContextMessage } from "../../model/messages.ts";
import type { EventWindow } from "./event-store.ts";
import { type Measure, type MeasureOptions, measuring } from "./measure.ts";
import { EventAction, isCompaction } from "./session-event.ts";
import { checkTokenBudget, invalidLimit } from "./tokens.ts";
import { windowMessages } from "./window.ts";

/** The limits of a history. All given limits apply together. */
export interface HistoryLimits extends Pick<MeasureOptions, "tokenBudget" | "maxResultTokens"> {
  /** Maximum number of turns. Each turn begins with a user's message. */
  maxTurns?: number;
  /** Maximum number of messages, without the summaries of compactions. */
  maxMessages?: number;
}

export interface HistoryOptions extends HistoryLimits, MeasureOptions {}

export interface History {
  messages: ContextMessage[];
  truncated: boolean;
}

/**
 * Selects the messages of a window of events within limits. Throws `INVALID_INPUT` for an invalid limit.
 *
 * @example selectHistory({ events, isCutOff: false }, { maxTurns: 20, tokenBudget: 16_000 }).messages
 */
export function selectHistory(window: EventWindow, options: HistoryOptions = {}): History {
  const { tokenBudget = Number.POSITIVE_INFINITY, maxTurns, maxMessages } = options;
  checkTokenBudget(tokenBudget);
  const { events, isCutOff } = maxTurns === undefined ? window : lastTurns(window, maxTurns);
  let found = 0;
  let isShortened = false;
  const measure = measuring(options);
  const observed: Measure = (event) => {
    const measured = measure(event);
    if (measured !== null) found += 1;
    isShortened ||= measured?.isShortened ?? false;
    return measured;
  };
  const chosen = windowMessages(events, observed, { tokenBudget, isCutOff });
  const messages = maxMessages === undefined ? chosen : lastMessages(chosen, maxMessages);
  const isShort = messages.length < found || events.length < window.events.length;
  return { messages, truncated: window.isCutOff || isShort || isShortened };
}

/** Returns the events of the last turns, and the newest compaction before them. */
export function lastTurns({ events, isCutOff }: EventWindow, maxTurns: number): EventWindow {
  checkCount(maxTurns, "maxTurns");
  let left = maxTurns;
  const start = events.findLastIndex(({ action }) => action === EventAction.USER_MESSAGE && --left === 0);
  if (start === -1) return { events: [...events], isCutOff };
  const newest = events.findLastIndex(isCompaction);
  const before = newest < start ? events.slice(Math.max(0, newest), newest + 1) : [];
  return { events: [...before, ...events.slice(start)], isCutOff: false };
}

/** Returns the last messages in whole units: a request with its results, or a message alone. Summaries stay in front. */
function lastMessages(messages: readonly ContextMessage[], maxMessages: number): ContextMessage[] {
  checkCount(maxMessages, "maxMessages");
  const front = messages.findIndex((message) => message.metadata?.compactedEventCount === undefined);
  const first = front === -1 ? messages.length : front;
  let start = messages.length;
  for (let index = messages.length - 1; index >= first; index--) {
    const isFirstUnit = start === messages.length;
    if (messages.length - index > maxMessages && !isFirstUnit) break;
    if (messages[index]?.role !== "tool") start = index;
  }
  return [...messages.slice(0, first), ...messages.slice(start)];
}

function checkCount(count: number, name: string): void {
  if (!(Number.isInteger(count) && count > 0)) throw invalidLimit(name, "a whole number above 0");
}
