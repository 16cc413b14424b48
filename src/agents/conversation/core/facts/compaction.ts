/** Compactions of sessions: started, repeated, completed, given up, stopped. Pure. */
import { compactionProfile } from "../../../../library/definitions/version-chain.ts";
import type { Cut } from "../../../../memory/session/cut.ts";
import { EventAction, type SessionEvent } from "../../../../memory/session/session-event.ts";
import type { TokenEstimate } from "../../../../model/spending.ts";
import { wholeTaint } from "../../../../model/taint.ts";
import { defined } from "../../../../shared/defined.ts";
import { type AttemptOutcome, withOutcome, withUsage } from "../calls.ts";
import type { JournalEntry } from "../journal-entry.ts";
import { spentByRequest, withCharge } from "../ledger.ts";
import {
  type BaseState,
  chainOf,
  compactionOf,
  nextEvent,
  type RunningCompaction,
  type SessionCompaction,
  type SummaryCall,
} from "../state.ts";
import type { Transition } from "../transition.ts";
import { type FailureText, noted, silent } from "./fact.ts";

/** An attempt that called the model. */
export type MadeAttempt = Omit<AttemptOutcome, "isLast">;

/** A failure of a call for a summary. `crashed`: the charge for an attempt that a crash interrupted. */
export interface Failure {
  session: string;
  error: FailureText;
  made?: MadeAttempt;
  crashed?: TokenEstimate;
}

export const compaction = {
  START_COMPACTION(
    transition: Transition,
    data: { session: string; turn: number; upTo: number; attempt: number } & Cut,
    now: number,
  ): Transition {
    const { session, attempt, ...members } = data;
    const started = { ...members, startedAt: now, call: { attempt, notBefore: now } };
    return changed(transition, session, started, {
      type: "context.compaction.started",
      data: { agentId: session, events: data.cover },
    });
  },

  /** Replaces the covered events by the summary. */
  COMPACT_SESSION(
    transition: Transition,
    data: { session: string; content: string; tokens: number; made: MadeAttempt },
    now: number,
  ): Transition {
    const { session, content, tokens, made } = data;
    const running = runningOf(transition, session);
    if (running === undefined) return transition;
    const { cover } = running;
    const seq = nextEvent(transition.state.sessions, session);
    const event: SessionEvent = {
      id: `compaction_${seq}`,
      sessionId: session,
      seq,
      action: EventAction.COMPACTION,
      content,
      compactedEventCount: cover,
      timestamp: now,
      metadata: { origin: "platform", taint: wholeTaint(made.facts) },
    };
    const next = changed(closed(transition, data, running, now), session, undefined, {
      type: "context.compacted",
      data: { agentId: session, events: cover, tokens },
    });
    const sessions = { ...next.state.sessions, [session]: seq + 1 };
    return { ...next, state: { ...next.state, sessions }, notes: [...next.notes, event] };
  },

  RETRY_COMPACTION(transition: Transition, data: Failure & { notBefore: number }): Transition {
    const { session, made, notBefore } = data;
    const running = runningOf(transition, session);
    if (running === undefined) return transition;
    const { call } = running;
    const record = made === undefined ? call.record : withOutcome(call.record, { ...made, isLast: false });
    const next = { attempt: call.attempt + 1, notBefore, ...defined({ record }) };
    const entry = failure(data, running, false);
    return changed(counted(transition, data), session, { ...running, call: next }, entry);
  },

  /** Keeps the history as it is, and remembers that it was tried. */
  GIVE_UP_COMPACTION(transition: Transition, data: Failure, now: number): Transition {
    const running = runningOf(transition, data.session);
    if (running === undefined) return transition;
    const { call: _over, ...left } = running;
    return changed(closed(transition, data, running, now), data.session, left, failure(data, running, true));
  },

  /** Ends the compaction with its conversation, and remembers the attempts that were made. */
  STOP_COMPACTION(transition: Transition, data: Omit<Failure, "crashed">, now: number): Transition {
    const running = runningOf(transition, data.session);
    if (running === undefined) return transition;
    const { call, ...left } = running;
    const tried = data.made === undefined ? call.attempt - 1 : call.attempt;
    const next = tried === 0 ? undefined : { ...left, tried };
    return changed(closed(transition, data, running, now), data.session, next, failure(data, running, true));
  },

  /** Reserves tokens for the current attempt. */
  RESERVE_COMPACTION(
    transition: Transition,
    { session, reserved }: { session: string; reserved: TokenEstimate },
  ): Transition {
    return withCall(transition, session, ({ leasing: _, ...call }) => ({ ...call, reserved }));
  },

  /** Parks the current attempt until the lease reply. */
  AWAIT_COMPACTION_LEASE(transition: Transition, { session }: { session: string }): Transition {
    return withCall(transition, session, (call) => ({ ...call, leasing: true }));
  },
};

function runningOf({ state }: Transition, session: string): RunningCompaction | undefined {
  const compaction = compactionOf(state, session);
  return compaction?.call && { ...compaction, call: compaction.call };
}

/** Changes the call of a running compaction. */
function withCall(
  transition: Transition,
  session: string,
  change: (call: SummaryCall) => SummaryCall,
): Transition {
  const running = runningOf(transition, session);
  if (running === undefined) return transition;
  const { state } = transition;
  const compactions = { ...state.compactions, [session]: { ...running, call: change(running.call) } };
  return { ...transition, state: { ...state, compactions } };
}

/** Returns compactions without reservations. Running compactions reserve again. */
export function withoutReservations(compactions: BaseState["compactions"]): BaseState["compactions"] {
  const unreserved = ({ call, ...compaction }: SessionCompaction): SessionCompaction => {
    if (call === undefined) return compaction;
    const { reserved: _reserved, ...others } = call;
    return { ...compaction, call: others };
  };
  return Object.fromEntries(Object.entries(compactions).map(([id, one]) => [id, unreserved(one)]));
}

function failure(
  { session, error: { code, message } }: Pick<Failure, "session" | "error">,
  { call: { attempt } }: RunningCompaction,
  final: boolean,
): JournalEntry {
  return {
    type: "context.compaction.failed",
    data: { agentId: session, attempt, code, message, final },
  };
}

/** Adds the usage of an attempt to the totals of the conversation. */
function counted(transition: Transition, { session, made, crashed }: Omit<Failure, "error">): Transition {
  const { state } = transition;
  const profile = compactionProfile(chainOf(state.record, session));
  const request = made?.facts ?? (crashed && { estimate: crashed });
  if (request === undefined) return transition;
  const usage = withUsage(state.usage, made?.facts.usage, profile);
  const charge = withCharge(state, session, spentByRequest(request, profile));
  return { ...transition, state: { ...state, usage, ...charge } };
}

/** Ends the call for a summary. Counts its last attempt, and counts the call if it made an attempt. */
function closed(
  transition: Transition,
  data: Omit<Failure, "error">,
  { turn, call: { record: before } }: RunningCompaction,
  now: number,
): Transition {
  const { session, made } = data;
  const record =
    made === undefined
      ? before && { ...before, finishedAt: now }
      : withOutcome(before, { ...made, isLast: true });
  const charged = counted(transition, data);
  if (record === undefined) return charged;
  const { state, summaries, ...others } = charged;
  return {
    ...others,
    state: { ...state, usage: { ...state.usage, calls: state.usage.calls + 1 } },
    summaries: [...summaries, { session, turn, record }],
  };
}

function changed(
  transition: Transition,
  session: string,
  compaction: SessionCompaction | undefined,
  entry: JournalEntry,
): Transition {
  const { state } = transition;
  const others = Object.entries(state.compactions).filter(([id]) => id !== session);
  const next = compaction === undefined ? others : [...others, [session, compaction] as const];
  return noted({ ...transition, state: { ...state, compactions: Object.fromEntries(next) } }, entry);
}

export const compactionFrames = silent(
  "context.compaction.started",
  "context.compaction.failed",
  "context.compacted",
);
