/**
 * The window of one agent's session, which its model sees: the last turns before a cycle began. The window stays in memory
 * from turn to turn, so a busy conversation does not read it again.
 *
 * CONTEXT-1  The window contains the last turns after the newest compaction, and the summary of that compaction. A result
 *            appears only with its call.
 * WINDOW-1  The window in memory equals the window in the store.
 * WINDOW-2  Only small windows stay in memory. Large windows are read when a cycle needs them.
 */
import { compactionProfile, profileAt } from "../../../library/definitions/version-chain.ts";
import { recentTurnsLimit } from "../../../library/personas/persona.ts";
import { sizesOf, type WindowSizes } from "../../../memory/session/cut.ts";
import type { EventStore, EventWindow } from "../../../memory/session/event-store.ts";
import { lastTurns, selectHistory } from "../../../memory/session/history.ts";
import { KnownEvents, measuring } from "../../../memory/session/measure.ts";
import type { SessionEvent } from "../../../memory/session/session-event.ts";
import { messageTokens } from "../../../memory/session/tokens.ts";
import type { ContextMessage } from "../../../model/messages.ts";
import type { VersionChain } from "../../../protocol/definitions.ts";
import { historyBudget } from "../core/planning/context.ts";
import type { Turn } from "../core/turn.ts";
import { turnEvents } from "../core/turn-events.ts";

/** Bytes and events of one read. Any single turn fits. */
const MAX_READ_BYTES = 32 * 1024 * 1024;
const MAX_READ_EVENTS = 10_000;
/** Maximum tokens of a tool result of a past turn. Longer results are shortened. */
const MAX_PAST_RESULT_TOKENS = 2_048;
/** Maximum length of a window in memory, in UTF-16 units. It is far below the limits of a read. */
const MAX_CACHED_LENGTH = 64 * 1024;

interface CachedWindow extends EventWindow {
  /** The window ends before this sequence number. */
  upTo: number;
}

/** The sizes of a window that is too large for memory. */
interface Large extends WindowSizes {
  upTo: number;
}

/** The history of a cycle, with the budget that cut it. */
interface Cycle {
  budget: number;
  isHalved: boolean;
  messages: ContextMessage[];
}

export class SessionWindow {
  #cached: CachedWindow | null = null;
  /** The sizes of the newest window, if it is too large for memory. */
  #large: Large | null = null;
  /** The histories of cycles in progress. All calls of a cycle with equal budgets see the same history. */
  readonly #cycles = new Map<number, Cycle>();
  /** Measurements of the events in the current window. */
  readonly #known = new KnownEvents();
  readonly #measure = measuring({ maxResultTokens: MAX_PAST_RESULT_TOKENS, known: this.#known });

  constructor(private readonly events: EventStore) {}

  /** Returns the history that a turn's cycle sees: the events before the number that `position` returns. */
  messagesFor(turn: Turn, chain: VersionChain, position: () => number): ContextMessage[] {
    const { n, tools, halved: isHalved = false, call } = turn;
    const budget = historyBudget(chain, tools, profileAt(chain, call?.profile ?? 0));
    const known = this.#cycles.get(n);
    if (known?.budget === budget && known.isHalved === isHalved) return known.messages;
    const upTo = position();
    const { window, messages } = this.#cut(turn, chain, upTo, budget);
    if (window !== this.#cached) this.#cache({ ...window, upTo });
    this.#known.keepOnly(window.events);
    this.#cycles.set(n, { budget, isHalved, messages });
    return messages;
  }

  /** As `messagesFor`, but does not change the window in memory, because the commit that begins the cycle may roll back. */
  messagesAsOf(
    turn: Turn,
    chain: VersionChain,
    position: () => number,
    unstored: readonly Turn[],
  ): ContextMessage[] {
    const { n, tools, halved: isHalved = false, call } = turn;
    const budget = historyBudget(chain, tools, profileAt(chain, call?.profile ?? 0));
    const known = this.#cycles.get(n);
    if (known?.budget === budget && known.isHalved === isHalved) return known.messages;
    return this.#cut(turn, chain, position(), budget, unstored).messages;
  }

  /**
   * Selects the history of a turn's cycle within a budget from the window that ends before `upTo`. `unstored` are its last turns that are
   * not in the store yet, in their order.
   */
  #cut(
    { agentId, halved }: Turn,
    chain: VersionChain,
    upTo: number,
    budget: number,
    unstored: readonly Turn[] = [],
  ) {
    const maxTurns = recentTurnsLimit(chain.persona.definition);
    const cached = this.#cached;
    const storedTo = unstored[0]?.events?.from ?? upTo;
    const stored = cached?.upTo === storedTo ? cached : this.#read(agentId, storedTo, maxTurns);
    const events = [...stored.events, ...unstored.flatMap((turn) => turnEvents(turn))];
    const window =
      unstored.length === 0 ? stored : { ...stored, ...lastTurns({ ...stored, events }, maxTurns) };
    const select = (tokenBudget: number) => this.#select(window, { tokenBudget, maxTurns });
    const whole = select(Math.max(1, budget));
    return { window, messages: halved ? select(Math.max(1, sumOf(whole) / 2)) : whole };
  }

  /**
   * Returns the history that a compaction covers: the events before `cover` in the window up to `upTo`. This window has one turn more
   * than the window of the next turn. So it begins like the window of the turn before.
   */
  messagesBefore(
    { cover, upTo }: { cover: number; upTo: number },
    { agentId, tools }: Pick<Turn, "agentId" | "tools">,
    chain: VersionChain,
  ): ContextMessage[] {
    const maxTurns = recentTurnsLimit(chain.persona.definition) + 1;
    const window = lastTurns(this.#read(agentId, upTo, maxTurns), maxTurns);
    const events = window.events.filter(({ seq }) => seq < cover);
    return this.#select(
      { ...window, events },
      { tokenBudget: Math.max(1, historyBudget(chain, tools, compactionProfile(chain))) },
    );
  }

  /** Returns the sizes of the window after an ending turn; `null` if it has at most `high` tokens, or if its sizes are not in memory. */
  sizesAfter(turn: Turn, high: number): WindowSizes | null {
    const from = turn.events?.from;
    const [cached, large] = [this.#cached, this.#large];
    if (cached !== null && cached.upTo === from) {
      const events = [...cached.events, ...turnEvents(turn)];
      const most = events.reduce((sum, event) => sum + (this.#measure(event)?.mostTokens ?? 0), 0);
      return most <= high ? null : sizesOf(events, this.#measure);
    }
    return large !== null && large.upTo === from ? this.#grown(large, turn) : null;
  }

  /** Drops the history of the turn's previous cycle. */
  begin({ n }: Pick<Turn, "n">): void {
    this.#cycles.delete(n);
  }

  /** Ends a turn's cycle. Adds an ended turn to the window. */
  end(turn: Turn, chain: VersionChain): void {
    this.#cycles.delete(turn.n);
    if (turn.events === undefined) return;
    const { from, count } = turn.events;
    const maxTurns = recentTurnsLimit(chain.persona.definition);
    const [cached, large] = [this.#cached, this.#large];
    this.forget();
    if (cached !== null && cached.upTo === from) {
      const events = [...cached.events, ...turnEvents(turn)];
      this.#cache({ ...cached, ...lastTurns({ ...cached, events }, maxTurns), upTo: from + count });
    } else if (large !== null && large.upTo === from) {
      const { turns, ...others } = this.#grown(large, turn);
      this.#large = { ...others, turns: turns.slice(-maxTurns), upTo: from + count };
    }
  }

  /** Drops the window because the store has a newer window. */
  forget(): void {
    this.#cached = null;
    this.#large = null;
  }

  #grown(large: Large, turn: Turn): WindowSizes {
    const { turns } = sizesOf(turnEvents(turn), this.#measure);
    return { ...large, turns: [...large.turns, ...turns] };
  }

  #select(window: EventWindow, limits: { tokenBudget: number; maxTurns?: number }): ContextMessage[] {
    const known = { maxResultTokens: MAX_PAST_RESULT_TOKENS, known: this.#known };
    return selectHistory(window, { ...limits, ...known }).messages;
  }

  #read(agentId: string, before: number, maxTurns: number): EventWindow {
    if (before === 0) return { events: [], isCutOff: false };
    return this.events.loadWindow(agentId, {
      before,
      userMessages: maxTurns,
      limit: MAX_READ_EVENTS,
      maxBytes: MAX_READ_BYTES,
    });
  }

  #cache(window: CachedWindow): void {
    this.forget();
    if (windowLength(window.events) <= MAX_CACHED_LENGTH) this.#cached = window;
    else this.#large = { ...sizesOf(window.events, this.#measure), upTo: window.upTo };
  }
}

function sumOf(messages: readonly ContextMessage[]): number {
  return messages.reduce((sum, message) => sum + messageTokens(message), 0);
}

/** Lengths of events. Events never change. */
const lengths = new WeakMap<SessionEvent, number>();

function windowLength(events: readonly SessionEvent[]): number {
  return events.reduce((sum, event) => sum + lengthOf(event), 0);
}

function lengthOf(event: SessionEvent): number {
  const known = lengths.get(event);
  if (known !== undefined) return known;
  const length = event.content.length + JSON.stringify(event.metadata ?? null).length;
  lengths.set(event, length);
  return length;
}
