/**
 * The window of the session that a model sees: the last turns before a cycle began. It is kept in memory from turn to
 * turn, so a conversation at work does not read it again.
 *
 * WINDOW-1  What memory gives equals what the store would give.
 * WINDOW-2  Only small windows are kept; a large one is read when it is needed.
 */
import { recentTurnsLimit } from "../../library/persona.ts";
import type { Persona } from "../../library/types.ts";
import type { EventStore } from "../../memory/event-store.ts";
import { type ContextMessage, EventAction, type SessionEvent } from "../../memory/types.ts";
import { historyMessages } from "./planning/context.ts";
import type { Turn } from "./state.ts";
import { turnEvents } from "./turn-events.ts";

/** Bytes and events of a session that one context reads at most: any one turn is within them. */
const MAX_READ_BYTES = 32 * 1024 * 1024;
const MAX_READ_EVENTS = 10_000;
/** Characters of a window that is kept: so few that the limits of a read cannot cut it. */
const MAX_KEPT_LENGTH = 64 * 1024;

interface Kept {
  sessionId: string;
  /** The window ends before this sequence number. */
  upTo: number;
  events: SessionEvent[];
}

export class SessionWindow {
  #kept: Kept | null = null;
  /** The windows of cycles in progress: all calls of a cycle see the same. */
  readonly #cycles = new Map<number, ContextMessage[]>();

  constructor(private readonly events: EventStore) {}

  /** The history that a turn's cycle sees. */
  messagesFor(turn: Turn, persona: Persona): ContextMessage[] {
    const known = this.#cycles.get(turn.n);
    if (known !== undefined) return known;
    const turns = recentTurnsLimit(persona);
    const kept = this.#kept;
    const isCurrent = kept !== null && kept.sessionId === turn.agentId && kept.upTo === turn.snapshot;
    const events = isCurrent ? lastTurns(kept.events, turns) : this.#read(turn, turns);
    if (!isCurrent) this.#keep({ sessionId: turn.agentId, upTo: turn.snapshot, events });
    const messages = historyMessages(events);
    this.#cycles.set(turn.n, messages);
    return messages;
  }

  /** A turn is over: its cycle ends, and if it completed, the window moves on. */
  ended(turn: Turn, persona: Persona): void {
    this.#cycles.delete(turn.n);
    const kept = this.#kept;
    if (turn.events === undefined || kept === null || kept.sessionId !== turn.agentId) return;
    const { from, count } = turn.events;
    if (kept.upTo !== from) {
      this.#kept = null;
      return;
    }
    const turns = recentTurnsLimit(persona);
    const events = lastTurns([...kept.events, ...turnEvents(turn)], turns);
    this.#keep({ ...kept, upTo: from + count, events });
  }

  #read(turn: Turn, turns: number): SessionEvent[] {
    return this.events.load(turn.agentId, {
      before: turn.snapshot,
      userMessages: turns,
      limit: MAX_READ_EVENTS,
      maxBytes: MAX_READ_BYTES,
    });
  }

  #keep(window: Kept): void {
    this.#kept = lengthOf(window.events) <= MAX_KEPT_LENGTH ? window : null;
  }
}

/** The events of the last `turns` turns. */
function lastTurns(events: readonly SessionEvent[], turns: number): SessionEvent[] {
  let left = turns;
  const start = events.findLastIndex(({ action }) => action === EventAction.USER_MESSAGE && --left === 0);
  return events.slice(Math.max(0, start));
}

function lengthOf(events: readonly SessionEvent[]): number {
  return events.reduce(
    (sum, { content, metadata }) => sum + content.length + JSON.stringify(metadata ?? null).length,
    0,
  );
}
