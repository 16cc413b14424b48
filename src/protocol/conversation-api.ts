/** The RPC interface of a `Conversation` actor. */

import type { OutputSpec, ToolSpec } from "../model/context.ts";
import type { ContextMessage } from "../model/messages.ts";
import type { Content } from "../shared/content.ts";
import type { Result } from "../shared/errors.ts";
import type { LocationHint } from "../shared/location.ts";
import type { Page, PageOptions } from "../shared/page.ts";
import type { Principal } from "../shared/principal.ts";
import type { ApprovalAnswer } from "./approval.ts";
import type { Budget } from "./budget.ts";
import type { JournalPageOptions } from "./journal.ts";
import type { ConversationKeepingApi } from "./keeping-api.ts";
import type { NewParticipant, Participant } from "./participants.ts";
import type { ToolChoice, ToolOutcome, ToolSubmission } from "./requests.ts";
import type { SignalResult, StartedTurn } from "./signals.ts";
import type { TracePart } from "./trace.ts";
import type {
  ApprovalView,
  ConversationView,
  JournalEntryView,
  MessageView,
  TurnOrder,
  TurnSummary,
  TurnView,
} from "./views.ts";

export interface CreateConversation {
  id: string;
  agentId: string;
  title?: string;
  /** The agent's first project when absent. */
  projectId?: string;
  /** Further users. The creator is always a user. */
  users?: string[];
  /**
   * Messages from before this conversation: the model sees them, the transcript does not show them. At most 1 000 messages
   * and 1 MiB, with role, content, name and calls only; the result of each call must follow it.
   */
  history?: ContextMessage[];
  /** The order of turns that overlap; `parallel` when absent. */
  turns?: TurnOrder;
  /** Limits of all turns together. */
  budget?: Budget;
  /** `false`: messages are recorded, and no model answers them; `true` when absent. */
  orchestration?: boolean;
  /** The region that the conversation was asked to begin in, to be shown. The look-up of its actor has the same. */
  locationHint?: LocationHint;
  /** `false` keeps the conversation out of the lists of the directory and of its agent. Its id still finds it. */
  listed?: boolean;
  /**
   * Identifies the creating request. Repeating the request returns the conversation; another request with the same id is
   * `IDEMPOTENCY_CONFLICT`. Without a fingerprint, an id that is taken is `CONFLICT`.
   */
  fingerprint?: string;
}

export interface StartTurn {
  content: Content;
  replyToMessageId?: string;
  /**
   * The participating agent that receives the message. Default: the agent that the text mentions as `@id`. Otherwise
   * the author of the message that it replies to, then the agent of this user's newest answered turn, then the
   * conversation's first agent.
   */
  to?: string;
  /** Becomes the signal's id: the same key and body return the same turn. */
  idempotencyKey?: string;
  /** Requires an answer in JSON of this schema. */
  output?: OutputSpec;
  /**
   * Tools that the client runs itself: the turn waits for their results. At most 64 with 256 KiB, with names that differ
   * from each other and from the agent's tools.
   */
  tools?: ToolSpec[];
  /**
   * `none` forbids tool calls in the whole turn. `required` and a name force a call in the model's first reply; later replies are free.
   * `auto` when absent.
   */
  toolChoice?: ToolChoice;
  /** The most tokens of each reply of the model. A lower limit of the model profile replaces it. */
  maxOutputTokens?: number;
  /** The model calls at most one tool in each reply. A reply may have several calls when absent. */
  singleCalls?: true;
  /** Runs `async` tools as others: the sender gets one answer, with all results. */
  foreground?: true;
  /** Limits of this turn. The limits of the conversation and the agent also apply. */
  budget?: Budget;
  /** The content has text from elsewhere, such as a mail or a page: a memory that comes from it is tainted (RECALL-8). */
  untrusted?: true;
  /** The place of the sender in a trace, as in the header of W3C Trace Context. An invalid one counts as absent. */
  traceparent?: string;
}

/** A deferred operation with its result, accepted now or before. */
export interface CompletedOperation {
  operationId: string;
  status: "completed" | "failed";
}

/** A result that was accepted, now or before. */
export interface SubmittedResult {
  operationId: string;
  turnId: string;
}

/** A call with its approval, or the denial of it, given now or before. */
export interface ResolvedApproval {
  operationId: string;
  turnId: string;
  approval: ApprovalView;
}

export interface SubscribeOptions {
  /** Continues after this entry; begins with a snapshot when absent. */
  from?: number;
  /** Limits the stream to this turn's frames, without a snapshot. It ends with the turn. */
  turnId?: string;
  /** With `turnId`: the stream also ends where the turn waits for work in the background, now. */
  untilWaiting?: boolean;
  /** The framing of the bytes: server-sent events, or one JSON text per line. */
  encoding: "sse" | "ndjson";
}

export interface UpdateConversation {
  turns?: TurnOrder;
  /** As at creation. Active turns keep their setting. */
  orchestration?: boolean;
  /** Replaces the conversation's limits; `null` removes them. */
  budget?: Budget | null;
}

export interface StopOptions {
  /** Kept in the journal; at most 500 characters. */
  reason?: string;
}

export interface ConversationApi extends ConversationKeepingApi {
  create(principal: Principal, input: CreateConversation): Promise<Result<ConversationView>>;
  view(principal: Principal): Promise<Result<ConversationView>>;
  /**
   * Changes the turn order and the budget. If the order is no longer `queued`, waiting turns begin at once. A turn
   * fails at once if its model call no longer fits the budget.
   */
  update(principal: Principal, input: UpdateConversation): Promise<Result<ConversationView>>;
  /** Fails unless this principal may write to the conversation now: `CONVERSATION_CLOSED` after its end. */
  checkSpeaker(principal: Principal): Promise<Result<null>>;
  startTurn(principal: Principal, input: StartTurn): Promise<Result<StartedTurn>>;
  /**
   * Starts a turn like `startTurn` and resolves with the turn when it is over, even if it failed. Use it in Workers
   * and programs that need only the answer. Actors use the mailbox. Fails with `UNAVAILABLE` and the turn's id if the
   * turn is not over after 15 minutes. The turn continues, and the same key waits for it again.
   */
  runTurn(principal: Principal, input: StartTurn): Promise<Result<TurnView>>;
  /** As `startTurn`, with a stream of the turn's frames that ends with the turn, or as `SubscribeOptions` say. */
  streamTurn(
    principal: Principal,
    input: StartTurn,
    encoding: SubscribeOptions["encoding"],
    untilWaiting?: boolean,
  ): Promise<Result<StartedTurn & { frames: ReadableStream<Uint8Array> }>>;
  /**
   * Accepts external signals, each as `SignalEnvelope`. Returns the result of each signal in the same order. A
   * refused signal does not stop the others. The result is `queued` if the message cannot begin its turn yet. The
   * whole request fails if the principal may not write, or for more than 10 000 signals.
   */
  ingest(principal: Principal, signals: unknown): Promise<Result<SignalResult[]>>;
  /**
   * Accepts results of client tools atomically. Repeated results are no-ops. `CONFLICT` for a different or late
   * result, or if the client does not run the tool. `NOT_FOUND` for an unknown operation.
   */
  submitToolResults(principal: Principal, results: ToolSubmission[]): Promise<Result<SubmittedResult[]>>;
  /**
   * Completes a deferred operation. The handle is the authorization, so there is no principal. Repeated results are
   * no-ops. `CONFLICT` for a different or late result. `NOT_FOUND` for a handle that this conversation did not issue.
   */
  completeOperation(handle: string, outcome: ToolOutcome): Promise<Result<CompletedOperation>>;
  /**
   * Answers the approval request of a tool call. An approved call runs with the shown input. If the call is denied,
   * the model receives an error. Every reader of the conversation may answer. Repeating the same answer is a no-op.
   * `CONFLICT` for a different answer, or if the operation waits for no approval. `NOT_FOUND` for an unknown
   * operation. Resolves with the recorded answer when it is durable.
   */
  resolveApproval(
    principal: Principal,
    operationId: string,
    answer: ApprovalAnswer,
  ): Promise<Result<ResolvedApproval>>;
  /**
   * Stops a turn. The turn fails with `CANCELLED`, its model call is aborted, and its tools are cancelled. Shown text
   * remains. Stopping it again returns the unchanged turn. `CONFLICT` if the turn ended without a stop. `NOT_FOUND`
   * for an unknown turn. Resolves with the turn when its end is durable. Every reader of the conversation may stop
   * it.
   */
  cancelTurn(principal: Principal, turnId: string, options?: StopOptions): Promise<Result<TurnView>>;
  /**
   * Stops the conversation and all its active turns. Until `resume`, each new message is recorded in a turn that
   * fails with `CANCELLED`. Repeating it is a no-op.
   */
  cancel(principal: Principal, options?: StopOptions): Promise<Result<ConversationView>>;
  /**
   * Resumes a stopped conversation with its next message. `NOT_CANCELLED` if it is not stopped. `FORBIDDEN` if the
   * principal may not write.
   */
  resume(principal: Principal, options?: StopOptions): Promise<Result<ConversationView>>;
  /**
   * Adds a user, or an agent of the conversation's project. An agent pins its versions and gets its own session.
   * Adding a current participant is a no-op. `FORBIDDEN` if the principal may not write, or for an agent of other
   * projects. `NOT_FOUND` for an unknown agent. `CONFLICT` if there are too many participants.
   */
  addParticipant(principal: Principal, participant: NewParticipant): Promise<Result<ConversationView>>;
  /**
   * Removes a user or an agent, and ends an agent's active turns. It is a no-op if the participant is absent.
   * `CONFLICT` for the conversation's first agent.
   */
  removeParticipant(principal: Principal, participant: Participant): Promise<Result<null>>;
  /**
   * Closes the conversation permanently. Its active turns fail with `CANCELLED`. Further input fails with
   * `CONVERSATION_CLOSED`. Reading stays possible. Repeating it is a no-op. `FORBIDDEN` if the principal may not
   * write.
   */
  complete(principal: Principal, options?: StopOptions): Promise<Result<ConversationView>>;
  messages(principal: Principal, options?: PageOptions): Promise<Result<Page<MessageView>>>;
  turns(principal: Principal, options?: PageOptions): Promise<Result<Page<TurnSummary>>>;
  turn(principal: Principal, turnId: string): Promise<Result<TurnView>>;
  /**
   * Returns the conversation's part in the trace of a turn, of its first turn when the id is absent. `invitedBy` is the id of a run: the part
   * then contains the turns that the run invited, and the turns after them.
   */
  traceTurn(principal: Principal, turnId?: string, invitedBy?: string): Promise<Result<TracePart>>;
  /** With `types`, a page may be empty and have a `nextCursor`: each page looks at a bounded number of entries. */
  journal(principal: Principal, options?: JournalPageOptions): Promise<Result<Page<JournalEntryView>>>;
  /** Returns a stream of frames as bytes, or an error result instead of a stream. */
  subscribe(principal: Principal, options: SubscribeOptions): Promise<Result<ReadableStream<Uint8Array>>>;
}
