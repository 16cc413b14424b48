/**
 * Measures events for a window: the message of each event, and its tokens.
 *
 * MEASURE-1  While an event is cached, it is converted, shortened and counted at most once. It is counted only if cheaper limits do not
 *            decide.
 */
import type { ContextMessage } from "../../model/messages.ts";
import { eventToMessage } from "./events.ts";
import { resultIn, withResult } from "./outcome.ts";
import type { SessionEvent } from "./session-event.ts";
import { shortenedContent } from "./shorten.ts";
import { estimateTokens, messageTokens, mostTokens, type TokenCounter } from "./tokens.ts";

export interface Measured {
  readonly event: SessionEvent;
  readonly message: ContextMessage;
  readonly isShortened: boolean;
  /** The message's tokens, counted at the first use. */
  readonly tokens: number;
  /** An upper bound of `tokens` that needs no count. Infinite with a custom counter. */
  readonly mostTokens: number;
}

/** Returns the message of an event, or `null` if it is not sent to models. */
export type Measure = (event: SessionEvent) => Measured | null;

export interface MeasureOptions {
  /** Maximum tokens of all messages together. Unlimited by default. */
  tokenBudget?: number;
  /** Maximum tokens of one tool result. A longer result is shortened. Default: a quarter of the budget. */
  maxResultTokens?: number;
  /** Counts tokens. Default: an estimate. */
  countTokens?: TokenCounter;
  /** Maps an event to a message, or to `null` to omit it. */
  eventToMessage?: (event: SessionEvent) => ContextMessage | null;
  /** Caches measurements between uses. All uses must convert, shorten and count the same way. */
  known?: KnownEvents;
}

/** The part of a budget available to one tool result. */
const RESULT_SHARE = 1 / 4;

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

interface Costs {
  /** The shortened content, or `null` if it fits. */
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
 * Caches measurements of a session's events, which have unique ids and never change. The same event object keeps its message. An event that
 * was read again keeps its counts.
 */
export class KnownEvents {
  readonly #measured = new WeakMap<SessionEvent, Measured | null>();
  readonly #costs = new Map<string, Costs>();

  /** Returns the measurement of an event, and measures it on first use. */
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

  /** Drops all other events when they are the majority. */
  keepOnly(events: readonly SessionEvent[]): void {
    if (this.#costs.size <= 2 * events.length) return;
    const present = new Set(events.map(({ id }) => id));
    for (const id of this.#costs.keys()) if (!present.has(id)) this.#costs.delete(id);
  }
}
