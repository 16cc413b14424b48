/**
 * Measures events for a window: each event's message as it is sent, and its tokens.
 *
 * MEASURE-1  An event is converted, shortened and counted at most once as long as it is known, and counted only if limits
 *            that need no count do not decide.
 */

import type { ContextMessage } from "../../model/messages.ts";
import { eventToMessage } from "./events.ts";
import { resultIn, withResult } from "./outcome.ts";
import { shortenedContent } from "./shorten.ts";
import { estimateTokens, messageTokens, mostTokens, type TokenCounter } from "./tokens.ts";
import type { SessionEvent } from "./types.ts";

/** The message of an event as it is sent, and its tokens. */
export interface Measured {
  readonly event: SessionEvent;
  readonly message: ContextMessage;
  readonly isShortened: boolean;
  /** The message's tokens, counted at the first use. */
  readonly tokens: number;
  /** A limit that `tokens` does not exceed. Needs no count; infinite where the caller counts. */
  readonly mostTokens: number;
}

/** Returns the message of an event; `null` for an event that no model gets. */
export type Measure = (event: SessionEvent) => Measured | null;

export interface MeasureOptions {
  /** Maximum tokens of all messages together; unlimited when absent. */
  tokenBudget?: number;
  /** Maximum tokens of one tool result; a longer one is shortened. A quarter of the budget when absent. */
  maxResultTokens?: number;
  /** Counts tokens; an estimate when absent. */
  countTokens?: TokenCounter;
  /** Maps an event to a message; `null` omits it. */
  eventToMessage?: (event: SessionEvent) => ContextMessage | null;
  /** Keeps measurements from use to use. All uses must convert, shorten and count alike. */
  known?: KnownEvents;
}

/** The part of a budget that one tool result may take. */
const RESULT_SHARE = 1 / 4;

/** Returns the function that measures a session's events for a window. */
export function measuring(options: MeasureOptions): Measure {
  const { tokenBudget = Number.POSITIVE_INFINITY, known } = options;
  const { maxResultTokens = tokenBudget * RESULT_SHARE, eventToMessage: toMessage = eventToMessage } =
    options;
  const isUnlimited = Math.min(tokenBudget, maxResultTokens) === Number.POSITIVE_INFINITY;
  const { countTokens = estimateTokens } = isUnlimited ? { countTokens: () => 0 } : options;
  const measure = (event: SessionEvent, costs: Costs): Measured | null => {
    const message = event.action === "unknown" ? null : toMessage(event);
    if (message === null) return null;
    const result = costs.shortened === undefined ? resultIn(message) : null;
    if (result !== null) {
      const shortened = shortenedContent(result, maxResultTokens, countTokens);
      costs.shortened = shortened === result ? null : withResult(message, shortened).content;
    }
    return new Measurement(event, message, costs, countTokens);
  };
  return known === undefined ? (event) => measure(event, {}) : (event) => known.measured(event, measure);
}

/** The results of measuring an event, as far as they were needed. */
interface Costs {
  /** The content, if it was shortened; `null` if not. */
  shortened?: string | null;
  tokens?: number;
  mostTokens?: number;
}

class Measurement implements Measured {
  readonly message: ContextMessage;
  readonly isShortened: boolean;

  constructor(
    readonly event: SessionEvent,
    whole: ContextMessage,
    private readonly costs: Costs,
    private readonly count: TokenCounter,
  ) {
    const { shortened = null } = costs;
    this.isShortened = shortened !== null;
    this.message = shortened === null ? whole : { ...whole, content: shortened };
  }

  get tokens(): number {
    this.costs.tokens ??= messageTokens(this.message, this.count);
    return this.costs.tokens;
  }

  get mostTokens(): number {
    if (this.count !== estimateTokens) return Number.POSITIVE_INFINITY;
    this.costs.mostTokens ??= messageTokens(this.message, mostTokens);
    return this.costs.mostTokens;
  }
}

/**
 * Measurements of a session's events, which have unique ids and never change. An event that is still the same object keeps
 * its message; one that was read again keeps its counts.
 */
export class KnownEvents {
  readonly #measured = new WeakMap<SessionEvent, Measured | null>();
  readonly #costs = new Map<string, Costs>();

  /** Returns the measurement of an event, made by `measure` at the first use. */
  measured(
    event: SessionEvent,
    measure: (event: SessionEvent, costs: Costs) => Measured | null,
  ): Measured | null {
    const known = this.#measured.get(event);
    if (known !== undefined) return known;
    const costs = this.#costs.get(event.id) ?? {};
    const fresh = measure(event, costs);
    this.#measured.set(event, fresh);
    if (fresh !== null) this.#costs.set(event.id, costs);
    return fresh;
  }

  /** Forgets the other events once they are the majority. */
  keepOnly(events: readonly SessionEvent[]): void {
    if (this.#costs.size <= 2 * events.length) return;
    const present = new Set(events.map(({ id }) => id));
    for (const id of this.#costs.keys()) if (!present.has(id)) this.#costs.delete(id);
  }
}
