/** The views of resources that servers answer with, over HTTP, in frames and by RPC. Times are ISO 8601 UTC. */
import type { z } from "zod";
import type { Content } from "../shared/content.ts";
import type { ErrorData } from "../shared/errors.ts";
import type { JsonValue } from "../shared/json.ts";
import type { Jurisdiction, LocationHint } from "../shared/location.ts";
import type { AgentCallView, CalledByView } from "./agent-call.ts";
import type { Budget, SpendingView } from "./budget.ts";
import type { turnCaller, turnIssues } from "./caller-schemas.ts";
import type { Envelope } from "./envelope.ts";
import type { approval, move, wireError } from "./move-schemas.ts";
import type { Participant } from "./participants.ts";
import type { TaskView } from "./task-summary.ts";
import type { agentUsage, providerCall, turnTokens, usage } from "./usage-schemas.ts";

export type WireError = z.infer<typeof wireError>;

/** An uploaded image or file. */
export interface AttachmentView {
  id: string;
  mediaType: string;
  /** Bytes. */
  size: number;
  name?: string;
  /** Names the attachment in parts of content, in its own conversation. */
  url: string;
}

/**
 * The order of turns that overlap. `parallel`: at the same time. `queued`: one after another, in the order of their messages.
 * `interrupt`: a new message stops the active turns.
 */
export type TurnOrder = "parallel" | "queued" | "interrupt";

export interface ConversationView {
  id: string;
  title: string | null;
  status: "active" | "waiting" | "completed" | "failed";
  gate: "idle" | "running" | "cancelled";
  turns: TurnOrder;
  /** `false` where messages are recorded and no model answers them; absent otherwise. */
  orchestration?: false;
  /** Messages that are accepted and have not begun their turns; absent where there are none. */
  queued?: number;
  agentId: string;
  projectId: string;
  /** The jurisdiction that its id names; absent where it names none. */
  jurisdiction?: Jurisdiction;
  /** The region that it was asked to begin in. */
  locationHint?: LocationHint;
  participants: readonly Participant[];
  /** The agent whose call opened the conversation, and the one in which it waits; absent where a user opened it. */
  calledBy?: CalledByView;
  createdAt: string;
  /** The smallest limits of the conversation and of its agent; absent where there are none. */
  budget?: Budget;
  /** What is left of them. Running calls count when they are over. */
  budgetLeft?: Budget;
  /** What the conversation has used up since its beginning. Present where `usage` is. */
  spent?: SpendingView;
  /** Present where the conversation itself was requested; absent in snapshots. */
  usage?: UsageView;
}

/** A conversation in a list: without what changes with every turn. */
export type ConversationSummary = Omit<
  ConversationView,
  "status" | "gate" | "turns" | "usage" | "budget" | "budgetLeft" | "spent"
>;

/** The usage of model calls, failed attempts included. */
export type UsageView = z.infer<typeof usage>;

/** The total usage of an agent's conversations. */
export type AgentUsage = z.infer<typeof agentUsage>;

export interface MessageView {
  id: string;
  turnId: string;
  role: "user" | "agent";
  content: Content;
  createdAt: string;
  agentId?: string;
  clientId?: string;
  /** The run that sent the message, with the role `user`. */
  runId?: string;
  /** The turn ended while the message streamed; `content` is what was shown. */
  stopped?: true;
  /** The text is a notice of the platform, because the model gave no text in the turn's last call. */
  notice?: true;
}

/** The caller that started a turn: a user, another agent in one of its turns, or a node of a run. `node` is absent in turns of 0.3. */
export type Caller = z.infer<typeof turnCaller>;

export interface TurnSummary {
  id: string;
  status: "active" | "completed" | "failed";
  agentId: string;
  /** The agent or the run that started the turn; absent where a user did. A `TurnView` has the caller of every turn. */
  caller?: Caller;
  createdAt: string;
  completedAt: string | null;
  /**
   * `queued`: the turn waits for those before it. Its place is its place among the queued turns, by creation. `waiting`: it waits
   * for nothing but results of operations, in the background (the agent has answered) or deferred, and goes on by itself; or it
   * waits for a person to approve a call.
   */
  phase?: "queued" | "waiting";
  error?: WireError;
  /** An agent that another one gave the word had nothing to add: the turn completed without a message. */
  silent?: true;
  issues?: TurnIssues;
  /** The data of the answer, where the turn requested data. Absent in lists of turns. */
  output?: JsonValue;
  /** The amounts that the turn has used up so far, with estimates where no provider counted. Absent in lists of turns. */
  spent?: SpendingView;
}

export type TurnIssues = z.infer<typeof turnIssues>;

export interface TurnView extends TurnSummary {
  conversationId: string;
  /** The text of the agent's message; `null` unless the turn is completed. */
  answer: string | null;
  caller: Caller;
  input: Content;
  /** Common to everything that follows from the message. */
  correlationId: string;
  /** The message that the turn answers; for a turn that an agent started by a mention, the message of that agent. */
  userMessageId: string;
  agentMessageIds: string[];
  replyToMessageId: string | null;
  contextAssemblyRunId: string | null;
  memoryExtractionRunId: string | null;
  /** Milliseconds from creation to completion; `null` while active. */
  latencyMs: number | null;
  /** Tokens of all model calls, failed attempts included; `null` if no provider counted. */
  usage: TurnUsage | null;
  /** US dollars; `null` if no called model has prices. */
  cost: number | null;
  /** What the turn has used up, with estimates where no provider counted. */
  spent: SpendingView;
  /** The turn's own limits; absent where there are none. */
  budget?: Budget;
  /** The model calls in order. Empty for turns of releases that kept no records. */
  calls: CallView[];
  /** The memories that its model was told of or has recalled, with the versions that it saw; absent where there are none. */
  memories?: { id: string; version: number }[];
  /** The memory of its agent did not answer, and the turn went on without: a code of errors. */
  memoryError?: string;
  moves: MoveView[];
}

/** The record of a model call, with types that cross RPC. */
export type CallView = z.infer<typeof providerCall>;

/** Token counts as reported by the providers; an optional one is present if any provider reported it. */
export type TurnUsage = NonNullable<z.infer<typeof turnTokens>>;

/** One iteration of a turn's loop. */
export type MoveView = z.infer<typeof move>;

/** The approval of an operation. The rule is present while the operation waits, if the tool has one. */
export type ApprovalView = z.infer<typeof approval>;

export interface OperationView {
  id: string;
  turnId: string;
  name: string;
  /** The model's input; of a call that needs a person's approval, what it runs with. */
  input: unknown;
  /** The model's own input of such a call; absent where the tool does not map it. */
  modelInput?: unknown;
  /** The task or the workflow that such a call runs, as `library/id`; absent where the tool names none. */
  target?: string;
  /** A client runs the tool: the turn waits for its result. */
  client?: true;
  /** The agent that answers the call. */
  agent?: AgentCallView;
  /** The run of a workflow that the call has started, in its present or last attempt. Its starter, and operators, may read it. */
  runId?: string;
  /** The operation runs in the background: the agent goes on meanwhile. */
  async?: true;
  /** The result comes later, by a handle: until this time, ISO 8601 UTC. Absent unless the call is deferred now. */
  deferredUntil?: string;
  /** The run or the agent of the call, or work below it, waits for a person. */
  held?: true;
  /** Number of the present or last attempt; 1 when absent. */
  attempt?: number;
  /** Present if the call needs a person's approval. */
  approval?: ApprovalView;
  /** `awaiting_approval`: the call runs once a person approves it. */
  state: "awaiting_approval" | "running" | "completed" | "failed" | "cancelled";
  /** The record of the last attempt, for a task of steps. */
  task?: TaskView;
  result?: unknown;
  error?: WireError;
}

export interface JournalEntryView {
  seq: number;
  type: string;
  time: string;
  turnId?: string;
  messageId?: string;
  operationId?: string;
  /** Common to everything that follows from one signal; absent on entries that follow from none. */
  correlationId?: string;
  /** The id of the signal or the message that the entry follows from; absent where it is not known. */
  causeId?: string;
  data?: JsonValue;
}

export interface Snapshot {
  conversation: ConversationView;
  /** The turns of `messages`, and every active one. */
  turns: TurnSummary[];
  /** The last page. HTTP serves older ones. */
  messages: MessageView[];
  partials: { messageId: string; turnId: string; text: string }[];
  operations: OperationView[];
}

/** A dead letter as operators see it. */
export interface DeadLetterView extends Pick<Envelope, "type" | "from" | "to" | "inReplyTo"> {
  /** The operation's id. */
  id: string;
  status: "failed" | "unknown";
  error: ErrorData;
  attempts: number;
  /** Without secrets; `null` if larger than 16 KiB. */
  body: JsonValue;
  sentAt: string;
  diedAt: string;
  /** The time at which a late result arrived. */
  repliedAt?: string;
}
