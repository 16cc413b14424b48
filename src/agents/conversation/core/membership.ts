/** The participants of a conversation as decisions change them. Pure. */
import { EventAction, type SessionEvent } from "../../../memory/session/types.ts";
import type { MarkedText } from "../../../model/mark.ts";
import { hasSeveralPeople } from "./caller.ts";
import type { AgentDecision } from "./decisions.ts";
import { countsWith } from "./own-spending.ts";
import { type ConversationAgent, type ConversationIdentity, nextEvent } from "./state.ts";
import type { Transition } from "./transition.ts";

type MembershipDecision = Extract<AgentDecision, { type: "ADD_PARTICIPANT" | "REMOVE_PARTICIPANT" }>;

/** Adds or removes a participant. The record keeps the agents that left: their turns refer to them. */
export function changeParticipants(
  transition: Transition,
  decision: MembershipDecision,
  now: number,
): Transition {
  const { state, entries, membership } = transition;
  const { participant, by } = decision;
  const { type, id } = participant;
  const { participants: before, agents } = state.record;
  const isJoin = decision.type === "ADD_PARTICIPANT";
  const others = before.filter((one) => one.type !== type || one.id !== id);
  const participants = isJoin ? [...others, { type, id }] : others;
  const pinned = isJoin ? decision.agent : undefined;
  const known = !isJoin && decision.isDeleted ? withDeleted(agents, id) : agents;
  const record: ConversationIdentity = {
    ...state.record,
    participants,
    agents: pinned === undefined ? known : [...known, pinned],
    ...(hasSeveralPeople(state.record) || hasSeveralPeople({ participants })
      ? { several: true as const }
      : {}),
  };
  const entry = isJoin ? "participant.joined" : "participant.left";
  const changed: Transition = {
    ...transition,
    state: { ...state, ...(pinned === undefined ? {} : countsWith(state, pinned)), record },
    entries: [...entries, { type: entry, data: { participant: { type, id }, by } }],
    membership: [...(membership ?? []), ...(pinned === undefined ? [] : [pinned])],
  };
  return isJoin && decision.handoff !== undefined ? withHandoff(changed, id, decision.handoff, now) : changed;
}

/** Marks a deleted agent. */
function withDeleted(
  [first, ...others]: ConversationIdentity["agents"],
  id: string,
): ConversationIdentity["agents"] {
  const marked = (agent: ConversationAgent): ConversationAgent =>
    agent.id === id ? { ...agent, deleted: true } : agent;
  return [marked(first), ...others.map(marked)];
}

/** Changes who may read the conversation of a call. */
export function setReaders(
  transition: Transition,
  { readers: given, readersSeq }: Extract<AgentDecision, { type: "SET_READERS" }>,
): Transition {
  const { state, entries, membership = [] } = transition;
  const { call } = state.record;
  if (call === undefined) return transition;
  const readers = [...given];
  const changed = { ...call, readers, readersSeq };
  return {
    ...transition,
    state: { ...state, record: { ...state.record, call: changed } },
    entries: [...entries, { type: "conversation.readers", data: { readers } }],
    membership,
  };
}

/** Adds the handoff to the session of an agent, as its first event (HANDOFF-2). */
function withHandoff(
  transition: Transition,
  sessionId: string,
  { text: content, mark }: MarkedText,
  now: number,
): Transition {
  const { state, notes } = transition;
  const seq = nextEvent(state.sessions, sessionId);
  const event: SessionEvent = {
    id: `handoff_${sessionId}`,
    sessionId,
    seq,
    content,
    timestamp: now,
    action: EventAction.SYSTEM_INSTRUCTION,
    metadata: { origin: "platform", note: true, mark },
  };
  const sessions = { ...state.sessions, [sessionId]: seq + 1 };
  return { ...transition, state: { ...state, sessions }, notes: [...notes, event] };
}
