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
  /** Users besides the creator. */
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
   * The agent that the message is for, one of the participants. When absent: the agent that the text mentions as `@id`, else the
   * author of the message that it replies to, else the agent of this user's newest turn that has been answered, else the conversation's first agent.
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
  /** Limits of this turn, beside those of the conversation and its agent. */
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
  /** As at creation. Turns that have begun go on. */
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
   * Changes how turns that overlap go on, and the budget, from now on. A turn that waits begins at once unless the order is
   * `queued`; a turn whose model call no longer fits the budget fails at once.
   */
  update(principal: Principal, input: UpdateConversation): Promise<Result<ConversationView>>;
  /** Fails unless this principal may write to the conversation now: `CONVERSATION_CLOSED` after its end. */
  checkSpeaker(principal: Principal): Promise<Result<null>>;
  startTurn(principal: Principal, input: StartTurn): Promise<Result<StartedTurn>>;
  /**
   * As `startTurn`, but resolves when the turn is over, with the turn as `turn` returns it; a failed turn too. For Workers
   * and programs that want the answer only; actors use the mailbox. `UNAVAILABLE`, with the turn's id, if the turn is not
   * over after 15 minutes: it goes on, and the same key waits for it again.
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
   * Accepts signals from outside, one or several, each as `SignalEnvelope`. Returns the result of each, in their order:
   * a refused signal stops no other. A message that cannot begin its turn yet waits, and is `queued`. Fails as a whole, and accepts
   * none, only if this principal may not write, or for more than 10 000 signals.
   */
  ingest(principal: Principal, signals: unknown): Promise<Result<SignalResult[]>>;
  /**
   * Accepts results of client tools, all or none. Repeating a result changes nothing. `CONFLICT` for a different or late
   * result, or one of a tool that the client does not run; `NOT_FOUND` for an unknown operation.
   */
  submitToolResults(principal: Principal, results: ToolSubmission[]): Promise<Result<SubmittedResult[]>>;
  /**
   * Completes a deferred operation. The handle stands for the right to do so: there is no principal. Repeating a result changes
   * nothing. `CONFLICT` for a different or late result, `NOT_FOUND` for a handle that this conversation did not give out.
   */
  completeOperation(handle: string, outcome: ToolOutcome): Promise<Result<CompletedOperation>>;
  /**
   * Answers the request for approval of a tool's call: an approved one runs with the input that was shown, and the model is told of a
   * denied one. Whoever may read the conversation may answer. The same answer again changes nothing. `CONFLICT` for another one,
   * and for an operation that waits for no approval; `NOT_FOUND` for an unknown one. Returns the recorded answer when
   * it is durable.
   */
  resolveApproval(
    principal: Principal,
    operationId: string,
    answer: ApprovalAnswer,
  ): Promise<Result<ResolvedApproval>>;
  /**
   * Stops a turn: it fails with `CANCELLED`, its model call is aborted, and its tools are cancelled. What was shown stays.
   * Stopping it again returns it unchanged. `CONFLICT` if the turn ended by itself, `NOT_FOUND` for an unknown one. Returns
   * the turn when its end is durable. Whoever may read the conversation may stop it.
   */
  cancelTurn(principal: Principal, turnId: string, options?: StopOptions): Promise<Result<TurnView>>;
  /**
   * Stops the conversation with all its active turns. From then on a message is recorded in a turn that has failed with
   * `CANCELLED`, until `resume`. Stopping it again changes nothing.
   */
  cancel(principal: Principal, options?: StopOptions): Promise<Result<ConversationView>>;
  /**
   * Lets a stopped conversation go on with its next message. `NOT_CANCELLED` if it is not stopped, `FORBIDDEN` for those who may
   * not speak in it.
   */
  resume(principal: Principal, options?: StopOptions): Promise<Result<ConversationView>>;
  /**
   * Adds a user or an agent of the conversation's project. An agent pins its versions, and gets a session of its own. Adding one
   * who takes part changes nothing. `FORBIDDEN` for those who may not speak, and for an agent of other projects; `NOT_FOUND`
   * for an unknown agent; `CONFLICT` if there are too many.
   */
  addParticipant(principal: Principal, participant: NewParticipant): Promise<Result<ConversationView>>;
  /**
   * Removes a user or an agent, whose active turns end. Removing one who does not take part changes nothing. `CONFLICT` for the
   * agent that the conversation began with.
   */
  removeParticipant(principal: Principal, participant: Participant): Promise<Result<null>>;
  /**
   * Ends the conversation for good: its active turns fail with `CANCELLED`, and it takes no further input
   * (`CONVERSATION_CLOSED`). It can still be read. Ending it again changes nothing. `FORBIDDEN` for those who may not speak in it.
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
