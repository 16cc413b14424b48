/** The functions of the client. */
import type { AgentSummary, AgentView } from "../protocol/agent-api.ts";
import type { ArtifactSummary, ArtifactView, WrittenArtifact } from "../protocol/artifacts.ts";
import type { ForkInput, UpdateConversation } from "../protocol/conversation-requests.ts";
import type {
  AttachmentView,
  CompletedOperation,
  ConversationSummary,
  ConversationView,
  DeadLetterView,
  ImportedConversation,
  JournalEntryView,
  MessageView,
  ResolvedApproval,
  SubmittedResult,
  TurnView,
} from "../protocol/conversation-schemas.ts";
import type { RetryRun } from "../protocol/coordinator-api.ts";
import type { FoundMessage, LoggedEvent } from "../protocol/event-log.ts";
import type { Frame } from "../protocol/frames.ts";
import type { NewParticipant, Participant } from "../protocol/participants.ts";
import type { Projection, ProjectionName, ProjectionOptions } from "../protocol/projection-schemas.ts";
import type { TurnPrompt } from "../protocol/prompt.ts";
import type { CauseChain, CauseOptions, Incident, IncidentOptions } from "../protocol/record-schemas.ts";
import type { TurnRecording, TurnReplay } from "../protocol/recording.ts";
import type {
  ApprovalAnswer,
  EditTurn,
  RegenerateTurn,
  StartTurn,
  ToolOutcome,
} from "../protocol/requests.ts";
import type { RunEvent, RunSummary, RunView, RunWorkflow } from "../protocol/run-schemas.ts";
import type { SignalEnvelope } from "../protocol/signal-schemas.ts";
import type { SignalResult, StartedTurn } from "../protocol/signals.ts";
import type { TraceView } from "../protocol/trace.ts";
import type { TurnRecord } from "../protocol/turn-records.ts";
import type { AgentUsage } from "../protocol/usage-schemas.ts";
import type { WaitingApproval } from "../protocol/waiting-approvals.ts";
import type { Json } from "../shared/json.ts";
import type { Role } from "../shared/roles.ts";
import type { FollowOptions, FollowRunOptions } from "./follow.ts";
import type { MemoriesClient } from "./memories.ts";
import type {
  ArtifactsRequest,
  ConversationInput,
  ConversationsRequest,
  EventsRequest,
  FollowRequest,
  MessageSearch,
  PageRequest,
  RequestOptions,
  RunInput,
  RunsRequest,
  StopRequest,
  TurnsListRequest,
  UploadOptions,
  WaitingRequest,
} from "./options.ts";
import type { ProjectsClient, WorkspacesClient } from "./projects.ts";

export interface DramatisClient {
  agents: {
    list(options?: PageRequest): Promise<{ agents: AgentSummary[]; nextCursor?: string }>;
    get(id: string, options?: RequestOptions): Promise<AgentView>;
    /** Returns the usage of all model calls in the agent's conversations. */
    usage(id: string, options?: RequestOptions): Promise<AgentUsage>;
    /** Deletes the agent and its memory. A conversation without another agent fails. For authors and administrators. */
    delete(id: string, options?: RequestOptions): Promise<void>;
    /** Returns the agent with its memories as a file: one JSON text per line. For authors and administrators. */
    export(id: string, options?: RequestOptions): Promise<ReadableStream<Uint8Array>>;
    /** Creates an agent from a file of an export, with a new id unless one is given. For authors and administrators. */
    import(file: Blob, options?: RequestOptions & { id?: string }): Promise<AgentView>;
  };
  memories: MemoriesClient;
  projects: ProjectsClient;
  workspaces: WorkspacesClient;
  /** The documents of projects. */
  artifacts: {
    /** Lists artifacts by their paths. `path` is a folder. */
    list(
      project: string,
      options?: ArtifactsRequest & Pick<PageRequest, "cursor">,
    ): Promise<{ artifacts: ArtifactSummary[]; nextCursor?: string }>;
    /** Finds at most 50 artifacts that answer a question, the best first. */
    search(
      project: string,
      query: string,
      options?: ArtifactsRequest,
    ): Promise<{ artifacts: ArtifactSummary[] }>;
    /** Reads an artifact, by default its newest version. */
    get(
      project: string,
      path: string,
      options?: RequestOptions & { version?: string },
    ): Promise<ArtifactView>;
    /** Writes an artifact. With `ifVersion` it fails with `CONFLICT` if the artifact has changed since. For authors and administrators. */
    write(
      project: string,
      path: string,
      input: { content: string; type?: string; ifVersion?: string },
      options?: RequestOptions,
    ): Promise<WrittenArtifact>;
    /** Deletes an artifact. Earlier versions stay in the repository. For authors and administrators. */
    delete(project: string, path: string, options?: RequestOptions & { ifVersion?: string }): Promise<void>;
  };
  conversations: {
    /**
     * Lists your conversations; all of the tenant for operators and administrators. Archived conversations are omitted.
     *
     * @example
     * const { conversations } = await client.conversations.list({ sort: "activity" });
     */
    list(
      options?: ConversationsRequest,
    ): Promise<{ conversations: ConversationSummary[]; nextCursor?: string }>;
    /** Pins the conversation in your lists. */
    pin(id: string, options?: RequestOptions): Promise<void>;
    unpin(id: string, options?: RequestOptions): Promise<void>;
    /** Omits the conversation from your lists until a new turn begins in it. */
    archive(id: string, options?: RequestOptions): Promise<void>;
    unarchive(id: string, options?: RequestOptions): Promise<void>;
    create(input: ConversationInput, options?: RequestOptions): Promise<ConversationView>;
    get(id: string, options?: RequestOptions): Promise<ConversationView>;
    /**
     * Returns the entries of the journal: every durable fact, by its number. `type` has names of entries, separated by commas. `turn` is the
     * id of a turn. With one of them, a page may be empty and have a `nextCursor`.
     */
    journal(
      id: string,
      options?: PageRequest & { type?: string; turn?: string },
    ): Promise<{ entries: JournalEntryView[]; nextCursor?: string }>;
    /**
     * Returns a projection of the journal. Page options are for the projections that are lists. `turn` is for `timeline`.
     *
     * @example
     * const { messages } = await client.conversations.projection(id, "llm_context");
     */
    projection<Name extends ProjectionName>(
      id: string,
      name: Name,
      options?: ProjectionOptions & RequestOptions,
    ): Promise<Extract<Projection, { name: Name }>>;
    /** Returns the chain of causes from an entry of the journal, or forward: the entries that follow from it. */
    causes(id: string, seq: number, options?: CauseOptions & RequestOptions): Promise<CauseChain>;
    /** Returns the incidents of the conversation. A page may be empty and have a `nextCursor`. */
    incidents(
      id: string,
      options?: IncidentOptions & RequestOptions,
    ): Promise<{ incidents: Incident[]; nextCursor?: string }>;
    /**
     * Yields the frames of a conversation, or some of them, without end. After a lost stream it resumes without loss or repetition. Leave
     * the loop to unsubscribe.
     *
     * @example
     * for await (const frame of client.conversations.follow(id, { from: 7, deltas: false })) console.log(frame.type);
     */
    follow(id: string, options?: FollowOptions): AsyncGenerator<Frame, void>;
    /** Changes the order of turns that overlap. With any order but `queued`, turns that wait begin at once. */
    update(id: string, changes: UpdateConversation, options?: RequestOptions): Promise<ConversationView>;
    /** Stops the conversation with all its active turns. Until it resumes, messages are recorded without an answer. Idempotent. */
    cancel(id: string, options?: StopRequest): Promise<ConversationView>;
    /** Resumes a stopped conversation with its next message. Fails with `NOT_CANCELLED` if it is not stopped. */
    resume(id: string, options?: StopRequest): Promise<ConversationView>;
    /**
     * Ends the conversation for good, with all its active turns. It stays readable. Everything else is refused with `CONVERSATION_CLOSED`.
     * Idempotent.
     */
    complete(id: string, options?: StopRequest): Promise<ConversationView>;
    /** Deletes the conversation with everything that it holds. It cannot be restored. */
    delete(id: string, options?: RequestOptions): Promise<void>;
    /** Returns the conversation as a file: one JSON text per line. Fails with `CONFLICT` while it has work. */
    export(id: string, options?: RequestOptions): Promise<ReadableStream<Uint8Array>>;
    /**
     * Creates a conversation from a file of an export, with a new id unless one is given. `notRestored` names repositories with uncommitted files
     * that were left out. For administrators.
     */
    import(file: Blob, options?: RequestOptions & { id?: string }): Promise<ImportedConversation>;
    /**
     * Creates a conversation with the history up to a turn that is over, by default the turn that completed last. Fails with `CONFLICT` if
     * the turn is not over.
     */
    fork(id: string, input?: ForkInput, options?: RequestOptions): Promise<ConversationView>;
    /** Erases the content of a message or of an operation, by its id. Fails with `CONFLICT` while its turn is active. */
    erase(id: string, entryId: string, options?: RequestOptions): Promise<void>;
    /**
     * Sends messages, stops and resumes in their envelopes, in order. Each has a result of its own. A message that cannot begin its
     * turn yet is `queued`.
     *
     * @example
     * const type = "conversation.user.message";
     * const [result] = await client.conversations.signal(id, [{ id: "first", type, data: { content: "Hello" } }]);
     */
    signal(id: string, signals: readonly SignalEnvelope[], options?: RequestOptions): Promise<SignalResult[]>;
    /** Adds a user, or an agent of the conversation's project. Adding an existing participant is a no-op. */
    addParticipant(
      id: string,
      participant: NewParticipant,
      options?: RequestOptions,
    ): Promise<ConversationView>;
    /**
     * Removes a user, or an agent with its active turns. Removing the first agent of the conversation fails with `CONFLICT`. Removing a
     * non-participant is a no-op.
     */
    removeParticipant(id: string, participant: Participant, options?: RequestOptions): Promise<void>;
  };
  turns: {
    /**
     * Lists the turns of your conversations; all of the tenant for operators and administrators.
     *
     * @example
     * const { turns } = await client.turns.list({ status: "failed", order: "desc" });
     */
    list(options?: TurnsListRequest): Promise<{ turns: TurnRecord[]; nextCursor?: string }>;
    /** Starts a turn and returns at once. A live connection receives the answer. */
    start(
      conversationId: string,
      input: StartTurn,
      options?: RequestOptions,
    ): Promise<Pick<StartedTurn, "turnId" | "messageId" | "status">>;
    get(conversationId: string, turnId: string, options?: RequestOptions): Promise<TurnView>;
    /**
     * Returns the request of a model call of a turn, with its parts, their tokens and the reply. `call` is the number of the call among the
     * `calls` of the turn, from 1; the newest call when absent. For operators.
     */
    prompt(
      conversationId: string,
      turnId: string,
      options?: RequestOptions & { call?: number },
    ): Promise<TurnPrompt>;
    /** Returns the spans of a turn and of the agents that it called. Running work is `open`. */
    trace(conversationId: string, turnId: string, options?: RequestOptions): Promise<TraceView>;
    /** Returns an ended turn as a fixture. Fails with `CONFLICT` for an active or erased turn. */
    recording(conversationId: string, turnId: string, options?: RequestOptions): Promise<TurnRecording>;
    /** Plans an ended turn again on its recorded results, without a call. `divergence` is the first difference. */
    replay(conversationId: string, turnId: string, options?: RequestOptions): Promise<TurnReplay>;
    /**
     * Answers the message of a turn again, without running its tool calls again. The turn and the later turns leave the context. Fails with
     * `CONFLICT` if one of them is active, or if the turn was replaced.
     */
    regenerate(
      conversationId: string,
      turnId: string,
      input?: RegenerateTurn,
      options?: RequestOptions,
    ): Promise<Pick<StartedTurn, "turnId" | "messageId" | "status">>;
    /** Replaces the message of a turn, otherwise like `regenerate`. */
    edit(
      conversationId: string,
      turnId: string,
      input: EditTurn,
      options?: RequestOptions,
    ): Promise<Pick<StartedTurn, "turnId" | "messageId" | "status">>;
    /**
     * Stops a turn: it fails with `CANCELLED`, and keeps the text that was shown. A repeated stop returns the same. Fails with `CONFLICT`
     * if the turn has already ended.
     */
    cancel(conversationId: string, turnId: string, options?: StopRequest): Promise<TurnView>;
  };
  runs: {
    /** Lists runs of workflows: your own; all of the tenant for operators and administrators. */
    list(options?: RunsRequest): Promise<{ runs: RunSummary[]; nextCursor?: string }>;
    /**
     * Starts a run of a workflow.
     *
     * @example
     * const { id } = await client.runs.start({ workflow: "demo/summaries", input: { documents: ["One."] } });
     */
    start(input: RunInput, options?: RequestOptions): Promise<RunView>;
    get(id: string, options?: RequestOptions): Promise<RunView>;
    /** Returns the workflow that the run works by. It never changes. */
    workflow(id: string, options?: RequestOptions): Promise<RunWorkflow>;
    /** Returns the spans of the run, and of the runs and agents that it reached. */
    trace(id: string, options?: RequestOptions): Promise<TraceView>;
    /**
     * Answers a question of `gates`. Fails with `INVALID_INPUT` unless the answer fits the `schema` of the gate. Repeating an answer is a
     * no-op. Fails with `CONFLICT` if the gate has another answer or is closed.
     *
     * @example
     * const { gates } = await client.runs.get(id);
     * for (const { operationId, kind } of gates)
     *   if (kind === "human.approve") await client.runs.answer(id, operationId, { approved: true });
     */
    answer(id: string, operationId: string, answer: Json, options?: RequestOptions): Promise<RunView>;
    /** Cancels the run. Idempotent. Fails with `CONFLICT` if the run has already ended. */
    cancel(id: string, options?: StopRequest): Promise<RunView>;
    /**
     * Retries a failed run: failed steps start again, completed steps are kept. Fails with `CONFLICT` if the run cannot be retried. Fails
     * with `OUTCOME_UNKNOWN` if an effect may happen twice and `repeatOnce` is not `true`.
     *
     * @example
     * const { status, seq, retry } = await client.runs.get(id);
     * if (status === "failed" && retry?.repeatsOnce.length === 0) await client.runs.retry(id, { seq });
     */
    retry(id: string, options?: RetryRun & RequestOptions): Promise<RunView>;
    /**
     * Yields the entries of the run's journal after `from`, then new entries until the run ends. Resumes after a lost connection
     * without loss or repetition. Throws an error of a request that cannot succeed later.
     * @example
     * for await (const { type, node } of client.runs.follow(id)) console.log(type, node);
     */
    follow(id: string, options?: FollowRunOptions): AsyncGenerator<RunEvent, void>;
  };
  /**
   * Returns the subject, the tenant and the roles of your requests.
   *
   * @example
   * const me = await client.me();
   * const mine = pendingApprovals(state).filter(({ approval = {} }) => mayAnswer(approval, me, true));
   */
  me(options?: RequestOptions): Promise<{ subject: string; tenant: string; roles: Role[] }>;
  approvals: {
    /** Lists the calls of tools and the gates that wait for you. */
    list(options?: WaitingRequest): Promise<{ approvals: WaitingApproval[]; nextCursor?: string }>;
  };
  /** Messages between actors that were not delivered. For operators. */
  deadLetters: {
    list(options?: PageRequest): Promise<{ deadLetters: DeadLetterView[]; nextCursor?: string }>;
    /** Sends the letter again under its id, so its receiver acts at most once. Fails with `CONFLICT` 30 days after it was sent. */
    redeliver(id: string, options?: RequestOptions): Promise<{ id: string }>;
  };
  attachments: {
    /**
     * Uploads an image or a file. The `type` of the `Blob` is its media type. Content refers to it by `url`.
     *
     * @example
     * const { url } = await client.attachments.upload(id, file);
     * await client.turns.start(id, { content: [{ type: "image", url }] });
     */
    upload(conversationId: string, file: Blob, options?: UploadOptions): Promise<AttachmentView>;
  };
  messages: {
    list(
      conversationId: string,
      options?: PageRequest,
    ): Promise<{ messages: MessageView[]; nextCursor?: string }>;
    /**
     * Searches the messages of your conversations; of all the tenant for operators and administrators. The newest messages come first.
     *
     * @example
     * const { messages } = await client.messages.search({ q: "refund", until: "2026-05" });
     */
    search(request: MessageSearch): Promise<{ messages: FoundMessage[]; nextCursor?: string }>;
  };
  events: {
    /** Lists the journal entries of all conversations and runs of the tenant. For operators and administrators. */
    list(options?: EventsRequest): Promise<{ events: LoggedEvent[]; nextCursor?: string }>;
    /**
     * Yields the events after `after`, and then each new event. If the stream is interrupted, it throws `STREAM_INTERRUPTED`: follow again
     * after the last `seq`.
     *
     * @example
     * for await (const { type, conversationId } of client.events.follow({ type: "turn.failed" })) console.log(type, conversationId);
     */
    follow(options?: FollowRequest): AsyncGenerator<LoggedEvent, void>;
  };
  operations: {
    /** Submits the result of a tool that the client runs. The same result again gets the same response. */
    submit(
      conversationId: string,
      operationId: string,
      outcome: ToolOutcome,
      options?: RequestOptions,
    ): Promise<SubmittedResult>;
    /**
     * Approves or denies a tool call that waits for a person. Repeating an answer returns the same response. A different answer fails with
     * `CONFLICT`.
     *
     * @example
     * await client.operations.resolveApproval(id, operationId, { approved: false, reason: "Too expensive." });
     */
    resolveApproval(
      conversationId: string,
      operationId: string,
      answer: ApprovalAnswer,
      options?: RequestOptions,
    ): Promise<ResolvedApproval>;
    /** Completes a deferred operation by the handle that its tool gave out. Needs no token. The same result again gets the same response. */
    complete(handle: string, outcome: ToolOutcome, options?: RequestOptions): Promise<CompletedOperation>;
  };
  /**
   * Starts a turn and yields its frames up to `turn.completed` or `turn.failed`. Leaving the loop ends the stream, not
   * the turn. Throws `STREAM_INTERRUPTED` if the stream ends before the turn does.
   */
  streamTurn(conversationId: string, input: StartTurn, options?: RequestOptions): AsyncGenerator<Frame, void>;
}
