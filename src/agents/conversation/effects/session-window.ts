/**
 * The window of one agent's session, which its model sees: the last turns before a cycle began. The window stays in memory
 * from turn to turn, so a busy conversation does not read it again.
 *
 * CONTEXT-1  The window is a tail of the turns behind the newest compaction, with its summary if there is one; no result
 *            appears in it without its call.
 * WINDOW-1  The window in memory equals the one that the store would give.
 * WINDOW-2  Only small windows are kept; a large one is read when it is needed.
 */
import { recentTurnsLimit } from "../../../library/persona.ts";
import type { EventStore, EventWindow } from "../../../memory/session/event-store.ts";
import { lastTurns, selectHistory } from "../../../memory/session/history.ts";
import { KnownEvents } from "../../../memory/session/measure.ts";
import type { SessionEvent } from "../../../memory/session/types.ts";
import type { ContextMessage } from "../../../model/messages.ts";
import type { VersionChain } from "../../../protocol/definitions.ts";
import { historyBudget } from "../core/planning/context.ts";
import type { Turn } from "../core/state.ts";
import { turnEvents } from "../core/turn-events.ts";

/** Bytes and events that one read takes: any one turn fits. */
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

export class SessionWindow {
  #kept: Kept | null = null;
  /** The histories of cycles in progress: all calls of a cycle see the same. */
  readonly #cycles = new Map<number, ContextMessage[]>();
  /** Measurements of the events in the present window. */
  readonly #known = new KnownEvents();

  constructor(private readonly events: EventStore) {}

  /** Returns the history that a turn's cycle sees: the events before the number that `position` returns. */
  messagesFor(turn: Turn, chain: VersionChain, position: () => number): ContextMessage[] {
    const known = this.#cycles.get(turn.n);
    if (known !== undefined) return known;
    const maxTurns = recentTurnsLimit(chain.persona.definition);
    const kept = this.#kept;
    const upTo = position();
    const window = kept?.upTo === upTo ? kept : this.#read(turn, upTo, maxTurns);
    if (window !== kept) this.#keep({ ...window, upTo });
    const { messages } = selectHistory(window, {
      tokenBudget: historyBudget(chain, turn.tools),
      maxTurns,
      maxResultTokens: MAX_PAST_RESULT_TOKENS,
      known: this.#known,
    });
    this.#known.keepOnly(window.events);
    this.#cycles.set(turn.n, messages);
    return messages;
  }

  /** Ends a turn's cycle. Adds a completed turn to the window. */
  end(turn: Turn, chain: VersionChain): void {
    this.#cycles.delete(turn.n);
    const kept = this.#kept;
    if (turn.events === undefined || kept === null) return;
    const { from, count } = turn.events;
    if (kept.upTo !== from) {
      this.#kept = null;
      return;
    }
    const events = [...kept.events, ...turnEvents(turn)];
    const turns = recentTurnsLimit(chain.persona.definition);
    this.#keep({ ...kept, ...lastTurns({ ...kept, events }, turns), upTo: from + count });
  }

  #read({ agentId }: Turn, before: number, maxTurns: number): EventWindow {
    return this.events.loadWindow(agentId, {
      before,
      userMessages: maxTurns,
      limit: MAX_READ_EVENTS,
      maxBytes: MAX_READ_BYTES,
    });
  }

  #keep(window: Kept): void {
    this.#kept = windowLength(window.events) <= MAX_KEPT_LENGTH ? window : null;
  }
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
