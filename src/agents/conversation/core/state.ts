/**
 * The state of a conversation in memory: its record, the head of the newest journal row, and its active turns. All of it
 * is plain data: the reducer replaces values and never changes one in place.
 *
 * BOUND-1  The state does not grow with history: finished turns are in the store only.
 */
import { type Amounts, NOTHING, type TokenEstimate } from "../../../model/spending.ts";
import { NO_USAGE, type UsageTotals } from "../../../model/usage.ts";
import type { AgentCallBody } from "../../../protocol/agent-call.ts";
import type { Budget } from "../../../protocol/budget.ts";
import type { TurnOrder } from "../../../protocol/conversation-schemas.ts";
import type { VersionChain } from "../../../protocol/definitions.ts";
import { turnId } from "../../../protocol/ids.ts";
import type { Participant } from "../../../protocol/participants.ts";
import { workspaceOf } from "../../../protocol/workspace.ts";
import { defined } from "../../../shared/defined.ts";
import type { CallContext, WorkspaceLink } from "../../../shared/identifiers.ts";
import type { LocationHint } from "../../../shared/location.ts";
import { correlationOf } from "./correlation.ts";
import type { Extractions } from "./hooks.ts";
import { type LeaseState, NEW_LEASE } from "./lease.ts";
import type { AttemptsRecord, Turn } from "./turn.ts";

/** The record of a conversation. Only its participants change. All times in this file are milliseconds since the epoch. */
export interface ConversationIdentity {
  id: string;
  tenant: string;
  title: string | null;
  /**
   * `true`: the title is the beginning of the first message, and no call for a better title has ended. `false`: a person removed the title,
   * so no automatic title follows.
   */
  automaticTitle?: boolean;
  projectId: string;
  participants: readonly Participant[];
  /** The agents that take part or have left, the primary one first. */
  agents: readonly [ConversationAgent, ...ConversationAgent[]];
  /** Several people have taken part at a time, so the model sees the speakers. */
  several?: true;
  /** Absent where lists contain the conversation. */
  listed?: false;
  /** The call of another agent that opened the conversation; absent if a user did. It has one turn, and ends with it. */
  call?: CallOrigin;
  /** The conversation and the turn that it was forked from; absent if it is no fork. */
  forkedFrom?: ForkOrigin;
  /** The channel that it came from; absent if it came over HTTP or RPC. */
  channel?: string;
  /** Identifies the request that created the conversation. */
  fingerprint?: string;
  /** The region that it was asked to begin in. */
  locationHint?: LocationHint;
  createdAt: number;
}

/** The place of a fork in the history of another conversation. */
export interface ForkOrigin {
  readonly conversationId: string;
  readonly turnId: string;
  /** The turns that were active there and are missing here; absent if there are none. */
  readonly omitted?: number;
}

/** The call of an agent, as the conversation that it opened knows it. */
export interface CallOrigin
  extends Pick<
    AgentCallBody,
    | "operationId"
    | "attempt"
    | "path"
    | "readers"
    | "readersSeq"
    | "requester"
    | "deadline"
    | "caller"
    | "bounds"
    | "calls"
    | "workspace"
    | "worksForRun"
  > {
  /** The caller's conversation, or its run. */
  readonly from: string;
  /** The tools that the bounds name but the network rules withhold from the agent, with the reasons; absent if empty. */
  readonly withheld?: Readonly<Record<string, string>>;
}

/** Number of the turn of the call that opened a conversation: the first. */
export const CALL_TURN = 1;

/** An agent that participates in a conversation, or has. Its session has its id. */
export interface ConversationAgent {
  readonly id: string;
  /** The projects of the agent; absent if it has only the conversation's project. */
  readonly projectIds?: readonly string[];
  /** The last turn of its handoff, and the turns that were in progress then; absent without a handoff. */
  readonly since?: { readonly turn: number; readonly open: readonly number[] };
  /** It was deleted, and left. */
  readonly deleted?: true;
  /** It had a budget when it joined: its calls need a lease. */
  readonly leased?: true;
  /** The versions of its definitions, pinned when it first joined. */
  readonly chain: VersionChain;
}

/** The life of a conversation. That it waits is derived from its turns. */
export type ConversationStatus = "active" | "completed" | "failed";

/** Permission to call models and tools. That the conversation is idle or running is derived from its turns. */
export type ConversationGate = "open" | "cancelled";

/** The state of a conversation without its record and its turns: a part of every journal row. */
export interface BaseState {
  readonly status: ConversationStatus;
  readonly gate: ConversationGate;
  readonly order: TurnOrder;
  /** Messages are recorded, and no model is called for them; absent if it is. */
  readonly orchestration?: false;
  /** Number of the newest turn. */
  readonly turns: number;
  /** The next event's sequence number, by session. */
  readonly sessions: Readonly<Record<string, number>>;
  /** Totals of all model calls. */
  readonly usage: UsageTotals;
  /** Use of its calls since its beginning. */
  readonly spent: Amounts;
  /** Use of the agents with a persona budget, by agent; absent while the conversation has one agent. */
  readonly spentBy?: Readonly<Record<string, Amounts>>;
  /** Turns of exchanges in progress that agents have continued, by the number of the first; absent if empty. */
  readonly exchanges?: Readonly<Record<number, number>>;
  /** The conversation's own limits, if any. */
  readonly budget?: Budget;
  /** The leases of agents with a budget, by agent; absent before the first request. */
  readonly leases?: Readonly<Record<string, LeaseState>>;
  /** The queued messages; absent if empty. */
  readonly queue?: SignalQueue;
  /** The compactions that run or were given up, by session. */
  readonly compactions: Readonly<Record<string, SessionCompaction>>;
  readonly titling?: Titling;
  /** The hooks that extract memories of completed turns; absent if empty. */
  readonly extraction?: Extractions;
}

/** The messages that wait to start their turns, by number. */
export interface SignalQueue {
  readonly first: number;
  /** One more than the number of the last. */
  readonly next: number;
  /** Of their JSON together, in bytes (UTF-8). */
  readonly bytes: number;
  /** An entry records a dropped message since a message last left the queue. */
  readonly full?: true;
}

/** A running or failed compaction of a session. */
export interface SessionCompaction {
  /** The turn that began it when it ended. */
  readonly turn: number;
  /** The compaction covers the events below this number. */
  readonly cover: number;
  /** The session's next event when it began. */
  readonly upTo: number;
  /** Tokens of the events that the summary replaces. */
  readonly tokens: number;
  readonly startedAt: number;
  /** The model call; absent once the compaction was given up or stopped. */
  readonly call?: SideCall;
  /** The stopped attempts of this history; absent if the conversation was not stopped. */
  readonly tried?: number;
}

export interface SideCall {
  /** From 1. Includes attempts at the same history before a stop. */
  readonly attempt: number;
  /** Earliest start of the attempt. */
  readonly notBefore: number;
  /** The attempts so far with a known outcome; absent if empty. */
  readonly record?: AttemptsRecord;
  /** As in `ModelCall`. */
  readonly reserved?: TokenEstimate;
  /** As in `ModelCall`. */
  readonly leasing?: true;
}

/** A running call for the title of the conversation (`core/planning/titling.ts`). */
export interface Titling {
  /** The turn that began it when it ended. The title describes this turn. */
  readonly turn: number;
  readonly stem: string;
  readonly agentId: string;
  /** Estimated tokens of the request. */
  readonly tokens: number;
  readonly startedAt: number;
  readonly call: SideCall;
}

export type RunningCompaction = SessionCompaction & { readonly call: SideCall };

/** The part of the state in every journal row. A wake reads the newest row only. */
export interface Head extends BaseState {
  /** Numbers of the active turns, ascending. */
  readonly active: readonly number[];
}

export interface ConversationState extends BaseState {
  readonly record: ConversationIdentity;
  /** Number of the newest journal entry. */
  readonly seq: number;
  readonly active: ReadonlyMap<number, Turn>;
  /** The parts of active turns outside their rows, by turn. Turns without such parts are absent. */
  readonly stored: ReadonlyMap<number, StoredParts>;
}

/**
 * The parts of an active turn that the store holds outside the turn's row, as of the commit that gave this state. Only the
 * store reads them. They belong to the state, so a commit that is rolled back leaves no trace of them in memory.
 */
export interface StoredParts {
  /** Sizes of the parts, in bytes (UTF-8), in order. */
  readonly parts: readonly number[];
  /** The replies, operations and calls with their newest version in a part, by list and index (`operations.3`). */
  readonly moved: ReadonlyMap<string, object>;
  /** The members that are texts of their own: by the id of the object that has them, then by name. */
  readonly texts: ReadonlyMap<string, ReadonlyMap<string, StoredMember>>;
}

/** A member that is stored as a text of its own. */
export interface StoredMember {
  readonly value: unknown;
  /** Size of the text in bytes (UTF-8). */
  readonly bytes: number;
  /** The text is JSON of the value; otherwise it is the value. */
  readonly isJson: boolean;
}

/** The head of a new conversation. */
export const NEW_STATE: BaseState = {
  status: "active",
  gate: "open",
  order: "parallel",
  turns: 0,
  sessions: {},
  usage: NO_USAGE,
  spent: NOTHING,
  compactions: {},
};

/** Returns the primary agent, which answers messages without an addressee: the first agent that takes part. */
export function primaryAgent(
  record: Pick<ConversationIdentity, "agents" | "participants">,
): ConversationAgent {
  return record.agents.find(({ id }) => isPresent(record, id)) ?? record.agents[0];
}

/** Reports whether a user or an agent takes part now. */
export function takesPart(
  { participants }: Pick<ConversationIdentity, "participants">,
  { type, id }: Participant,
): boolean {
  return participants.some((one) => one.type === type && one.id === id);
}

/** Reports whether an agent takes part now. The agent that the conversation began with does until it is deleted. */
export function isPresent(
  record: Pick<ConversationIdentity, "agents" | "participants">,
  agentId: string,
): boolean {
  const [first] = record.agents;
  const isFirst = first.id === agentId && !first.deleted;
  return isFirst || takesPart(record, { type: "agent", id: agentId });
}

/** Returns the lease of an agent; `undefined` if it needs no lease. */
export function leaseOf(
  { record, leases = {} }: Pick<ConversationState, "record" | "leases">,
  agentId: string,
): LeaseState | undefined {
  const agent = record.agents.find(({ id }) => id === agentId);
  return agent?.leased ? (leases[agentId] ?? NEW_LEASE) : undefined;
}

export function chainOf(record: Pick<ConversationIdentity, "agents">, agentId: string): VersionChain {
  return agentOf(record, agentId).chain;
}

export function agentOf(
  { agents }: Pick<ConversationIdentity, "agents">,
  agentId: string,
): ConversationAgent {
  const agent = agents.find(({ id }) => id === agentId);
  if (agent === undefined)
    throw new Error(`The agent "${agentId}" does not participate in the conversation.`);
  return agent;
}

export function callContext(
  { tenant, projectId, id: conversationId, call }: ConversationIdentity,
  turn: Pick<Turn, "n" | "stem" | "agentId" | "correlationId">,
): CallContext {
  const { agentId } = turn;
  const correlationId = correlationOf(turn);
  return {
    ...{ tenant, projectId, agentId, conversationId, turnId: turnId(turn), correlationId },
    ...defined({ workspace: call?.workspace }),
  };
}

export function workspaceIn({
  id,
  call,
}: Pick<ConversationIdentity, "id" | "call">): WorkspaceLink & { id: string } {
  return workspaceOf({ conversationId: id, ...defined({ workspace: call?.workspace }) });
}

/** Returns the next event's number in a session. Ids may equal names that every object has, such as `constructor`. */
export function nextEvent(sessions: Readonly<Record<string, number>>, sessionId: string): number {
  return Object.hasOwn(sessions, sessionId) ? (sessions[sessionId] ?? 0) : 0;
}

/** Returns the compaction of a session that runs or was given up. */
export function compactionOf(
  { compactions }: Pick<BaseState, "compactions">,
  sessionId: string,
): SessionCompaction | undefined {
  return Object.hasOwn(compactions, sessionId) ? compactions[sessionId] : undefined;
}

/** Returns the turns that wait for others, in order. */
export function queuedTurns({ active }: Pick<ConversationState, "active">): Turn[] {
  return [...active.values()].filter(({ queued }) => queued).sort((one, other) => one.n - other.n);
}
