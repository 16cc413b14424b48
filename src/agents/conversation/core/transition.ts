/** A change of a conversation that is about to be committed. */
import type { SessionEvent } from "../../../memory/session/session-event.ts";
import type { CallAsk } from "../../../protocol/agent-call.ts";
import type { Caller } from "../../../protocol/caller-schemas.ts";
import type { NewEnvelope } from "../../../protocol/envelope.ts";
import type { Erasure } from "./erase-entry.ts";
import type { JournalEntry } from "./journal-entry.ts";
import type { SideCallPlace } from "./side-calls.ts";
import type { UserMessage } from "./signals.ts";
import { type ConversationAgent, type ConversationState, nextEvent } from "./state.ts";
import type { AttemptsRecord, Turn } from "./turn.ts";
import { sessionEventCount } from "./turn-events.ts";

/** The next state, and the additions to the store. A transition is committed as a whole or not at all. */
export interface Transition {
  /** `state.seq` is still the last commit's number. */
  readonly state: ConversationState;
  readonly entries: readonly JournalEntry[];
  /** Changed turns, in their newest form. The session events of ended turns are derived from them. */
  readonly touched: ReadonlyMap<number, Turn>;
  /** Idempotency keys to remember. */
  readonly keys: readonly SeenKey[];
  /** Events that belong to no turn, each with its number. */
  readonly notes: readonly SessionEvent[];
  /** Operations with a noted late result. Further results are ignored. */
  readonly late: readonly string[];
  /** Requests for approval from below, which can be answered by their ids from now on. */
  readonly asks: readonly CallAsk[];
  /** Ended turns with a failed extraction. */
  readonly unextracted: readonly number[];
  /** The further attempts of extractions that begin, each with the number of its turn. */
  readonly extractions: readonly { readonly n: number; readonly attempt: number }[];
  readonly summaries: readonly ClosedSideCall[];
  /** Messages that begin to wait, each with its number in the queue. */
  readonly enqueued: readonly { readonly n: number; readonly signal: UserMessage }[];
  /** Queued messages before this number leave the queue; absent if the queue is unchanged. */
  readonly dequeued?: number;
  /** The agents with new versions; absent if the participants are unchanged. */
  readonly membership?: readonly ConversationAgent[];
  /** The turn that a new turn replaces, and the next event of each session when it began. */
  readonly superseded?: { n: number; by: string; sessions: Readonly<Record<string, number>> };
  /** Entries with erased content; absent if empty. */
  readonly erased?: readonly Erasure[];
  readonly envelopes: readonly NewEnvelope[];
}

/** The idempotency key of a signal, and the turn that it started; 0 for another signal. Two callers may choose the same key. */
export interface SeenKey {
  readonly caller: Caller;
  readonly key: string;
  /** As supplied; absent if the client sent none. */
  readonly correlationId?: string;
  readonly turn: number;
}

export interface ClosedSideCall extends SideCallPlace {
  /** The turn that began it when it ended. */
  readonly turn: number;
  readonly record: AttemptsRecord;
}

/** Returns a transition without changes, to apply decisions to. */
export function beginTransition(state: ConversationState): Transition {
  return {
    state,
    entries: [],
    touched: new Map(),
    keys: [],
    notes: [],
    late: [],
    asks: [],
    unextracted: [],
    extractions: [],
    summaries: [],
    enqueued: [],
    envelopes: [],
  };
}

/** Adds a turn's new form and its entries. Reserves the sequence numbers of the events of a turn that is over. */
export function withTurn(transition: Transition, turn: Turn, entries: readonly JournalEntry[]): Transition {
  const active = new Map(transition.state.active);
  let { sessions } = transition.state;
  let touched = turn;
  if (turn.status === "active") {
    active.set(turn.n, turn);
  } else {
    active.delete(turn.n);
    const from = nextEvent(sessions, turn.agentId);
    const count = sessionEventCount(turn);
    touched = { ...turn, events: { from, count } };
    sessions = { ...sessions, [turn.agentId]: from + count };
  }
  return {
    ...transition,
    state: { ...transition.state, sessions, active },
    entries: [...transition.entries, ...entries],
    touched: new Map(transition.touched).set(turn.n, touched),
  };
}
