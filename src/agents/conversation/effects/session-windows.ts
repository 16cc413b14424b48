/**
 * The windows of a conversation's sessions, one per agent, and the places where cycles began in them.
 *
 * WINDOW-3  A cycle sees its session as it was at the commit before the cycle: whichever turns complete meanwhile, and
 *           after a crash, too.
 */
import type { EventStore } from "../../../memory/session/event-store.ts";
import type { ContextMessage } from "../../../model/messages.ts";
import {
  type ConversationIdentity,
  type ConversationState,
  chainOf,
  nextEvent,
  type Turn,
} from "../core/state.ts";
import { SessionWindow } from "./session-window.ts";

/** The parts of the conversation's store that windows are read from. */
interface SessionsPorts {
  events: EventStore;
  /** Returns the head of the commit that wrote entry `seq`; `null` if there is none. */
  journal: { headAt(seq: number): Pick<ConversationState, "sessions"> | null };
}

export class SessionWindows {
  readonly #windows = new Map<string, SessionWindow>();
  /** Where the cycles that began since the actor woke begin in their sessions, by turn. */
  readonly #positions = new Map<number, number>();

  constructor(
    private readonly store: SessionsPorts,
    private readonly record: () => ConversationIdentity,
  ) {}

  /** Notes where a turn's cycle begins, so that no statement must find it. `before` is the state before its commit. */
  begin({ n, agentId, snapshotSeq }: Turn, before: Pick<ConversationState, "seq" | "sessions">): void {
    if (snapshotSeq === before.seq) this.#positions.set(n, nextEvent(before.sessions, agentId));
  }

  /** Returns the history that a turn's cycle sees. */
  messagesFor(turn: Turn): ContextMessage[] {
    return this.#of(turn).messagesFor(turn, this.#chain(turn), () => this.#positionOf(turn));
  }

  /** Ends a turn's cycle. Adds a completed turn to the window of its session. */
  end(turn: Turn): void {
    this.#positions.delete(turn.n);
    this.#of(turn).end(turn, this.#chain(turn));
  }

  #positionOf({ n, agentId, snapshotSeq }: Turn): number {
    const known = this.#positions.get(n);
    if (known !== undefined) return known;
    const head = this.store.journal.headAt(snapshotSeq);
    if (head === null) throw new Error(`Turn ${n} begins after entry ${snapshotSeq}, which is missing.`);
    const position = nextEvent(head.sessions, agentId);
    this.#positions.set(n, position);
    return position;
  }

  #of({ agentId }: Turn): SessionWindow {
    const known = this.#windows.get(agentId);
    if (known !== undefined) return known;
    const window = new SessionWindow(this.store.events);
    this.#windows.set(agentId, window);
    return window;
  }

  #chain({ agentId }: Turn) {
    return chainOf(this.record(), agentId);
  }
}
