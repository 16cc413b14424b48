/** Compactions of sessions: started, completed. Pure. */
import type { Cut } from "../../../../memory/session/cut.ts";
import { EventAction, type SessionEvent } from "../../../../memory/session/session-event.ts";
import { wholeTaint } from "../../../../model/taint.ts";
import { compactionOf, nextEvent } from "../state.ts";
import type { Transition } from "../transition.ts";
import { noted, silent } from "./fact.ts";
import { closed, type MadeAttempt, withCompaction } from "./side-call.ts";

export const compaction = {
  START_COMPACTION(
    transition: Transition,
    data: { session: string; turn: number; upTo: number; attempt: number } & Cut,
    now: number,
  ): Transition {
    const { session, attempt, ...members } = data;
    const started = { ...members, startedAt: now, call: { attempt, notBefore: now } };
    return noted(withCompaction(transition, session, started), {
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
    const running = compactionOf(transition.state, session);
    if (running?.call === undefined) return transition;
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
    const next = noted(withCompaction(closed(transition, data, now), session, undefined), {
      type: "context.compacted",
      data: { agentId: session, events: cover, tokens },
    });
    const sessions = { ...next.state.sessions, [session]: seq + 1 };
    return { ...next, state: { ...next.state, sessions }, notes: [...next.notes, event] };
  },
};

export const compactionFrames = silent(
  "context.compaction.started",
  "context.compaction.failed",
  "context.compacted",
);
