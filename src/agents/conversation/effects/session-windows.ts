/**
 * The windows of a conversation's sessions, one per agent, and the positions of cycles in them.
 *
 * WINDOW-3  A cycle sees its session as it was after the cycle's first commit. Turns that complete later, and crashes, do not
 *           change this.
 */
import type { WindowSizes } from "../../../memory/session/cut.ts";
import type { EventStore } from "../../../memory/session/event-store.ts";
import type { ContextMessage } from "../../../model/messages.ts";
import {
  type ConversationIdentity,
  type ConversationState,
  chainOf,
  nextEvent,
  type SessionCompaction,
} from "../core/state.ts";
import type { Turn } from "../core/turn.ts";
import { SessionWindow } from "./session-window.ts";

interface Sessions {
  events: EventStore;
  /** Returns the head of the commit that wrote entry `seq`; `null` without such a commit. */
  journal: { headAt(seq: number): Pick<ConversationState, "sessions"> | null };
}

export class SessionWindows {
  readonly #windows = new Map<string, SessionWindow>();
  /** Start positions of the cycles that began since the actor woke, by turn. */
  readonly #positions = new Map<number, number>();

  constructor(
    private readonly store: Sessions,
    private readonly record: () => ConversationIdentity,
  ) {}

  /** Stores the start position of a turn's cycle, to save a later query. `state` is the state after its commit. */
  begin(turn: Turn, { sessions }: Pick<ConversationState, "sessions">): void {
    this.#positions.set(turn.n, nextEvent(sessions, turn.agentId));
    this.#of(turn).begin(turn);
  }

  /** Returns the history that a turn's cycle sees. */
  messagesFor(turn: Turn): ContextMessage[] {
    return this.#of(turn).messagesFor(turn, this.#chain(turn), () => this.#positionOf(turn));
  }

  /**
   * Returns the history that a turn's cycle sees. If the cycle begins with the planned commit, it returns the history after that commit.
   * `ended` are the turns that the commit ends.
   */
  messagesAsOf(state: ConversationState, turn: Turn, ended: readonly Turn[] = []): ContextMessage[] {
    const begins = turn.snapshotSeq > state.seq;
    const position = () => (begins ? nextEvent(state.sessions, turn.agentId) : this.#positionOf(turn));
    const own = ended.filter(({ agentId, events }) => agentId === turn.agentId && events !== undefined);
    const unstored = own.sort((one, other) => (one.events?.from ?? 0) - (other.events?.from ?? 0));
    return this.#of(turn).messagesAsOf(
      turn,
      chainOf(state.record, turn.agentId),
      position,
      begins ? unstored : [],
    );
  }

  messagesBefore(
    compaction: Pick<SessionCompaction, "cover" | "upTo">,
    turn: Pick<Turn, "agentId" | "tools">,
  ): ContextMessage[] {
    return this.#of(turn).messagesBefore(compaction, turn, this.#chain(turn));
  }

  /** As `SessionWindow.sizesAfter`. */
  sizesAfter(turn: Turn, high: number): WindowSizes | null {
    return this.#of(turn).sizesAfter(turn, high);
  }

  /** Drops the window of a compacted session. */
  forget(sessionId: string): void {
    this.#windows.get(sessionId)?.forget();
  }

  /** Ends a turn's cycle. Adds a completed turn to the window of its session. */
  end(turn: Turn): void {
    this.#positions.delete(turn.n);
    this.#of(turn).end(turn, this.#chain(turn));
  }

  #positionOf({ n, status, agentId, snapshotSeq }: Turn): number {
    const known = this.#positions.get(n);
    if (known !== undefined) return known;
    const head = this.store.journal.headAt(snapshotSeq);
    if (head === null) throw new Error(`Turn ${n} begins with entry ${snapshotSeq}, which is missing.`);
    const position = nextEvent(head.sessions, agentId);
    if (status === "active") this.#positions.set(n, position);
    return position;
  }

  #of({ agentId }: Pick<Turn, "agentId">): SessionWindow {
    const known = this.#windows.get(agentId);
    if (known !== undefined) return known;
    const window = new SessionWindow(this.store.events);
    this.#windows.set(agentId, window);
    return window;
  }

  #chain({ agentId }: Pick<Turn, "agentId">) {
    return chainOf(this.record(), agentId);
  }
}
