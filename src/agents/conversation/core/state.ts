/**
 * The state of a conversation in memory: its record, the head of the newest journal row, and its active turns. All of it
 * is plain data: the reducer replaces values and never changes one in place.
 *
 * BOUND-1  The state does not grow with history: finished turns are in the store only.
 */

import type { ModelContext, OutputSpec, ToolSpec } from "../../../model/context.ts";
import type { ErrorCategory } from "../../../model/error.ts";
import type { NativeReply } from "../../../model/messages.ts";
import type { FinishReason, RateLimitFeedback } from "../../../model/reply.ts";
import { type Amounts, NOTHING, type TokenEstimate } from "../../../model/spending.ts";
import { NO_USAGE, type TokenUsage, type UsageTotals } from "../../../model/usage.ts";
import type { Budget } from "../../../protocol/budget.ts";
import type { VersionChain } from "../../../protocol/definitions.ts";
import { turnId } from "../../../protocol/ids.ts";
import type { Participant } from "../../../protocol/participants.ts";
import type { Caller, TurnIssues, TurnOrder } from "../../../protocol/views.ts";
import type { Content } from "../../../shared/content.ts";
import type { ErrorData } from "../../../shared/errors.ts";
import type { CallContext } from "../../../shared/identifiers.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { correlationOf } from "./correlation.ts";
import type { Assembly, Extractions } from "./hooks.ts";
import { type LeaseState, NEW_LEASE } from "./lease.ts";
import { isDue, isOpen, type Operation } from "./operation.ts";

/** The record of a conversation. Only its participants change. All times in this file are milliseconds since the epoch. */
export interface ConversationIdentity {
  id: string;
  tenant: string;
  title: string | null;
  projectId: string;
  participants: readonly Participant[];
  /** The agents that take part or have left, the primary one first. */
  agents: readonly [ConversationAgent, ...ConversationAgent[]];
  /** Several people have taken part at a time: the model is told who speaks. */
  several?: true;
  /** Absent where lists contain the conversation. */
  listed?: false;
  /** Identifies the request that created the conversation. */
  fingerprint?: string;
  createdAt: number;
}

/** An agent that participates in a conversation, or has. Its session has its id. */
export interface ConversationAgent {
  readonly id: string;
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
export interface Standing {
  readonly status: ConversationStatus;
  readonly gate: ConversationGate;
  readonly order: TurnOrder;
  /** Messages are recorded, and no model is called for them; absent where it is. */
  readonly orchestration?: false;
  /** Number of the newest turn. */
  readonly turns: number;
  /** The next event's sequence number, by session. */
  readonly sessions: Readonly<Record<string, number>>;
  /** Totals of all model calls. */
  readonly usage: UsageTotals;
  /** What its calls have used up since its beginning. */
  readonly spent: Amounts;
  /** The conversation's own limits; absent = none. */
  readonly budget?: Budget;
  /** The leases of agents with a budget, by agent; absent where nothing was asked for. */
  readonly leases?: Readonly<Record<string, LeaseState>>;
  /** The messages that wait to start their turns; absent where there are none. */
  readonly queue?: SignalQueue;
  /** The compactions that run or were given up, by session. */
  readonly compactions: Readonly<Record<string, SessionCompaction>>;
  /** The hooks that extract memories of completed turns; absent where there is none. */
  readonly extraction?: Extractions;
}

/** The messages that wait to start their turns, by number. */
export interface SignalQueue {
  readonly first: number;
  /** One more than the number of the last. */
  readonly next: number;
  /** Of their JSON together, in bytes (UTF-8). */
  readonly bytes: number;
}

/** A compaction of a session: one that runs, or one that was given up. */
export interface SessionCompaction {
  /** Number of the turn whose end began it. */
  readonly turn: number;
  /** The events below this number are to be covered. */
  readonly cover: number;
  /** The session's next event when it began. */
  readonly upTo: number;
  /** Tokens of what the summary is to replace. */
  readonly tokens: number;
  readonly startedAt: number;
  /** The model call; absent once the compaction was given up or stopped. */
  readonly call?: SummaryCall;
  /** The attempts of this history that a stop has left behind; absent where the conversation was not stopped. */
  readonly tried?: number;
}

/** A call for a summary. */
export interface SummaryCall {
  /** From 1. Counts those of the same history before a stop. */
  readonly attempt: number;
  /** Earliest start of the attempt. */
  readonly notBefore: number;
  /** The attempts so far whose outcome is known; absent where there are none. */
  readonly record?: AttemptsRecord;
  /** As in `ModelCall`. */
  readonly reserved?: TokenEstimate;
  /** As in `ModelCall`. */
  readonly leasing?: true;
}

/** A compaction that runs. */
export type RunningCompaction = SessionCompaction & { readonly call: SummaryCall };

/** The part of the state in every journal row. A wake reads the newest row only. */
export interface Head extends Standing {
  /** Numbers of the active turns, ascending. */
  readonly active: readonly number[];
}

export interface ConversationState extends Standing {
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
  /** The replies, operations and calls whose newest version is in a part, by list and index (`operations.3`). */
  readonly moved: ReadonlyMap<string, object>;
  /** The members that are texts of their own: by the id of the object that has them, then by name. */
  readonly texts: ReadonlyMap<string, ReadonlyMap<string, StoredMember>>;
  /** Keys of texts that the next commit deletes. */
  readonly stale?: readonly string[];
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
export const NEW_STANDING: Standing = {
  status: "active",
  gate: "open",
  order: "parallel",
  turns: 0,
  sessions: {},
  usage: NO_USAGE,
  spent: NOTHING,
  compactions: {},
};

/** A turn, active or finished, with its content. */
export interface Turn {
  readonly n: number;
  readonly stem: string;
  readonly agentId: string;
  readonly caller: Caller;
  /** The client's idempotency key, as supplied. */
  readonly clientId?: string;
  /** The correlation id of its message, as supplied. `correlationOf` has that of every turn. */
  readonly correlationId?: string;
  readonly input: Content;
  readonly replyTo?: string;
  /** The agent that the message names as its addressee. */
  readonly to?: string;
  /** The message that `replyTo` names, for the model. */
  readonly replied?: RepliedMessage;
  /** The schema of the answer. Absent = any text. */
  readonly output?: OutputSpec;
  /** Tools that the client runs. */
  readonly tools?: readonly ToolSpec[];
  /** Applies to the turn's first reply; `auto` when absent. */
  readonly toolChoice?: ModelContext["toolChoice"];
  /** The limits of this turn; absent = none. */
  readonly budget?: Budget;
  readonly status: "active" | "completed" | "failed";
  readonly createdAt: number;
  readonly completedAt?: number;
  /** Number of the turn's first journal entry. */
  readonly firstSeq: number;
  /** Number of the journal entry with which the cycle began: the model sees what its commit and earlier ones have stored. */
  readonly snapshotSeq: number;
  /** The turn waits for those before it (ORDER-1). */
  readonly queued?: true;
  /** Every call is a `sync` operation: who sent the message gets one answer only. */
  readonly foreground?: true;
  /**
   * The turn waits for nothing but results: of background operations once its cycle is over (ASYNC-2), or of deferred ones
   * (DEFER-5). Number of the entry with which it began to.
   */
  readonly waiting?: number;
  /** The note for the model on the other turns that were active when the cycle began. Absent = there was none. */
  readonly besides?: string;
  /** Numbers of the finished turns of other agents that the cycle is told of, ascending. Absent = none. */
  readonly said?: readonly number[];
  /** The model's provider found the request too long: the history is cut to half. */
  readonly halved?: true;
  /** Number of the newest turn whose message the model need not be told of any more (ORDER-4); the turn's own when absent. */
  readonly heard?: number;
  /** The place of the turn's events in the session of its agent, once the turn is over. Turns that failed in releases up to 0.3 have none. */
  readonly events?: { readonly from: number; readonly count: number };
  /** Next free item index. The user's message is item 0. */
  readonly items: number;
  /** The context hook in progress: the model is called when it has given the request. */
  readonly assembly?: Assembly;
  /** The provider's request that the context hook gave for this cycle. Removed when the turn ends. */
  readonly request?: JsonObject;
  /** The items of the turn's newest hooks. Their operations have these ids. */
  readonly hooks?: { readonly assembly?: number; readonly extraction?: number };
  /** The model call in progress; `null` while tools run and when the turn is over. */
  readonly call: ModelCall | null;
  readonly replies: readonly Reply[];
  /** Answers that did not fit `output`. Removed when the turn ends. */
  readonly repairs?: readonly Repair[];
  /** The notes for the model on newer messages. Removed when the turn ends. */
  readonly additions?: readonly Addition[];
  /** The reply that the model's provider paused and `call` continues. */
  readonly paused?: PausedReply;
  /** Number of continuations of paused replies; 0 when absent. */
  readonly continuations?: number;
  /** Records of the model calls. Absent in turns of releases without records. */
  readonly calls?: readonly CallRecord[];
  readonly operations: readonly Operation[];
  /** Tool calls that have run or run; 0 when absent. */
  readonly toolCalls?: number;
  /** Crashes of the actor while effects of this turn may have run. */
  readonly recoveries: number;
  /** Those of the crashes that an outcome of the turn has followed; 0 when absent. */
  readonly overcome?: number;
  readonly issues: TurnIssues;
  readonly error?: ErrorData;
}

/** A message that another one replies to. */
export interface RepliedMessage {
  readonly role: "user" | "agent";
  /** Who wrote it; absent for the agent's own where it is the only one, and in turns of earlier releases. */
  readonly by?: Caller;
  /** At most `MAX_QUOTED_LENGTH`. */
  readonly text: string;
}

/** The members of a turn that its user's message sets. */
export type TurnRequest = Pick<
  Turn,
  | "stem"
  | "agentId"
  | "caller"
  | "clientId"
  | "correlationId"
  | "input"
  | "replyTo"
  | "to"
  | "replied"
  | "output"
  | "tools"
  | "toolChoice"
  | "foreground"
  | "budget"
>;

/** A turn that waits for the model. */
export type CallingTurn = Turn & { readonly call: ModelCall };

export interface ModelCall {
  /** Index of the message that receives the reply. */
  readonly item: number;
  /** From 1; ascends over all attempts for this message, whatever the model. */
  readonly attempt: number;
  /** Index of the model in the chain: 0 (when absent) is the agent's own, the fallbacks follow. */
  readonly profile?: number;
  /** Attempts for this message that do not count against the present model's limit; 0 when absent. */
  readonly before?: number;
  /** Earliest start of the attempt: the end of the backoff. */
  readonly notBefore: number;
  /** The turn's last call: the model gets no tools. */
  readonly final: boolean;
  /** The models whose providers requested a wait. Absent = none. */
  readonly deferred?: readonly DeferredModel[];
  /** The tokens that are reserved for the attempt; absent where no budget applies. */
  readonly reserved?: TokenEstimate;
  /** The attempt waits for the agent's answer (LEASE-8). */
  readonly leasing?: true;
}

/** A model that may be called for a message, now or later. */
export interface DeferredModel {
  /** As in `ModelCall`. */
  readonly profile: number;
  /** Attempts of the model for this message. */
  readonly tried: number;
  /** Earliest time of its next attempt. */
  readonly notBefore: number;
}

/** One reply of the model. */
export interface Reply {
  readonly item: number;
  readonly text: string;
  readonly reasoning?: string;
  readonly finishReason: FinishReason;
  readonly usage?: TokenUsage;
  readonly providerMessageId?: string;
  /** The reply in its provider's own format, to be sent back to that provider. */
  readonly native?: NativeReply;
  /** The reply was cut off: the turn was stopped or failed while it streamed. The text is what was shown. */
  readonly stopped?: true;
  readonly at: number;
}

/** The part of a reply that came before its provider's last pause. */
export type PausedReply = Pick<Reply, "text" | "reasoning" | "usage" | "providerMessageId" | "native">;

/** An answer that was withdrawn, and the problem that the model is sent. */
export interface Repair {
  /** Number of replies recorded before the answer. */
  readonly after: number;
  /** The answer's text, as it is sent back to the model. */
  readonly text: string;
  readonly problem: string;
}

/** Messages of the turn's caller that the model is told of after a number of replies. */
export interface Addition {
  readonly after: number;
  /** The beginnings of the newest ones, in order. */
  readonly messages: readonly string[];
  /** Number of those before them; 0 when absent. */
  readonly earlier?: number;
}

/** One call of a model, with all of its attempts. A fallback to another model is another call. */
export interface CallRecord {
  /** Index of the message that the call was for. */
  readonly item: number;
  /** As in `ModelCall`. */
  readonly profile: number;
  readonly startedAt: number;
  /** Absent while another attempt is to come. */
  readonly finishedAt?: number;
  readonly firstTextAt?: number;
  /** Attempts with a known outcome. */
  readonly attempts: number;
  /** The outcome of the last attempt. */
  readonly category: ErrorCategory | "none";
  readonly status?: number;
  readonly requestId?: string;
  /** Sum over all attempts that were counted, failed ones included. */
  readonly usage?: TokenUsage;
  /** Sum over all attempts that were not counted. */
  readonly estimate?: TokenEstimate;
  /** Attempts that a crash interrupted; 0 when absent. */
  readonly crashed?: number;
  /** Present only where the provider reported that a limit was reached. */
  readonly rateLimit?: RateLimitFeedback;
}

/** The attempts of a call. */
export type AttemptsRecord = Omit<CallRecord, "item" | "profile">;

/** Returns the agent that takes part from the beginning, and answers messages without an addressee. */
export function primaryAgent({ agents }: Pick<ConversationIdentity, "agents">): ConversationAgent {
  return agents[0];
}

/** Reports whether a user or an agent takes part now. */
export function takesPart(
  { participants }: Pick<ConversationIdentity, "participants">,
  { type, id }: Participant,
): boolean {
  return participants.some((one) => one.type === type && one.id === id);
}

/** Reports whether an agent takes part now. The primary agent always does. */
export function isPresent(
  record: Pick<ConversationIdentity, "agents" | "participants">,
  agentId: string,
): boolean {
  return primaryAgent(record).id === agentId || takesPart(record, { type: "agent", id: agentId });
}

/** Returns the lease of an agent; `undefined` for one that needs none. */
export function leaseOf(
  { record, leases = {} }: Pick<ConversationState, "record" | "leases">,
  agentId: string,
): LeaseState | undefined {
  const agent = record.agents.find(({ id }) => id === agentId);
  return agent?.leased ? (leases[agentId] ?? NEW_LEASE) : undefined;
}

/** Returns the version chain of an agent of the conversation. */
export function chainOf({ agents }: Pick<ConversationIdentity, "agents">, agentId: string): VersionChain {
  const agent = agents.find(({ id }) => id === agentId);
  if (agent === undefined)
    throw new Error(`The agent "${agentId}" does not participate in the conversation.`);
  return agent.chain;
}

/** Returns the context of a turn's model and tool calls. */
export function callContext(
  { tenant, projectId, id: conversationId }: ConversationIdentity,
  turn: Pick<Turn, "n" | "stem" | "agentId" | "correlationId">,
): CallContext {
  const { agentId } = turn;
  const correlationId = correlationOf(turn);
  return { tenant, projectId, agentId, conversationId, turnId: turnId(turn), correlationId };
}

/** Returns the next event's number in a session. Ids may equal names that every object has, such as `constructor`. */
export function nextEvent(sessions: Readonly<Record<string, number>>, sessionId: string): number {
  return Object.hasOwn(sessions, sessionId) ? (sessions[sessionId] ?? 0) : 0;
}

/** Returns the compaction of a session that runs or was given up. */
export function compactionOf(
  { compactions }: Pick<Standing, "compactions">,
  sessionId: string,
): SessionCompaction | undefined {
  return Object.hasOwn(compactions, sessionId) ? compactions[sessionId] : undefined;
}

/** A session that is compacted. */
export interface SessionInCompaction {
  readonly session: string;
  readonly compaction: RunningCompaction;
}

/** Returns the compactions that run, each with its session. */
export function runningCompactions({ compactions }: Pick<Standing, "compactions">): SessionInCompaction[] {
  return Object.entries(compactions).flatMap(([session, { call, ...compaction }]) =>
    call === undefined ? [] : [{ session, compaction: { ...compaction, call } }],
  );
}

/** Returns the tool calls that the reply with this index requested. */
export function operationsOf({ operations }: Pick<Turn, "operations">, reply: number): Operation[] {
  return operations.filter((operation) => operation.reply === reply);
}

/** Returns the turns that wait for others, in order. */
export function queuedTurns({ active }: Pick<ConversationState, "active">): Turn[] {
  return [...active.values()].filter(({ queued }) => queued).sort((one, other) => one.n - other.n);
}

/** Returns the operations without a result. */
export function openOperations({ operations }: Pick<Turn, "operations">): Operation[] {
  return operations.filter(isOpen);
}

/** Returns the operations whose results the next model call needs. */
export function blockingOperations(turn: Pick<Turn, "operations">): Operation[] {
  return openOperations(turn).filter(({ mode }) => mode === "sync");
}

/** Returns the background operations whose results no cycle has got, open ones included. */
export function backgroundOperations({ operations }: Pick<Turn, "operations">): Operation[] {
  return operations.filter(({ mode, delivered }) => mode === "async" && delivered === undefined);
}

/** Returns the background operations with a result that no cycle has got. */
export function dueOperations({ operations }: Pick<Turn, "operations">): Operation[] {
  return operations.filter(isDue);
}

/** Reports whether a turn's next cycle can begin: the one before is over, and background operations have results for it. */
export function isDueTurn(turn: Turn): boolean {
  return (
    turn.waiting !== undefined && dueOperations(turn).length > 0 && blockingOperations(turn).length === 0
  );
}

/** Returns the operations that the actor itself must have run: open ones of code whose attempt was not interrupted. */
export function runnableOperations(turn: Pick<Turn, "operations">): Operation[] {
  return openOperations(turn).filter(({ target, status }) => target === "code" && status === "pending");
}

/** Reports whether an active turn waits for its client, beside background operations for nothing else. */
export function waitsForClient(turn: Turn): boolean {
  if (turn.status !== "active" || turn.call !== null) return false;
  const open = blockingOperations(turn);
  return open.length > 0 && open.every(({ target }) => target === "client");
}

/** Returns the replies without tool calls: the agent's messages. */
export function agentReplies({ replies, operations }: Pick<Turn, "replies" | "operations">): Reply[] {
  const calling = new Set(operations.map(({ reply }) => reply));
  return replies.filter((_, index) => !calling.has(index));
}

/** Returns the last reply if it has no tool calls: it ended the turn, or the newest cycle; `undefined` otherwise. */
export function finalReply(turn: Turn): Reply | undefined {
  const last = turn.replies.length - 1;
  return operationsOf(turn, last).length > 0 ? undefined : turn.replies[last];
}

/** Returns a turn's issues as a member; nothing where there are none. */
export function issuesOf({ issues }: Pick<Turn, "issues">): { issues?: TurnIssues } {
  return Object.keys(issues).length === 0 ? {} : { issues };
}
