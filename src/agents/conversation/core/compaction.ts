/** Applies decisions about compactions to the state. Pure. */
import { compactionProfile } from "../../../library/definitions/version-chain.ts";
import { EventAction, type SessionEvent } from "../../../memory/session/types.ts";
import { wholeMark } from "../../../model/mark.ts";
import type { TokenEstimate } from "../../../model/spending.ts";
import { defined } from "../../../shared/defined.ts";
import { withOutcome, withUsage } from "./calls.ts";
import type { CompactionDecision, FailureText, MadeAttempt } from "./decisions.ts";
import type { JournalEntry } from "./journal-entry.ts";
import { leasesAfter } from "./lease-reducer.ts";
import { spentByRequest } from "./ledger.ts";
import { withSpending } from "./own-spending.ts";
import {
  chainOf,
  compactionOf,
  nextEvent,
  type RunningCompaction,
  type SessionCompaction,
  type Standing,
} from "./state.ts";
import type { Transition } from "./transition.ts";

export function reduceCompaction(
  transition: Transition,
  decision: CompactionDecision,
  now: number,
): Transition {
  const { session } = decision;
  if (decision.type === "START_COMPACTION") {
    const { type: _type, session: _session, attempt, ...members } = decision;
    const started = { ...members, startedAt: now, call: { attempt, notBefore: now } };
    return changed(transition, session, started, {
      type: "context.compaction.started",
      data: { agentId: session, events: decision.cover },
    });
  }
  const compaction = compactionOf(transition.state, session);
  if (compaction?.call === undefined) return transition;
  const running: RunningCompaction = { ...compaction, call: compaction.call };
  const { call, ...left } = running;
  switch (decision.type) {
    case "COMPACT_SESSION":
      return compact(closed(transition, decision, running, now), decision, running, now);
    case "RESERVE_COMPACTION": {
      const { leasing: _, ...others } = running.call;
      const call = { ...others, reserved: decision.reserved };
      const { state } = transition;
      const compactions = { ...state.compactions, [session]: { ...running, call } };
      return { ...transition, state: { ...state, compactions } };
    }
    case "AWAIT_COMPACTION_LEASE": {
      const { state } = transition;
      const call = { ...running.call, leasing: true as const };
      const compactions = { ...state.compactions, [session]: { ...running, call } };
      return { ...transition, state: { ...state, compactions } };
    }
    case "RETRY_COMPACTION": {
      const { made, notBefore } = decision;
      const record = made === undefined ? call.record : withOutcome(call.record, { ...made, isLast: false });
      const next = { attempt: call.attempt + 1, notBefore, ...defined({ record }) };
      return changed(
        counted(transition, decision),
        session,
        { ...running, call: next },
        failure(decision, running),
      );
    }
    case "GIVE_UP_COMPACTION":
      return changed(closed(transition, decision, running, now), session, left, failure(decision, running));
    case "STOP_COMPACTION": {
      const tried = decision.made === undefined ? call.attempt - 1 : call.attempt;
      const next = tried === 0 ? undefined : { ...left, tried };
      return changed(closed(transition, decision, running, now), session, next, failure(decision, running));
    }
    default:
      return decision satisfies never;
  }
}

/** Returns compactions without reservations. Running compactions reserve again. */
export function withoutReservations(compactions: Standing["compactions"]): Standing["compactions"] {
  const unreserved = ({ call, ...compaction }: SessionCompaction): SessionCompaction => {
    if (call === undefined) return compaction;
    const { reserved: _reserved, ...others } = call;
    return { ...compaction, call: others };
  };
  return Object.fromEntries(Object.entries(compactions).map(([id, one]) => [id, unreserved(one)]));
}

function compact(
  transition: Transition,
  { session, content, tokens, made }: Extract<CompactionDecision, { type: "COMPACT_SESSION" }>,
  { cover }: RunningCompaction,
  now: number,
): Transition {
  const { state } = transition;
  const seq = nextEvent(state.sessions, session);
  const event: SessionEvent = {
    id: `compaction_${seq}`,
    sessionId: session,
    seq,
    action: EventAction.COMPACTION,
    content,
    compactedEventCount: cover,
    timestamp: now,
    metadata: { origin: "platform", mark: wholeMark(made.facts) },
  };
  const next = changed(transition, session, undefined, {
    type: "context.compacted",
    data: { agentId: session, events: cover, tokens },
  });
  return {
    ...next,
    state: { ...next.state, sessions: { ...state.sessions, [session]: seq + 1 } },
    notes: [...next.notes, event],
  };
}

function failure(
  { type, session, error }: { type: CompactionDecision["type"]; session: string; error: FailureText },
  { call: { attempt } }: RunningCompaction,
): JournalEntry {
  const { code, message } = error;
  const isFinal = type !== "RETRY_COMPACTION";
  return {
    type: "context.compaction.failed",
    data: { agentId: session, attempt, code, message, final: isFinal },
  };
}

type WithAttempt = { session: string; made?: MadeAttempt; crashed?: TokenEstimate };

/** Adds the usage of an attempt to the totals of the conversation. */
function counted(transition: Transition, { session, made, crashed }: WithAttempt): Transition {
  const { state } = transition;
  const profile = compactionProfile(chainOf(state.record, session));
  const request = made?.facts ?? (crashed && { estimate: crashed });
  if (request === undefined) return transition;
  const amounts = spentByRequest(request, profile);
  return {
    ...transition,
    state: {
      ...state,
      usage: withUsage(state.usage, made?.facts.usage, profile),
      ...withSpending(state, session, amounts),
      ...leasesAfter(state, session, amounts),
    },
  };
}

/** Ends the call for a summary. Counts its last attempt, and counts the call if it made an attempt. */
function closed(
  transition: Transition,
  decision: WithAttempt,
  { turn, call: { record: before } }: RunningCompaction,
  now: number,
): Transition {
  const { session, made } = decision;
  const record =
    made === undefined
      ? before && { ...before, finishedAt: now }
      : withOutcome(before, { ...made, isLast: true });
  const charged = counted(transition, decision);
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
  const { state, entries } = transition;
  const others = Object.entries(state.compactions).filter(([id]) => id !== session);
  const next = compaction === undefined ? others : [...others, [session, compaction] as const];
  return {
    ...transition,
    state: { ...state, compactions: Object.fromEntries(next) },
    entries: [...entries, entry],
  };
}
