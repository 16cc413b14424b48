/**
 * What a model is sent: messages built from a window of a session's events. Pure, so it runs in actors, Workflows
 * and plain Workers, on events that came by RPC.
 *
 * CTX-1  Every tool result follows its request directly and every request has all of its results; what has lost its
 *        other half (cut off by the window, or still running) is left out.
 * CTX-2  Events that a compaction covers are left out, and its summary stands in their place.
 * CTX-3  Nothing given in is changed or kept by reference.
 */

import type { ContextMessage } from "../../model/messages.ts";
import { compacted } from "./compacted.ts";
import { eventToMessage } from "./events.ts";
import { pairedMessages } from "./pairs.ts";
import { checkTokenBudget, frameTokens } from "./tokens.ts";
import type { ContextBuilderOptions, LoadEventsOptions, SessionEvent } from "./types.ts";
import { budgetedWindow, type Measure, measuring, type WindowOptions } from "./window.ts";

/** The messages of one request, and what was added to them since. Made for one request, then thrown away. */
export class WorkingContext {
  readonly systemInstructions: readonly string[];
  private readonly all: ContextMessage[];
  private known: number;

  constructor(messages: readonly ContextMessage[] = [], systemInstructions: readonly string[] = []) {
    this.all = [...messages];
    this.known = this.all.length;
    this.systemInstructions = [...systemInstructions];
  }

  get messages(): readonly ContextMessage[] {
    return this.all;
  }

  addMessage(message: ContextMessage): void {
    this.all.push(message);
  }

  /** The messages added since construction, or since they were last marked as persisted. */
  getNewMessages(): ContextMessage[] {
    return this.all.slice(this.known);
  }

  /** From now on, none of the present messages counts as new. */
  markPersisted(): void {
    this.known = this.all.length;
  }
}

/** How a context is built from events as `loadEvents` gives them. */
export type BuildContextOptions = Omit<ContextBuilderOptions, keyof LoadEventsOptions> &
  Pick<WindowOptions, "isCutOff">;

/**
 * Builds the context of a request from events in the order of their session. Unknown events never enter it. With a
 * `tokenBudget` it holds as many of the newest turns as fit beside the instructions and tools (TOKEN-3 to TOKEN-5).
 *
 * @example buildWorkingContext(events, { systemInstructions: ["Be brief."], tokenBudget: 16_000 })
 */
export function buildWorkingContext(
  events: readonly SessionEvent[],
  options: BuildContextOptions = {},
): WorkingContext {
  const { systemInstructions, tokenBudget } = options;
  const messages =
    tokenBudget === undefined ? allMessages(events, options) : withinBudget(events, options, tokenBudget);
  return new WorkingContext(messages, systemInstructions);
}

function allMessages(events: readonly SessionEvent[], options: BuildContextOptions): ContextMessage[] {
  const toMessage = options.eventToMessage ?? eventToMessage;
  const { summaries, left } = compacted(events);
  const messages = [...summaries, ...left]
    .filter((event) => event.action !== "unknown")
    .map(toMessage)
    .filter((message) => message !== null);
  return pairedMessages(messages);
}

/** A result may take this part of a budget, if nothing else is said. */
const RESULT_SHARE = 1 / 4;

function withinBudget(
  events: readonly SessionEvent[],
  { maxResultTokens, isCutOff = false, ...options }: BuildContextOptions,
  tokenBudget: number,
): ContextMessage[] {
  checkTokenBudget(tokenBudget);
  const measure = measuring({ ...options, maxResultTokens: maxResultTokens ?? tokenBudget * RESULT_SHARE });
  const left = tokenBudget - frameTokens(options, options.countTokens);
  return windowMessages(events, measure, { tokenBudget: left, isCutOff });
}

/** The summaries in force, and the window of what they leave; the budget is for both. */
export function windowMessages(
  events: readonly SessionEvent[],
  measure: Measure,
  options: WindowOptions,
): ContextMessage[] {
  const { summaries, left } = compacted(events);
  const front = summaries.map(measure).filter((summary) => summary !== null);
  const tokenBudget = front.reduce((budget, { tokens }) => budget - tokens, options.tokenBudget);
  return [
    ...front.map(({ message }) => message),
    ...budgetedWindow(left, measure, { ...options, tokenBudget }),
  ];
}
