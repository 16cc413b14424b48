/** The participants of a conversation, and the readers of a called conversation. Pure. */
import { EventAction, type SessionEvent } from "../../../../memory/session/session-event.ts";
import type { TaintedText } from "../../../../model/taint.ts";
import type { Caller } from "../../../../protocol/caller-schemas.ts";
import type { Participant } from "../../../../protocol/participants.ts";
import { hasSeveralPeople } from "../caller.ts";
import { countsWith } from "../ledger.ts";
import { type ConversationAgent, type ConversationIdentity, nextEvent } from "../state.ts";
import type { Transition } from "../transition.ts";
import { type FrameBody, noted, silent } from "./fact.ts";

export const participants = {
  /** Adds a participant: an agent that was never a participant with its versions, and the handoff that the agent is shown. */
  ADD_PARTICIPANT(
    transition: Transition,
    data: { participant: Participant; agent?: ConversationAgent; handoff?: TaintedText; by: Caller },
    now: number,
  ): Transition {
    const { participant, agent, handoff } = data;
    const { state } = transition;
    const { agents } = state.record;
    const joined = [...withoutParticipant(state.record, participant), named(participant)];
    const next = {
      ...transition,
      state: { ...state, ...(agent && countsWith(state, agent)) },
      membership: [...(transition.membership ?? []), ...(agent === undefined ? [] : [agent])],
    };
    const known: ConversationIdentity["agents"] = agent === undefined ? agents : [...agents, agent];
    const changed = withParticipants(next, "participant.joined", data, {
      participants: joined,
      agents: known,
    });
    return handoff === undefined ? changed : withHandoff(changed, participant.id, handoff, now);
  },

  /** Removes a participant. The record keeps the agents that left: their turns refer to them. */
  REMOVE_PARTICIPANT(
    transition: Transition,
    data: { participant: Participant; by: Caller; isDeleted?: true },
  ): Transition {
    const { participant, isDeleted } = data;
    const { record } = transition.state;
    const agents = isDeleted ? withDeleted(record.agents, participant.id) : record.agents;
    const next = { ...transition, membership: transition.membership ?? [] };
    const left = withoutParticipant(record, participant);
    return withParticipants(next, "participant.left", data, { participants: left, agents });
  },

  /** Lets these users read the conversation of a call, and no others. */
  SET_READERS(
    transition: Transition,
    { readers: given, readersSeq }: { readers: readonly string[]; readersSeq: number },
  ): Transition {
    const { state, membership = [] } = transition;
    const { call } = state.record;
    if (call === undefined) return transition;
    const readers = [...given];
    const record = { ...state.record, call: { ...call, readers, readersSeq } };
    return noted(
      { ...transition, state: { ...state, record }, membership },
      { type: "conversation.readers", data: { readers } },
    );
  },
};

function named({ type, id }: Participant): Participant {
  return { type, id };
}

function withoutParticipant(
  { participants: all }: Pick<ConversationIdentity, "participants">,
  { type, id }: Participant,
): Participant[] {
  return all.filter((one) => one.type !== type || one.id !== id);
}

function withParticipants(
  transition: Transition,
  type: "participant.joined" | "participant.left",
  { participant, by }: { participant: Participant; by: Caller },
  members: Pick<ConversationIdentity, "participants" | "agents">,
): Transition {
  const { state } = transition;
  const isSeveral = hasSeveralPeople(state.record) || hasSeveralPeople(members);
  const record = { ...state.record, ...members, ...(isSeveral ? { several: true as const } : {}) };
  const data = { participant: { ...named(participant) }, by };
  return noted({ ...transition, state: { ...state, record } }, { type, data });
}

function withDeleted(
  [first, ...others]: ConversationIdentity["agents"],
  id: string,
): ConversationIdentity["agents"] {
  const marked = (agent: ConversationAgent): ConversationAgent =>
    agent.id === id ? { ...agent, deleted: true } : agent;
  return [marked(first), ...others.map(marked)];
}

/** Adds the handoff to the session of an agent, as its first event (HANDOFF-2). */
function withHandoff(
  transition: Transition,
  sessionId: string,
  { text: content, taint }: TaintedText,
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
    metadata: { origin: "platform", note: true, taint },
  };
  const sessions = { ...state.sessions, [sessionId]: seq + 1 };
  return { ...transition, state: { ...state, sessions }, notes: [...notes, event] };
}

export const participantsFrames = {
  ...silent("conversation.readers"),
  "participant.joined": (data: { participant: Participant }) => change("participant.joined", data),
  "participant.left": (data: { participant: Participant }) => change("participant.left", data),
};

function change(
  type: "participant.joined" | "participant.left",
  { participant }: { participant: Participant },
): FrameBody {
  return { type, data: { participant } };
}
