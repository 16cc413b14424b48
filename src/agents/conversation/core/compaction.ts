/** Applies decisions about compactions to the state. Pure. */
import { compactionProfile } from "../../../library/version-chain.ts";
import { EventAction, type SessionEvent } from "../../../memory/session/types.ts";
import { withSummaryCall } from "./calls.ts";
import type { CompactionDecision, FailureText } from "./decisions.ts";
import type { JournalEntry } from "./journal-entry.ts";
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
    const { type: _type, session: _session, ...members } = decision;
    const started = { ...members, startedAt: now, call: { attempt: 1, notBefore: now } };
    return changed(transition, session, started, {
      type: "context.compaction.started",
      data: { agentId: session, events: decision.cover },
    });
  }
  const compaction = compactionOf(transition.state, session);
  if (compaction?.call === undefined) return transition;
  const running: RunningCompaction = { ...compaction, call: compaction.call };
  switch (decision.type) {
    case "COMPACT_SESSION":
      return compact(counted(transition, decision, true), decision, running, now);
    case "RETRY_COMPACTION": {
      const call = { attempt: running.call.attempt + 1, notBefore: decision.notBefore };
      return changed(
        counted(transition, decision, false),
        session,
        { ...running, call },
        failure(decision, running),
      );
    }
    case "GIVE_UP_COMPACTION": {
      const { call: _call, ...given } = running;
      return changed(counted(transition, decision, true), session, given, failure(decision, running));
    }
    default:
      return decision satisfies never;
  }
}

/** Returns the compactions of a conversation that is stopped: none runs. */
export function withoutRunning({ compactions }: Pick<Standing, "compactions">): Standing["compactions"] {
  return Object.fromEntries(Object.entries(compactions).filter(([, { call }]) => call === undefined));
}

function compact(
  transition: Transition,
  { session, content, tokens }: Extract<CompactionDecision, { type: "COMPACT_SESSION" }>,
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
    metadata: { origin: "platform" },
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
  const isFinal = type === "GIVE_UP_COMPACTION";
  return {
    type: "context.compaction.failed",
    data: { agentId: session, attempt, code, message, final: isFinal },
  };
}

/** Adds the usage of an attempt to the totals of the conversation. */
function counted(
  transition: Transition,
  { session, facts }: Pick<Extract<CompactionDecision, { facts?: unknown }>, "session" | "facts">,
  isLast: boolean,
): Transition {
  if (facts === undefined) return transition;
  const { state } = transition;
  const profile = compactionProfile(chainOf(state.record, session));
  return { ...transition, state: { ...state, usage: withSummaryCall(state.usage, facts, profile, isLast) } };
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
