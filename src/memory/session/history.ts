/**
 * How much of a conversation a model is sent: the last turns, messages or tokens of it. One function for the actor's
 * session and for the engine's messages. Pure.
 *
 * HISTORY-1  However it is limited, no call is apart from its results; the newest unit is sent even if it alone exceeds
 *            the limit, and a budget of tokens keeps the user's message of the newest turn too.
 * HISTORY-2  `truncated` is true if and only if something that a model could be told was left out or shortened.
 */

import type { ContextMessage } from "../../model/messages.ts";
import { DramatisError } from "../../shared/errors.ts";
import { isCompaction } from "./compacted.ts";
import type { EventWindow } from "./event-store.ts";
import { eventToMessage } from "./events.ts";
import { checkTokenBudget, type TokenCounter } from "./tokens.ts";
import { EventAction, type SessionEvent } from "./types.ts";
import { type KnownEvents, type Measure, measuring } from "./window.ts";
import { windowMessages } from "./working-context.ts";

/** What a history may take. What is not given does not limit it; what is given holds together. */
export interface HistoryLimits {
  /** Turns, each beginning with a user's message. */
  maxTurns?: number;
  /** Messages, the summaries of compactions not counted. */
  maxMessages?: number;
  /** Tokens of all messages together. */
  tokenBudget?: number;
  /** Tokens of one tool result; a longer one is shortened. A quarter of the budget when absent. */
  maxResultTokens?: number;
}

export interface HistoryOptions extends HistoryLimits {
  /** Counts tokens; an estimate when absent. */
  countTokens?: TokenCounter;
  /** Maps an event to a message; `null` leaves it out. */
  eventToMessage?: (event: SessionEvent) => ContextMessage | null;
  /** What is known of events by their ids; only where ids are unique. */
  known?: KnownEvents;
}

export interface History {
  messages: ContextMessage[];
  truncated: boolean;
}

/** A result may take this part of a budget, if nothing else is said. */
const RESULT_SHARE = 1 / 4;

/**
 * The messages of a window of events within `limits`. Throws `INVALID_INPUT` for a limit that makes no sense.
 *
 * @example selectHistory({ events, isCutOff: false }, { maxTurns: 20, tokenBudget: 16_000 }).messages
 */
export function selectHistory(window: EventWindow, options: HistoryOptions = {}): History {
  const { tokenBudget = Number.POSITIVE_INFINITY, maxTurns, maxMessages, ...given } = options;
  checkTokenBudget(tokenBudget);
  const { events, isCutOff } = maxTurns === undefined ? window : lastTurns(window, maxTurns);
  const maxResultTokens = options.maxResultTokens ?? tokenBudget * RESULT_SHARE;
  const uncounted = maxResultTokens === Number.POSITIVE_INFINITY ? { countTokens: () => 0 } : {};
  const measure = measuring({ ...given, ...uncounted, maxResultTokens });
  const tally = counting(measure, options.eventToMessage ?? eventToMessage);
  const chosen = windowMessages(events, tally.measure, { tokenBudget, isCutOff });
  const messages = maxMessages === undefined ? chosen : lastMessages(chosen, maxMessages);
  const isShort = messages.length < tally.counted() || events.length < window.events.length;
  return { messages, truncated: window.isCutOff || isShort || tally.shortened() };
}

/** The events of the last turns, and the newest compaction before them. A whole turn is not cut off. */
export function lastTurns({ events, isCutOff }: EventWindow, maxTurns: number): EventWindow {
  checkCount(maxTurns, "maxTurns");
  let left = maxTurns;
  const start = events.findLastIndex(({ action }) => action === EventAction.USER_MESSAGE && --left === 0);
  if (start === -1) return { events: [...events], isCutOff };
  const newest = events.findLastIndex(isCompaction);
  const before = newest < start ? events.slice(Math.max(0, newest), newest + 1) : [];
  return { events: [...before, ...events.slice(start)], isCutOff: false };
}

/** The last messages in whole units: a request with its results, or a message alone. Summaries stay in front. */
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

/** A measure that counts what it measured, and notices what it shortened. */
function counting(measure: Measure, toMessage: (event: SessionEvent) => ContextMessage | null) {
  let count = 0;
  let shortened = false;
  return {
    measure: (event: SessionEvent) => {
      const measured = measure(event);
      if (measured === null) return null;
      count += 1;
      const isResult = measured.message.role === "tool";
      shortened ||= isResult && measured.message.content !== toMessage(event)?.content;
      return measured;
    },
    counted: () => count,
    shortened: () => shortened,
  };
}

function checkCount(count: number, name: string): void {
  if (Number.isInteger(count) && count > 0) return;
  throw new DramatisError("INVALID_INPUT", `\`${name}\` must be a whole number above 0.`, {
    errors: [{ path: `/${name}`, message: "must be a whole number above 0" }],
  });
}
