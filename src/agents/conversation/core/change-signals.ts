/** The signals that change the settings and the participants of a conversation. */
import type { Budget } from "../../../protocol/budget.ts";
import type { Caller } from "../../../protocol/caller-schemas.ts";
import type { TurnOrder } from "../../../protocol/conversation-schemas.ts";
import type { NewEnvelope } from "../../../protocol/envelope.ts";
import type { Handoff, Participant } from "../../../protocol/participants.ts";
import type { MergeNote } from "../../../protocol/workspace.ts";
import type { ConversationAgent } from "./state.ts";

/** Changes the title, the order of overlapping turns, or the budget. */
export interface Update {
  type: "conversation.update";
  caller: Caller;
  /** `null` removes the title. */
  title?: string | null;
  order?: TurnOrder;
  orchestration?: boolean;
  /** `null` removes the limits. */
  budget?: Budget | null;
}

/** Notes that the branch of the conversation was merged. */
export interface Merged {
  type: "conversation.merged";
  caller: Caller;
  merged: MergeNote;
}

/** Adds a participant. */
export interface Join {
  type: "conversation.participant.add";
  caller: Caller;
  participant: Participant;
  /** The agent that joins, with the versions of its definitions; absent for users. */
  agent?: ConversationAgent;
  /** Tells the agent of the conversation; absent where lists do not contain it. */
  announcement?: NewEnvelope;
  /** The past shown to the agent, if it joins for the first time. */
  handoff?: Handoff;
}

/** Removes a participant. */
export interface Leave {
  type: "conversation.participant.remove";
  caller: Caller;
  participant: Participant;
}

/** Removes a deleted agent from the conversation. */
export interface AgentDeleted {
  type: "conversation.agent.deleted";
  caller: Caller;
  agentId: string;
}
