/**
 * The window of one agent's session, which its model sees: the last turns before a cycle began. The window stays in memory
 * from turn to turn, so a busy conversation does not read it again.
 *
 * CONTEXT-1  The window is a tail of the turns behind the newest compaction, with its summary if there is one; no result
 *            appears in it without its call.
 * WINDOW-1  The window in memory equals the one that the store would give.
 * WINDOW-2  Only small windows are kept; a large one is read when it is needed.
 */

import { compactionProfile, profileAt } from "../../../library/definitions/version-chain.ts";
import { recentTurnsLimit } from "../../../library/personas/persona.ts";
import { sizesOf, type WindowSizes } from "../../../memory/session/cut.ts";
import type { EventStore, EventWindow } from "../../../memory/session/event-store.ts";
import { lastTurns, selectHistory } from "../../../memory/session/history.ts";
import { KnownEvents, measuring } from "../../../memory/session/measure.ts";
import { messageTokens } from "../../../memory/session/tokens.ts";
import type { SessionEvent } from "../../../memory/session/types.ts";
import type { ContextMessage } from "../../../model/messages.ts";
import type { VersionChain } from "../../../protocol/definitions.ts";
import { historyBudget } from "../core/planning/context.ts";
import type { Turn } from "../core/turn.ts";
import { turnEvents } from "../core/turn-events.ts";

/** Bytes and events of one read. Any single turn fits. */
const MAX_READ_BYTES = 32 * 1024 * 1024;
const MAX_READ_EVENTS = 10_000;
/** Tokens of one tool result of a past turn. Longer results are shortened: their turn is over. */
const MAX_PAST_RESULT_TOKENS = 2_048;
/** Length of a window that is kept, in UTF-16 units: far below the limits of a read. */
const MAX_KEPT_LENGTH = 64 * 1024;

interface Kept extends EventWindow {
  /** The window ends before this sequence number. */
  upTo: number;
}

/** The sizes of a window that is too large to be kept. */
interface Large extends WindowSizes {
  upTo: number;
}

/** The history of a cycle, and how it was cut. */
interface Cycle {
  budget: number;
  isHalved: boolean;
  messages: ContextMessage[];
}

export class SessionWindow {
  #kept: Kept | null = null;
  /** The sizes of the newest window, if it is not kept. */
  #large: Large | null = null;
  /** The histories of cycles in progress: all calls of a cycle see the same, unless their budgets differ. */
  readonly #cycles = new Map<number, Cycle>();
  /** Measurements of the events in the present window. */
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
    if (window !== this.#kept) this.#keep({ ...window, upTo });
    this.#known.keepOnly(window.events);
    this.#cycles.set(n, { budget, isHalved, messages });
    return messages;
  }

  /** Returns what `messagesFor` would, and keeps nothing: the turn's cycle may begin with a commit that is rolled back. */
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
   * Selects the history of a turn's cycle within a budget from the window that ends before `upTo`. `unstored` are the last turns in it,
   * in their order, where the store does not have them yet.
   */
  #cut(
    { agentId, halved }: Turn,
    chain: VersionChain,
    upTo: number,
    budget: number,
    unstored: readonly Turn[] = [],
  ) {
    const maxTurns = recentTurnsLimit(chain.persona.definition);
    const kept = this.#kept;
    const storedTo = unstored[0]?.events?.from ?? upTo;
    const stored = kept?.upTo === storedTo ? kept : this.#read(agentId, storedTo, maxTurns);
    const events = [...stored.events, ...unstored.flatMap((turn) => turnEvents(turn))];
    const window =
      unstored.length === 0 ? stored : { ...stored, ...lastTurns({ ...stored, events }, maxTurns) };
    const select = (tokenBudget: number) => this.#select(window, { tokenBudget, maxTurns });
    const whole = select(Math.max(1, budget));
    return { window, messages: halved ? select(Math.max(1, sumOf(whole) / 2)) : whole };
  }

  /**
   * Returns the history that a compaction covers: the events before `cover` in the window up to `upTo`, which has one turn
   * more than that of the next turn. So it begins as the window of the turn before.
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

  /**
   * Returns the sizes of the window after a turn that ends; `null` if it has at most `high` tokens, or what is in memory does
   * not tell.
   */
  sizesAfter(turn: Turn, high: number): WindowSizes | null {
    const from = turn.events?.from;
    const [kept, large] = [this.#kept, this.#large];
    if (kept !== null && kept.upTo === from) {
      const events = [...kept.events, ...turnEvents(turn)];
      const most = events.reduce((sum, event) => sum + (this.#measure(event)?.mostTokens ?? 0), 0);
      return most <= high ? null : sizesOf(events, this.#measure);
    }
    return large !== null && large.upTo === from ? this.#grown(large, turn) : null;
  }

  /** Forgets the history of the turn's cycle before. */
  begin({ n }: Pick<Turn, "n">): void {
    this.#cycles.delete(n);
  }

  /** Ends a turn's cycle. Adds a turn that is over to the window. */
  end(turn: Turn, chain: VersionChain): void {
    this.#cycles.delete(turn.n);
    if (turn.events === undefined) return;
    const { from, count } = turn.events;
    const maxTurns = recentTurnsLimit(chain.persona.definition);
    const [kept, large] = [this.#kept, this.#large];
    this.forget();
    if (kept !== null && kept.upTo === from) {
      const events = [...kept.events, ...turnEvents(turn)];
      this.#keep({ ...kept, ...lastTurns({ ...kept, events }, maxTurns), upTo: from + count });
    } else if (large !== null && large.upTo === from) {
      const { turns, ...others } = this.#grown(large, turn);
      this.#large = { ...others, turns: turns.slice(-maxTurns), upTo: from + count };
    }
  }

  /** Drops the window because the store has a newer window. */
  forget(): void {
    this.#kept = null;
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
    return this.events.loadWindow(agentId, {
      before,
      userMessages: maxTurns,
      limit: MAX_READ_EVENTS,
      maxBytes: MAX_READ_BYTES,
    });
  }

  #keep(window: Kept): void {
    this.forget();
    if (windowLength(window.events) <= MAX_KEPT_LENGTH) this.#kept = window;
    else this.#large = { ...sizesOf(window.events, this.#measure), upTo: window.upTo };
  }
}

function sumOf(messages: readonly ContextMessage[]): number {
  return messages.reduce((sum, message) => sum + messageTokens(message), 0);
}

/** Lengths of events, which never change. */
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
