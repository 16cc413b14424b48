/**
 * Signals: everything that reaches a conversation. Users and clients send signals from outside; effects report their
 * outcomes as signals too.
 */
import type { ModelError } from "../../../model/error.ts";
import type { ModelReply, RateLimitFeedback } from "../../../model/reply.ts";
import type { Amounts, TokenEstimate } from "../../../model/spending.ts";
import type { RequestTaint, Taint } from "../../../model/taint.ts";
import type { TokenUsage } from "../../../model/usage.ts";
import type { AgentAskBody, AgentOutcome, CallAsk } from "../../../protocol/agent-call.ts";
import type { LeaseAnswer } from "../../../protocol/budget-lease.ts";
import type { Caller } from "../../../protocol/caller-schemas.ts";
import type { Elicited } from "../../../protocol/elicitation.ts";
import type { ToolResult } from "../../../protocol/executor-api.ts";
import type { MemoryOutcome } from "../../../protocol/memory-schemas.ts";
import type { StartTurn, ToolOutcome } from "../../../protocol/requests.ts";
import type { TaskSummary } from "../../../protocol/task-summary.ts";
import type { ErrorData } from "../../../shared/errors.ts";
import type { JsonObject } from "../../../shared/json.ts";
import type { AgentDeleted, Join, Leave, Merged, Update } from "./change-signals.ts";
import type { EraseEntry } from "./erase-entry.ts";
import type { Replaced, Replacement } from "./replacement.ts";
import type { SideCallPlace } from "./side-calls.ts";
import type { Cancel, Complete, Resume } from "./stop-signals.ts";
import type { Recalled, RepliedMessage } from "./turn.ts";

/** A user's message: starts a turn. */
export interface UserMessage {
  type: "conversation.user.message";
  /** The idempotency key as supplied; absent if the client sent none. */
  id?: string;
  /** As supplied; absent if the client sent none. */
  correlationId?: string;
  caller: Caller;
  data: Omit<StartTurn, "idempotencyKey">;
  replied?: RepliedMessage;
  replaces?: Replaced;
  /** That turn, with the parts of it that the new turn needs. */
  replacement?: Replacement;
  /** It waits, and its sender took part when it came. An agent that has left by then begins no turn. */
  member?: true;
}

/** Measurements of one attempt of a model call. Times are milliseconds since the epoch. */
export interface AttemptFacts extends RequestTaint {
  startedAt: number;
  finishedAt: number;
  firstTextAt?: number;
  /** The HTTP status, if any. */
  status?: number;
  /** The provider's own id of the request. */
  requestId?: string;
  /** The provider's count, for failed attempts too. */
  usage?: TokenUsage;
  /** An estimate of the tokens, if the provider did not count them. Absent for a request that the provider refused. */
  estimate?: TokenEstimate;
  /** Present only if a limit was reached. */
  rateLimit?: RateLimitFeedback;
}

interface AttemptAddress {
  turn: number;
  item: number;
  attempt: number;
}

type Attempt = AttemptAddress & {
  facts: AttemptFacts;
  /** The memories recalled for the cycle, if the call has asked. */
  recalled?: Recalled;
};

export type ModelCompleted = { type: "conversation.llm.completed"; reply: ModelReply } & Attempt;

export type ModelFailed = {
  type: "conversation.llm.failed";
  error: ModelError;
  /** Text was streamed and must be withdrawn. */
  streamed: boolean;
} & Attempt;

/** An attempt that could not begin. The model is not to blame, and no other model could be called either. */
export interface ModelNotCalled extends AttemptAddress {
  type: "conversation.llm.not_called";
  error: ErrorData;
}

export interface ToolCompleted {
  type: "conversation.tool.completed";
  turn: number;
  item: number;
  attempt: number;
  result: ToolResult;
  /** As in `ExecutorReport`. */
  transient?: true;
  /** As in `AttemptResult`. */
  continuesAt?: number;
  elicited?: Elicited;
  task?: TaskSummary;
  /** The amounts that the run of a workflow has used. */
  spent?: Amounts;
  /** As in `AttemptResult`. */
  tainted?: true;
  /** The agent of the turn. Present if the Executor reports to the actor that has called it. */
  agentId?: string;
  /** The executor was lost while it ran. */
  lost?: true;
  /** The memories shown to a context hook. */
  recalled?: Recalled;
  taint?: Taint;
}

/** An attempt that ended without a result: it comes later, by a handle. */
export interface ToolDeferred {
  type: "conversation.tool.deferred";
  turn: number;
  item: number;
  attempt: number;
  /** Milliseconds since the epoch. */
  expiresAt: number;
}

/** The end of an attempt that the executor ran. */
export type ToolEnded = ToolCompleted | ToolDeferred;

/** The end of a call of another agent: its answer, its failure, or that it could not be asked. Or a later report of its spending. */
export interface AgentEnded {
  type: "conversation.agent.ended";
  turn: number;
  item: number;
  attempt: number;
  /** The agent that called. */
  agentId: string;
  /** Absent in a later report. */
  outcome?: AgentOutcome;
  /** Use of the call that was not reported before. */
  spent: Amounts;
}

/** The agent or the run of a call waits for a person, or waits no longer. */
export interface WorkHeld {
  type: "conversation.work.held";
  turn: number;
  item: number;
  attempt: number;
  /** Orders the messages of one agent or run. */
  seq: number;
  isHeld: boolean;
}

/** An agent that was called, or one below it, asks a person to approve a call, or was answered. */
export interface AgentAsked {
  type: "conversation.agent.asked";
  turn: number;
  item: number;
  attempt: number;
  ask: CallAsk;
  /** Absent while the call waits. */
  outcome?: NonNullable<AgentAskBody["outcome"]>;
}

export interface ReadersChanged {
  type: "conversation.agent.readers";
  readers: readonly string[];
  /** Number of the list. */
  readersSeq: number;
}

/** The part of a join that its agent brings. */
export type Invitation = Pick<Join, "agent" | "announcement">;

/** The versions of an agent that is to join, or the reason why they have not come. */
export interface AgentInvited {
  type: "conversation.agent.invited";
  turn: number;
  item: number;
  attempt: number;
  outcome: (Invitation & { error?: never }) | { error: ErrorData };
}

/** A node of a run invites an agent, after the agent's versions arrived. */
export interface RunInvited extends Invitation {
  type: "conversation.run.invited";
  agentId: string;
  by: Extract<Caller, { type: "workflow" }>;
  content: string;
  /** The operation of the node, its attempt, and the agents that wait for the run. */
  invited: { operationId: string; attempt: number; path: readonly string[] };
  origin: { turn: number; item: number; attempt: number };
  /** The place of the node in its trace. */
  traceparent?: string;
}

/** The answer of an agent to a request for its budget, or the failure to deliver it. */
export interface BudgetLeased {
  type: "conversation.budget.leased";
  agentId: string;
  /** Number of the request. */
  seq: number;
  answer: LeaseAnswer | { error: ErrorData };
}

/** The answer of an agent to the operations of the extraction `item` of the turn `of`, or the failure to deliver them. */
export interface MemoriesLearned {
  type: "conversation.memories.learned";
  of: number;
  item: number;
  answer: { outcomes: readonly MemoryOutcome[] } | { error: Pick<ErrorData, "code" | "message"> };
}

/** The outcome of an effect, addressed to the turn that called for it. */
export type EffectSignal = AgentInvited | ModelCompleted | ModelFailed | ModelNotCalled | ToolEnded;

/** The result of a cancelled operation with a tool that continued. Its turn is over. */
export interface LateResult {
  type: "conversation.tool.late";
  turn: number;
  item: number;
  /** The session of the turn's agent. */
  sessionId: string;
  operationId: string;
  name: string;
  result: ToolResult;
  /** The amounts that the run of a workflow has used. */
  spent?: Amounts;
}

/** The side call and the attempt that a report answers. */
interface SideAttempt extends SideCallPlace {
  /** The turn that began the call when it ended. */
  begunBy: number;
  attempt: number;
}

export type SideCallCompleted = {
  type: "conversation.side_call.completed";
  reply: ModelReply;
  facts: AttemptFacts;
} & SideAttempt;

/** `facts` is absent if no call was made. */
export type SideCallFailed = {
  type: "conversation.side_call.failed";
  error: Pick<ModelError, "category" | "message" | "retriable" | "retryAfterMs">;
  facts?: AttemptFacts;
} & SideAttempt;

export type SideCallSignal = SideCallCompleted | SideCallFailed;

export interface ClientResult {
  type: "conversation.tool.submitted";
  turn: number;
  item: number;
  outcome: ToolOutcome;
}

export interface ApprovalResolved {
  type: "conversation.approval.resolved";
  turn: number;
  item: number;
  approved: boolean;
  caller: Caller;
  reason?: string;
  /** The answer to a question of a server. It fits the schema of the question. */
  values?: JsonObject;
}

export interface DeferredResult {
  type: "conversation.tool.resolved";
  turn: number;
  item: number;
  outcome: ToolOutcome;
}

/** Fails the operations after their deadline. */
export interface Expiry {
  type: "conversation.cmd.expire";
}

/** Resumes the active turns after the actor lost its effects. */
export interface Recovery {
  type: "conversation.cmd.recover";
  /** The clock was set back: what waits by its time may have run. */
  wasSetBack?: boolean;
}

/** Fails a turn with an outcome that can never be stored. */
export interface Abandon {
  type: "conversation.cmd.abandon";
  turn: number;
  error: ErrorData;
  /** Measurements of the model call with the lost outcome. */
  facts?: AttemptFacts;
}

/** A message that waits until it may start its turn, with its size. */
export interface QueuedMessage {
  signal: UserMessage;
  /** Of its JSON, in bytes (UTF-8). */
  bytes: number;
}

/** Takes messages that cannot begin their turns yet, in order. */
export interface Ingest {
  type: "conversation.cmd.ingest";
  messages: readonly QueuedMessage[];
}

/** A message of the queue that cannot start a turn. */
export interface RefusedMessage {
  /** As supplied; absent if the client sent none. */
  id?: string;
  code: string;
  message: string;
}

/** Removes the first `count` messages, of size `bytes`, from the queue. */
export interface Drained {
  type: "conversation.cmd.drained";
  count: number;
  bytes: number;
  refused: readonly RefusedMessage[];
}

export type Signal =
  | UserMessage
  | EraseEntry
  | Merged
  | Update
  | Cancel
  | Resume
  | Complete
  | Ingest
  | Drained
  | Join
  | Leave
  | EffectSignal
  | LateResult
  | AgentDeleted
  | AgentEnded
  | AgentAsked
  | WorkHeld
  | ReadersChanged
  | RunInvited
  | BudgetLeased
  | MemoriesLearned
  | SideCallSignal
  | ClientResult
  | ApprovalResolved
  | DeferredResult
  | Expiry
  | Recovery
  | Abandon;
