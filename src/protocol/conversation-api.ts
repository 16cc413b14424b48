/** The RPC interface of a `Conversation` actor. */
import type { Result } from "../shared/errors.ts";
import type { WorkspaceLink } from "../shared/identifiers.ts";
import type { Json } from "../shared/json.ts";
import type { Page, PageOptions } from "../shared/page.ts";
import type { Principal } from "../shared/principal.ts";
import type {
  CreateConversation,
  ForkConversation,
  SubscribeOptions,
  UpdateConversation,
} from "./conversation-requests.ts";
import type {
  CompletedOperation,
  ConversationView,
  JournalEntryView,
  MessageView,
  ResolvedApproval,
  SubmittedResult,
  TurnSummary,
  TurnView,
} from "./conversation-schemas.ts";
import type { ConversationDataApi } from "./data-api.ts";
import type { ActorAddress } from "./envelope.ts";
import type { JournalPageOptions } from "./journal.ts";
import type { NewParticipant, Participant } from "./participants.ts";
import type { Projection, ProjectionOptions } from "./projection-schemas.ts";
import type { TurnPrompt } from "./prompt.ts";
import type { CauseChain, CauseOptions, Incident, IncidentOptions } from "./record-schemas.ts";
import type { TurnRecording, TurnReplay } from "./recording.ts";
import type {
  ApprovalAnswer,
  CallAnswers,
  EditTurn,
  RegenerateTurn,
  StartTurn,
  StopOptions,
  ToolOutcome,
  ToolSubmission,
} from "./requests.ts";
import type { SignalResult, StartedTurn } from "./signals.ts";
import type { SubscribeActor } from "./subscribers.ts";
import type { TracePart } from "./trace.ts";
import type { NewWebhook, WebhookView } from "./webhooks.ts";
import type { MergeNote } from "./workspace.ts";

/**
 * A page of conversations. `sort` is `created` by default; `activity` lists the latest first by default. `pinned` and `archived` filter by
 * the marks of the caller. Without `archived`, the list omits the archived conversations.
 */
export type ConversationListOptions = PageOptions & {
  sort?: "created" | "activity";
  pinned?: boolean;
  archived?: boolean;
};

export interface ConversationApi extends ConversationDataApi {
  create(principal: Principal, input: CreateConversation): Promise<Result<ConversationView>>;
  /** Checks the id of a conversation before its creation, and its first message. `CONFLICT` if the conversation was deleted. */
  checkFirst(principal: Principal, input?: StartTurn): Promise<Result<null>>;
  view(principal: Principal): Promise<Result<ConversationView>>;
  /** Returns the workspace of the conversation, and its project. */
  workspace(principal: Principal): Promise<Result<WorkspaceLink & { id: string; project: string }>>;
  /**
   * Creates a conversation with the history up to a turn that is over, by default the turn that completed last. `CONFLICT` if the turn is
   * not over. The same request again returns the same fork. `IDEMPOTENCY_CONFLICT` for the same id with another turn.
   */
  fork(principal: Principal, input: ForkConversation): Promise<Result<ConversationView>>;
  /**
   * Changes the turn order and the budget. If the order is no longer `queued`, waiting turns begin at once. A turn
   * fails at once if its model call no longer fits the budget.
   */
  update(principal: Principal, input: UpdateConversation): Promise<Result<ConversationView>>;
  /** Fails unless this principal may write to the conversation now: `CONVERSATION_CLOSED` after its end. */
  checkSpeaker(principal: Principal): Promise<Result<null>>;
  /** Notes a merge of the conversation's branch in the journal, also after its end. For authors who may read the conversation. */
  noteMerge(principal: Principal, merged: MergeNote): Promise<Result<null>>;
  startTurn(principal: Principal, input: StartTurn): Promise<Result<StartedTurn>>;
  /**
   * Starts a turn like `startTurn` and resolves with the turn when it is over, even if it failed. Use it in Workers
   * and programs that need only the answer. Actors use the mailbox. Fails with `UNAVAILABLE` and the turn's id if the
   * turn is not over after 15 minutes. The turn continues, and the same key waits for it again.
   */
  runTurn(principal: Principal, input: StartTurn): Promise<Result<TurnView>>;
  /**
   * Starts a turn that answers the message of a turn again. It takes over the tool calls with their results. The old turn and the later turns
   * leave the context. `CONFLICT` if they are not over, or if the turn was replaced.
   */
  regenerate(principal: Principal, turnId: string, input?: RegenerateTurn): Promise<Result<StartedTurn>>;
  /** Starts a turn with an edited message in place of a turn, otherwise like `regenerate`. It takes over no calls. */
  edit(principal: Principal, turnId: string, input: EditTurn): Promise<Result<StartedTurn>>;
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
   * Shows the progress of a deferred operation to readers. Returns whether the operation still waits for its result. `NOT_FOUND` for a
   * handle that this conversation did not issue.
   */
  reportOperation(handle: string, progress?: Json): Promise<Result<boolean>>;
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
  /** Reports whether a request for approval has this answer. Fails as `resolveApproval`. Takes no answer, but commits an expiry that is due. */
  hasApproval(principal: Principal, operationId: string, answer: ApprovalAnswer): Promise<Result<boolean>>;
  /**
   * Takes answers to requests for approval and results of client tools that come together. It checks all of them before the first has an effect.
   * Fails as `resolveApproval` and `submitToolResults`. `IDEMPOTENCY_CONFLICT` for a key that came with answers to other requests. The
   * answers to requests of agents below come first. Resolves with the operations that did not have their answer before.
   */
  answerCalls(principal: Principal, answers: CallAnswers): Promise<Result<string[]>>;
  /** Returns the operations that this principal answered with a key; empty for a new key. */
  answeredWith(principal: Principal, key: string): Promise<Result<string[]>>;
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
  /**
   * Returns the request of a model call of a turn, by default of the newest. For operators. Throws `FORBIDDEN`, `NOT_FOUND`, and `CONFLICT`
   * before a model call.
   */
  promptOfTurn(principal: Principal, turnId: string, call?: number): Promise<Result<TurnPrompt>>;
  /** Returns an ended turn as a fixture. */
  recordTurn(principal: Principal, turnId: string): Promise<Result<TurnRecording>>;
  /** Replays an ended turn without a call. */
  replayTurn(principal: Principal, turnId: string): Promise<Result<TurnReplay>>;
  /** With `types`, a page may be empty and have a `nextCursor`: each page looks at a bounded number of entries. */
  journal(principal: Principal, options?: JournalPageOptions): Promise<Result<Page<JournalEntryView>>>;
  /**
   * Returns a projection of the journal by its name. `options` are for the timelines, which are lists. `NOT_FOUND` for an unknown name. `UNAVAILABLE`,
   * retriable, if a long journal is not read to its end yet.
   */
  projection(principal: Principal, name: string, options?: ProjectionOptions): Promise<Result<Projection>>;
  /** Returns the chain of causes from an entry of the journal. `NOT_FOUND` for an unknown number. */
  causes(principal: Principal, seq: number, options?: CauseOptions): Promise<Result<CauseChain>>;
  /** Returns a page of the incidents in the journal. A page may be empty and have a `nextCursor`. */
  incidents(principal: Principal, options?: IncidentOptions): Promise<Result<Page<Incident>>>;
  /** Returns a stream of frames as bytes, or an error result instead of a stream. */
  subscribe(principal: Principal, options: SubscribeOptions): Promise<Result<ReadableStream<Uint8Array>>>;
  /**
   * Subscribes an actor of the conversation's tenant. Its mailbox gets the durable frames after `from`, each once and in order, as
   * envelopes of type `CONVERSATION_FRAMES`. Without `from`, a new subscription begins after the newest entry, and a known subscription
   * keeps its cursor. Returns the cursor. `FORBIDDEN` for an actor of another tenant. `CONFLICT` for too many subscribers.
   */
  subscribeActor(principal: Principal, input: SubscribeActor): Promise<Result<{ cursor: number }>>;
  /** Ends the subscription of an actor. It is a no-op without one. `FORBIDDEN` if another user subscribed the actor. */
  unsubscribeActor(principal: Principal, to: ActorAddress): Promise<Result<null>>;
  /**
   * Adds a webhook to a turn, or replaces it: its address gets the states of the turn. `NOT_FOUND` unless the principal takes part. `CONFLICT` for
   * too many webhooks. `UNSUPPORTED` if the deployment sends no notices.
   */
  addWebhook(principal: Principal, hook: NewWebhook): Promise<Result<WebhookView>>;
  /** Returns the principal's webhooks of a turn. */
  webhooks(principal: Principal, turnId: string): Promise<Result<WebhookView[]>>;
  /** Removes a webhook of the principal. Repeating it is a no-op. */
  removeWebhook(principal: Principal, turnId: string, id: string): Promise<Result<null>>;
}
