/** The input and the output of planning. Every change of a conversation's state is one of these decisions. */

import type { ActiveTurn } from "../../../library/hooks/hook-inputs.ts";
import type { Cut, WindowSizes } from "../../../memory/session/cut.ts";
import type { Mark, MarkedText, RequestMark } from "../../../model/mark.ts";
import type { ModelReply } from "../../../model/reply.ts";
import type { Amounts, TokenEstimate } from "../../../model/spending.ts";
import type { Gate } from "../../../policy/gate.ts";
import type { AgentAskBody, CallAsk } from "../../../protocol/agent-call.ts";
import type { ApprovalOutcome } from "../../../protocol/approval.ts";
import type { Budget, BudgetExcess } from "../../../protocol/budget.ts";
import type { NewEnvelope } from "../../../protocol/envelope.ts";
import type { ToolResult } from "../../../protocol/executor-api.ts";
import type { Participant } from "../../../protocol/participants.ts";
import type { TaskModelUsage, TaskSummary } from "../../../protocol/task-summary.ts";
import type { Caller, TurnIssues, TurnOrder } from "../../../protocol/views.ts";
import type { ErrorData } from "../../../shared/errors.ts";
import type { Json, JsonObject } from "../../../shared/json.ts";
import type { AttemptOutcome } from "./calls.ts";
import type { Erasure } from "./erase-entry.ts";
import type { LeaseState } from "./lease.ts";
import type { Operation, TaskReservation } from "./operation.ts";
import type { AttemptFacts, LateResult, MemoriesLearned, QueuedMessage, RefusedMessage } from "./signals.ts";
import type { ConversationAgent, ConversationGate, ConversationState, SessionInCompaction } from "./state.ts";
import type { Addition, CallingTurn, DeferredModel, Told, Turn, TurnRequest } from "./turn.ts";

/** The input of planning beside the state and the signal. */
export interface PlanInput {
  /** Milliseconds since the epoch. */
  now: number;
  /** The stem for the ids of a turn that starts. */
  stem: string;
  /** Makes the stem of a turn that an agent starts. */
  newStem?: () => string;
  /** Turns that the message of a user may have (TALK-2); `MAX_AGENT_TURNS` when absent. */
  agentTurns?: number;
  gate: Gate;
  /** Time limit of a tool that a client runs, in milliseconds; ten minutes when absent. */
  clientToolTimeoutMs?: number;
  /** The limits of calls of other agents; the defaults if absent. */
  calls?: CallLimits;
  /** Time limit of an approval, in milliseconds; one day if absent. */
  approvalTimeoutMs?: number;
  /** Returns the sizes of the window that a turn leaves behind; `null` where they are unknown or within `high` tokens. */
  sizesAfter?: (turn: Turn, high: number) => WindowSizes | null;
  /**
   * Estimates the tokens of a turn's next request, including results of turns that this step ended. If absent, the largest request counts.
   */
  requestTokens?: (state: ConversationState, turn: CallingTurn, ended?: readonly Turn[]) => number;
  /** Returns the progress of a turn's running model call. */
  inProgress?: (turn: CallingTurn) => CallInProgress;
  /** Returns the measurements of the running or just ended call for a summary. */
  summaryInProgress?: (running: SessionInCompaction) => AttemptFacts | undefined;
  /** Returns the room for calls in the actor's outbox; when absent, each has room. */
  room?: () => { envelopes: number; bytes: number };
  /** The stored turns. If absent, only active turns are visible. */
  turns?: StoredTurns;
  /** The turns that the present step has ended. The store does not have them yet. */
  ended?: readonly Turn[];
}

/** The limits of calls of other agents. */
export interface CallLimits {
  /** Calls below each other. */
  depth: number;
  /** Calls of one conversation at a time. */
  open: number;
  /** Calls below one conversation at a time, at all levels together. */
  tree: number;
}

/** The turns of a conversation, active or over, as of the last commit. Each read costs statements. */
export interface StoredTurns {
  /** Returns the numbers of a caller's turns after number `n`. */
  after(n: number, caller: Caller): readonly number[];
  /** Returns a turn that is over, with its content; `undefined` for an unknown number. */
  turn(n: number): Turn | undefined;
  /** Returns the newest turns that pass, at most `limit`, descending. It looks at the newest 64 at most. */
  newest(limit: number, passes: (turn: ListedTurn) => boolean): readonly ListedTurn[];
}

/** A turn without its content. */
export type ListedTurn = Pick<Turn, "n" | "agentId" | "caller" | "status" | "exchange" | "silent">;

/** The reason why a mention starts no turn. `bound`: TALK-2. `busy`: too many turns are active. `budget`: its model has no price. */
export type UnaskedReason = "bound" | "busy" | "budget";

/** Decisions about the compaction of a session. */
export type CompactionDecision =
  | ({ type: "START_COMPACTION"; session: string; turn: number; upTo: number; attempt: number } & Cut)
  /** Replace the covered events by the summary. */
  | { type: "COMPACT_SESSION"; session: string; content: string; tokens: number; made: MadeAttempt }
  | {
      type: "RETRY_COMPACTION";
      session: string;
      notBefore: number;
      error: FailureText;
      made?: MadeAttempt;
      /** The charge for an attempt that a crash interrupted. */
      crashed?: TokenEstimate;
    }
  /** Keep the history as it is, and remember that it was tried. */
  | {
      type: "GIVE_UP_COMPACTION";
      session: string;
      error: FailureText;
      made?: MadeAttempt;
      crashed?: TokenEstimate;
    }
  /** End the compaction with its conversation, and remember the attempts that were made. */
  | { type: "STOP_COMPACTION"; session: string; error: FailureText; made?: MadeAttempt }
  /** Reserve tokens for the present attempt. */
  | { type: "RESERVE_COMPACTION"; session: string; reserved: TokenEstimate }
  /** Let the present attempt wait for the agent's answer. */
  | { type: "AWAIT_COMPACTION_LEASE"; session: string };

/** An attempt that called the model. */
export type MadeAttempt = Omit<AttemptOutcome, "isLast">;

/** Decisions about budgets. */
export type BudgetDecision =
  /** Reserve tokens for the present attempt of a turn's model call. */
  | { type: "RESERVE"; turn: number; reserved: TokenEstimate }
  /** Record that the next model call of a turn does not fit a budget. */
  | { type: "EXCEED_BUDGET"; turn: number; excess: BudgetExcess }
  /** Let the present attempt of a turn's model call wait for the agent's answer. */
  | { type: "AWAIT_LEASE"; turn: number }
  /** Charge the attempt that a crash interrupted. */
  | { type: "RECORD_CRASH"; turn: number; estimate: TokenEstimate };

/** Decisions about the leases of agents. */
export type LeaseDecision =
  /** Change the lease, and send its newest request. */
  | { type: "SET_LEASE"; agentId: string; lease: LeaseState }
  /** Take the agent's answer. */
  | { type: "LEASED"; agentId: string; lease: LeaseState };

/** The notes on other turns that a cycle gets: its model, and its context hook. */
export interface CycleNotes {
  besides?: string;
  /** As in `Turn`. */
  besidesMark?: Mark;
  /** As in `Turn`. */
  said?: readonly number[];
  others?: readonly ActiveTurn[];
}

/** Decisions about the context hook of an active turn. */
export type AssemblyDecision =
  /** Call the model with the request that the hook gave. */
  | { type: "ASSEMBLED"; turn: number; request: JsonObject; mark: Mark; told?: Told }
  | { type: "RETRY_ASSEMBLY"; turn: number; notBefore: number; error: FailureText }
  /** Wait until `deadline` for the result of a run that the actor no longer follows. */
  | { type: "INTERRUPT_ASSEMBLY"; turn: number; deadline: number };

/** Decisions about the extraction of the turn `of`, which is over. */
export type ExtractionDecision =
  | { type: "RETRY_EXTRACTION"; of: number; notBefore: number; error: FailureText }
  /** Run again after a crash, or wait until `deadline` for the result of the earlier run. */
  | { type: "RESUME_EXTRACTION"; of: number; deadline?: number }
  /** `now`: when the lost runs of the agent begin once more. */
  | { type: "EXTRACTED"; of: number; operations: Json; tainted?: true; now: number }
  /** Note what the agent has learned. The extraction is over. */
  | ({ type: "NOTE_LEARNED" } & Omit<MemoriesLearned, "type">)
  | { type: "GIVE_UP_EXTRACTION"; of: number; error: FailureText };

/** Decisions about the queue of messages. */
export type QueueDecision =
  | { type: "ENQUEUE"; messages: readonly QueuedMessage[] }
  /** Record how many messages were dropped, with the ids of the first. */
  | { type: "OVERFLOW"; dropped: number; ids: readonly string[] }
  /** End the wait of the first `count` messages. */
  | { type: "DEQUEUE"; count: number; bytes: number; refused: readonly RefusedMessage[] };

export type HookDecision = AssemblyDecision | ExtractionDecision;

/** A failure in a journal entry. */
export type FailureText = Pick<ErrorData, "code" | "message">;

/** A model call that runs, or has just ended. */
export interface CallInProgress {
  /** The text that was shown of its reply. */
  shown: string;
  /** The measurements of its attempt; absent if it does not run. */
  facts?: AttemptFacts;
}

/** Decisions about the conversation rather than an active turn. */
export type ConversationDecision =
  | ({
      type: "START_TURN";
      turn: number;
      /** It begins in this step without a decision of its own. */
      begins?: "at once";
    } & TurnRequest)
  | { type: "SET_ORDER"; order: TurnOrder; by: Caller }
  | { type: "SET_ORCHESTRATION"; on: boolean; by: Caller }
  /** Limit the conversation; `null` removes the limits. */
  | { type: "SET_BUDGET"; budget: Budget | null; by: Caller }
  /** Tell the model of a result that came after its turn was over. */
  | ({ type: "NOTE_LATE_RESULT" } & Omit<LateResult, "type" | "spent">)
  /** Count the use of models by a task. The summary belongs to a hook, because only this entry can record its attempt. */
  | {
      type: "CHARGE_TASK";
      turn: number;
      item: number;
      agentId: string;
      spent: Amounts;
      /** The use that providers counted; absent if unknown. */
      models?: TaskModelUsage;
      hook?: { summary: TaskSummary; isSuccess: boolean };
      /** The run of a workflow reports it when its turn is over: the commit needs an entry of its own. */
      isLate?: true;
    }
  /** Record the progress of a task after its turn was stopped. */
  | { type: "NOTE_STOPPED_TASK"; turn: number; item: number; task: TaskSummary }
  /** Change the reservation of an attempt: of a call, or of a hook. */
  | ({ type: "RESERVE_TASK"; turn: number; item: number } & TaskReservation)
  /** Charge what a call of another agent has used up. */
  | { type: "CHARGE_CALL"; turn: number; item: number; agentId: string; spent: Amounts; failed?: boolean }
  | { type: "END_CONVERSATION"; status: "completed" | "failed"; by: Caller; reason?: string }
  | {
      type: "SET_GATE";
      gate: ConversationGate;
      by: Caller;
      reason?: string;
      correlationId?: string;
      causeId?: string;
    }
  /** Remember a signal that started no turn. */
  | { type: "SEE_SIGNAL"; caller: Caller; key: string; correlationId?: string }
  /** Add a participant: an agent that was never one with its versions. */
  | {
      type: "ADD_PARTICIPANT";
      participant: Participant;
      agent?: ConversationAgent;
      /** The past that the agent is shown. */
      handoff?: MarkedText;
      by: Caller;
    }
  | { type: "REMOVE_PARTICIPANT"; participant: Participant; by: Caller; isDeleted?: true }
  | { type: "ERASE_ENTRY"; erasure: Erasure; by: Caller }
  /** Let these users read the conversation of a call, and no others. */
  | { type: "SET_READERS"; readers: readonly string[]; readersSeq: number }
  /** Send an envelope to another actor, beside a decision that gives a journal entry. */
  | { type: "SEND"; envelope: NewEnvelope };

export type AgentDecision =
  | ConversationDecision
  | LeaseDecision
  /** Keep the turn waiting for those before it. */
  | { type: "QUEUE_TURN"; turn: number }
  /** Begin a turn's first cycle. `besides` tells the model of the other active turns, `others` the context hook. */
  | ({ type: "BEGIN_TURN"; turn: number } & CycleNotes)
  /** Withdraw the reply, tell the model of the newer messages, and call it again, into the same message. */
  | ({ type: "RECONSIDER"; turn: number } & Omit<Addition, "after">)
  /** Call the model, into a new message. A `final` call gets no tools. */
  | { type: "CALL_LLM"; turn: number; final: boolean }
  /** Record the outcome of an attempt of the present call. */
  | ({ type: "RECORD_ATTEMPT"; turn: number; told?: Told } & AttemptOutcome)
  /** Repeat a failed attempt, into the same message. `reset` withdraws text that was streamed, `halve` cuts the history. */
  | { type: "RETRY_LLM"; turn: number; error: ErrorData; notBefore: number; reset: boolean; halve?: true }
  /** Call another model of the chain, into the same message. `to` is the model's name. */
  | {
      type: "FALL_BACK";
      turn: number;
      error: ErrorData;
      to: string;
      model: DeferredModel;
      /** The models that the call may return to. */
      deferred: readonly DeferredModel[];
      reset: boolean;
    }
  /** Withdraw an answer that does not fit its schema, and call the model again, into the same message. */
  | { type: "REPAIR_OUTPUT"; turn: number; text: string; problem: string }
  /** Keep a reply that its provider paused, and have the model continue it, in the same message. */
  | { type: "CONTINUE_REPLY"; turn: number; reply: ModelReply }
  /** Record a reply that calls tools. `heard` as in `Turn`. */
  | { type: "RECORD_MOVE"; turn: number; reply: ModelReply; heard?: number }
  | { type: "DISPATCH_TASK"; turn: number; operation: Omit<Operation, "item" | "reply"> }
  /** Show that an agent, called by an operation, asks a person. */
  | { type: "NOTE_ASK"; turn: number; item: number; ask: CallAsk }
  /** Show the answer of a person, or its timeout. */
  | {
      type: "NOTE_ANSWER";
      turn: number;
      item: number;
      ask: CallAsk;
      outcome: NonNullable<AgentAskBody["outcome"]>;
    }
  /** Note that the agent or the run of an operation waits for a person, or waits no longer. */
  | { type: "NOTE_HOLD"; turn: number; item: number; seq: number; isHeld: boolean }
  /** Call agents, each with its part of the budget, and of the calls that its tree may have open; start the runs of workflows. */
  | {
      type: "DISPATCH_CALLS";
      turn: number;
      calls: readonly { item: number; calls?: number; budget?: Budget }[];
    }
  /** Wait until `deadline` for the result of a run that the actor no longer follows. */
  | { type: "INTERRUPT_TASK"; turn: number; item: number; deadline: number }
  /** Repeat a failed attempt of an operation, no earlier than `notBefore`. */
  | {
      type: "RETRY_TASK";
      turn: number;
      item: number;
      error: FailureText;
      notBefore: number;
      task?: TaskSummary;
    }
  /** Wait until `deadline` for a result by a handle. */
  | { type: "DEFER_TASK"; turn: number; item: number; deadline: number }
  /** End the wait of an operation for a person. An approved one starts, any other needs a result. */
  | {
      type: "RESOLVE_APPROVAL";
      turn: number;
      item: number;
      outcome: ApprovalOutcome;
      by?: Caller;
      reason?: string;
    }
  /** Give an operation its result. `isUnused`: the call was counted, and did not run. */
  | {
      type: "RESUME_FROM_TOOL";
      turn: number;
      item: number;
      result: ToolResult;
      task?: TaskSummary;
      isUnused?: true;
    }
  /** End the cycle: background operations are left. `isIdle`: the next cycle does not begin at once. */
  | { type: "MARK_WAITING"; turn: number; isIdle: boolean }
  /** Begin a further cycle, with the results of background operations. `besides` as in `BEGIN_TURN`. */
  | ({ type: "BEGIN_CYCLE"; turn: number; final: boolean } & CycleNotes)
  /** Wait: a person must approve a call first. */
  | { type: "WAIT_FOR_PERSON"; turn: number }
  /** Wait: only results from a client are missing. */
  | { type: "WAIT_FOR_CLIENT"; turn: number }
  /** Record the reply that ends the turn. */
  /** `notice`: the text is the platform's. */
  | { type: "APPEND_MESSAGE"; turn: number; reply: ModelReply; notice?: true; issues?: TurnIssues }
  | { type: "COMPLETE_TURN"; turn: number }
  /** End the call of a turn without a message; `silent` where that ends the turn. */
  | { type: "STAY_SILENT"; turn: number; silent?: true }
  /** Reduce the budget of a turn. The rest goes to a turn that it starts. */
  | { type: "LOWER_BUDGET"; turn: number; budget: Budget }
  /** Record that a mention starts no turn. */
  | { type: "LEAVE_UNASKED"; turn: number; agentId: string; reason: UnaskedReason }
  /** End the turn. `shown` is the text of its message in progress; `by` and `reason` describe a stop. */
  | {
      type: "FAIL_TURN";
      turn: number;
      error: ErrorData;
      shown?: string;
      /** The mark of the request that `shown` answers. */
      mark?: RequestMark;
      by?: Caller;
      reason?: string;
      /** Its context hook has ended, and is charged. */
      isCharged?: true;
    }
  /** Continue after a crash, no earlier than `notBefore`. `reset` withdraws text that may have been streamed. */
  | { type: "RESUME_TURN"; turn: number; notBefore: number; reset: boolean }
  | CompactionDecision
  | QueueDecision
  | HookDecision
  | BudgetDecision;
