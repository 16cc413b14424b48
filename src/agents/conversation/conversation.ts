/**
 * The actor `Conversation`: transport and RPC of one conversation. Every entry point checks its caller and its input, and
 * answers errors as data. The shell in `runtime.ts` does the work.
 *
 * The path of a message: `inbound/` checks it, `core/` plans and reduces it (pure), `store/` commits it, and `effects/` calls
 * models and tools. Their outcomes return to the shell as signals. `reads/` answers queries, and `copies/` publishes to the
 * agent, the directory and the metrics sink.
 */
import type { Connection, ConnectionContext, WSMessage } from "agents";
import type { LoadEventsOptions, SessionEvent } from "../../memory/session/session-event.ts";
import type { AgentError, AgentResult, AgentResultApi } from "../../protocol/agent-call.ts";
import type { CallAddress } from "../../protocol/call-address.ts";
import { unknownHandle } from "../../protocol/complete-operation.ts";
import type { ConversationApi } from "../../protocol/conversation-api.ts";
import type {
  CreateConversation,
  ForkConversation,
  SubscribeOptions,
  UpdateConversation,
} from "../../protocol/conversation-requests.ts";
import { subscribeOptions, updateConversation } from "../../protocol/conversation-requests.ts";
import type { CompletedOperation, TurnView } from "../../protocol/conversation-schemas.ts";
import type { ActorAddress, Envelope } from "../../protocol/envelope.ts";
import type {
  TaskError,
  TaskErrorApi,
  TaskResult,
  TaskResultApi,
  ToolStateApi,
  ToolStateEntry,
} from "../../protocol/executor-api.ts";
import { UNAUTHORIZED_CLOSE } from "../../protocol/frames.ts";
import type { WholeResultApi } from "../../protocol/large-result.ts";
import type { DeferApi, DeferRequest, GivenHandle } from "../../protocol/operation-handle.ts";
import type { NewParticipant, Participant } from "../../protocol/participants.ts";
import { REMOTE_TASK } from "../../protocol/remote-call.ts";
import type {
  ApprovalAnswer,
  CallAnswers,
  EditTurn,
  RegenerateTurn,
  StartTurn,
  StopOptions,
  ToolOutcome,
  ToolSubmission,
} from "../../protocol/requests.ts";
import type { SignalResult, StartedTurn } from "../../protocol/signals.ts";
import { CONVERSATION_FRAMES } from "../../protocol/subscribers.ts";
import type { PastTurns, PastTurnsApi, PastTurnsRequest } from "../../protocol/tool-memory.ts";
import { readUpgrade } from "../../protocol/upgrade-request.ts";
import { WEBHOOK } from "../../protocol/webhooks.ts";
import type {
  CalledRun,
  RunCallerApi,
  WorkflowError,
  WorkflowResult,
  WorkflowResultApi,
} from "../../protocol/workflow-call.ts";
import { type MergeNote, mergeNote } from "../../protocol/workspace.ts";
import { defined } from "../../shared/defined.ts";
import { asDone, asResult, forbidden, type Result } from "../../shared/errors.ts";
import type { Json } from "../../shared/json.ts";
import { mayAuthor, type Principal } from "../../shared/principal.ts";
import { validate, validateRequest } from "../../shared/validation.ts";
import type { SessionAgent } from "../base/session-agent.ts";
import type { Client } from "../base/sockets/client.ts";
import { ConnectionGuard } from "../base/sockets/connection-guard.ts";
import { createOutflows } from "../base/sockets/outflow.ts";
import type { ConversationApplication } from "./context.ts";
import { checkOpen } from "./core/life.ts";
import { CALL_TURN } from "./core/state.ts";
import { isReadable } from "./inbound/client-frames.ts";
import { admit, openConnection, receiveFrame } from "./inbound/connections.ts";
import { deferSchema, parseOutcome, parseProgress } from "./inbound/requests.ts";
import { takeEnvelopes } from "./mailbox-handlers.ts";
import { ReadableConversation, readAs } from "./readable-conversation.ts";
import { conversationView } from "./reads/views.ts";
import { wholeAnswer } from "./reads/whole-answer.ts";
import { calledRun } from "./results/call-results.ts";
import { CallEnds } from "./results/operation-results.ts";
import { connected, givenContext } from "./wiring.ts";

/** The methods that other actors and HTTP call. */
type ConversationRpc = ConversationApi &
  ToolStateApi &
  PastTurnsApi &
  TaskResultApi &
  TaskErrorApi &
  AgentResultApi &
  WorkflowResultApi &
  RunCallerApi &
  WholeResultApi &
  DeferApi;

export function createConversationClass<Env extends Cloudflare.Env>(
  application: (env: Env) => ConversationApplication,
): new (
  ctx: DurableObjectState,
  env: Env,
) => SessionAgent<Env> & ConversationRpc {
  const outflows = createOutflows();
  return class Conversation extends ReadableConversation<Env> implements ConversationRpc {
    static override readonly options = { sendIdentityOnConnect: false };

    readonly #context = connected(
      givenContext(application(this.env), this.env, this.mailbox, {
        ...this.platform,
        owner: () => this.actorAddress(),
      }),
      outflows,
    );
    readonly #runtime = this.#context.runtime;
    readonly #ends = new CallEnds(this.#runtime.results);
    readonly #guard = new ConnectionGuard({
      connectionOf: (socket) => this.connectionOf(socket),
      isPlain: (client) => !this.isConnectionProtocolEnabled(client),
      isReadable,
      admit: (client, message) => admit(this.#context.connections, client, message),
      receive: (client, message) => receiveFrame(this.#context.connections, client, message),
    });

    constructor(ctx: DurableObjectState, env: Env) {
      super(ctx, env);
      this.lifecycle.use(this.#guard);
      takeEnvelopes(this.mailbox, this.#context);
      this.mailbox.outcomes(CONVERSATION_FRAMES, (outcome) => {
        this.#context.subscribers.settle(outcome);
        this.#context.webhooks.settle(outcome);
      });
    }

    protected override get context() {
      return this.#context;
    }

    protected override get mailboxKind() {
      return "conversation";
    }

    protected override get work() {
      return this.#context.work;
    }

    protected override deliverable(envelope: Envelope) {
      return envelope.type === CONVERSATION_FRAMES ? this.#context.subscribers.filled(envelope) : envelope;
    }

    protected override peerAt(address: ActorAddress) {
      if (address.kind === REMOTE_TASK) return this.#context.remoteTasks;
      return address.kind === WEBHOOK ? this.#context.webhooks.peer : super.peerAt(address);
    }

    async create(principal: Principal, input: CreateConversation) {
      return asResult(() => {
        this.checkPlace();
        return this.#context.requests.create(principal, input);
      });
    }

    async checkFirst(principal: Principal, input?: StartTurn) {
      return asDone(() => this.#context.requests.checkFirst(principal, input));
    }

    async fork(principal: Principal, input: ForkConversation) {
      return asResult(() => this.#context.fork.fork(principal, input));
    }

    async update(principal: Principal, input: UpdateConversation) {
      return asResult(async () => {
        this.#context.access.checkSpeaker(principal);
        const { turns: order, ...changes } = validateRequest(updateConversation, input);
        const caller = { type: "user", userId: principal.subject } as const;
        await this.#runtime.changes.update({ caller, ...changes, ...defined({ order }) });
        if (changes.title !== undefined && this.#runtime.state.record.listed !== false)
          await this.#context.listing.publish();
        return conversationView(this.#runtime.state);
      });
    }

    async checkSpeaker(principal: Principal) {
      return asDone(() => {
        this.#context.access.checkSpeaker(principal);
        checkOpen(this.#runtime.state);
      });
    }

    async noteMerge(principal: Principal, merged: MergeNote) {
      return asDone(() => {
        this.#context.access.stateFor(principal);
        if (!mayAuthor(principal)) throw forbidden("Only authors and administrators merge branches.");
        const caller = { type: "user", userId: principal.subject } as const;
        return this.#runtime.changes.merged(caller, validateRequest(mergeNote, merged, "/merged"));
      });
    }

    async startTurn(principal: Principal, input: StartTurn): Promise<Result<StartedTurn>> {
      return asResult(() => this.#context.requests.accept(principal, input));
    }

    async runTurn(principal: Principal, input: StartTurn): Promise<Result<TurnView>> {
      return asResult(async () => {
        const { turnId } = await this.#context.requests.accept(principal, input);
        const turn = this.#context.queries.requireTurn(this.#runtime.state, turnId);
        const ended = turn.status === "active" ? await this.#runtime.ends.next(turnId) : turn;
        return this.#context.queries.view(this.#runtime.state, ended);
      });
    }

    async regenerate(principal: Principal, turnId: string, input?: RegenerateTurn) {
      return asResult(() => this.#context.replacing.regenerate(principal, turnId, input));
    }

    async edit(principal: Principal, turnId: string, input: EditTurn) {
      return asResult(() => this.#context.replacing.edit(principal, turnId, input));
    }

    async streamTurn(
      principal: Principal,
      input: StartTurn,
      encoding: SubscribeOptions["encoding"],
      untilWaiting?: boolean,
    ) {
      const target = { principal, encoding, ...defined({ untilWaiting }) };
      return asResult(() =>
        this.#context.readers.streamTurn(target, () => this.#context.requests.accept(principal, input)),
      );
    }

    async submitToolResults(principal: Principal, results: ToolSubmission[]) {
      return asResult(() => this.#context.requests.submit(principal, results));
    }

    async resolveApproval(principal: Principal, operationId: string, answer: ApprovalAnswer) {
      return asResult(() => this.#context.requests.approve(principal, operationId, answer));
    }

    async hasApproval(principal: Principal, operationId: string, answer: ApprovalAnswer) {
      return asResult(() => this.#context.requests.hasAnswer(principal, operationId, answer));
    }

    async answerCalls(principal: Principal, answers: CallAnswers) {
      return asResult(() => this.#context.requests.answerAll(principal, answers));
    }

    async answeredWith(principal: Principal, key: string) {
      return asResult(() => this.#context.requests.answeredWith(principal, key));
    }

    async cancelTurn(principal: Principal, turnId: string, options: StopOptions = {}) {
      return asResult(() => this.#context.stops.cancelTurn(principal, turnId, options));
    }

    async cancel(principal: Principal, options: StopOptions = {}) {
      return asResult(() => this.#context.stops.cancel(principal, options));
    }

    async resume(principal: Principal, options: StopOptions = {}) {
      return asResult(() => this.#context.stops.resume(principal, options));
    }

    async complete(principal: Principal, options: StopOptions = {}) {
      return asResult(() => this.#context.stops.complete(principal, options));
    }

    async addParticipant(principal: Principal, participant: NewParticipant) {
      return asResult(() => this.#context.participants.add(principal, participant));
    }

    async removeParticipant(principal: Principal, participant: Participant) {
      return asDone(() => this.#context.participants.remove(principal, participant));
    }

    async ingest(principal: Principal, signals: unknown): Promise<Result<SignalResult[]>> {
      return asResult(async () => {
        this.#context.access.checkSpeaker(principal);
        return this.#context.ingress.ingest(principal, signals);
      });
    }

    async subscribe(principal: Principal, options: SubscribeOptions) {
      return readAs(this.#context, principal, (state) => {
        const { turnId, encoding, from, untilWaiting, ...filter } = validateRequest(
          subscribeOptions,
          options,
        );
        const turn = turnId === undefined ? undefined : this.#context.queries.requireTurn(state, turnId);
        const position = from ?? (turn === undefined ? undefined : turn.firstSeq - 1);
        return this.#context.readers.stream(
          { from: position, turnId, untilWaiting, filter },
          { principal, encoding },
        );
      });
    }

    override async loadEvents(sessionId: string, options?: LoadEventsOptions): Promise<SessionEvent[]> {
      return this.#runtime.exists ? super.loadEvents(sessionId, options) : [];
    }

    async pastTurns(request: PastTurnsRequest): Promise<Result<PastTurns>> {
      return asResult(() => this.#context.queries.pastTurns(this.#runtime.state, request));
    }

    async toolStateGet(key: string): Promise<Result<Json>> {
      return asResult(() => this.#runtime.toolState.get(key));
    }

    async toolStatePut(key: string, value: Json): Promise<Result<null>> {
      return asDone(() => this.#runtime.toolState.put(key, value));
    }

    async toolStateList(prefix: string): Promise<Result<ToolStateEntry[]>> {
      return asResult(() => this.#runtime.toolState.list(prefix));
    }

    async handleTaskResult(result: TaskResult): Promise<Result<null>> {
      return asDone(() => this.#ends.taskResult(result));
    }

    async handleTaskError(failure: TaskError): Promise<Result<null>> {
      return asDone(() => this.#ends.taskError(failure));
    }

    async handleAgentResult(answer: AgentResult): Promise<Result<null>> {
      return asDone(() => this.#ends.agentResult(answer));
    }

    async handleAgentError(failure: AgentError): Promise<Result<null>> {
      return asDone(() => this.#ends.agentError(failure));
    }

    async handleWorkflowResult(ended: WorkflowResult): Promise<Result<null>> {
      return asDone(() => this.#ends.workflowResult(ended));
    }

    async handleWorkflowError(failure: WorkflowError): Promise<Result<null>> {
      return asDone(() => this.#ends.workflowError(failure));
    }

    async calledRun(address: CallAddress): Promise<Result<CalledRun>> {
      return asResult(() => calledRun(this.#runtime.state, address));
    }

    async wholeResult(address: CallAddress): Promise<Result<Uint8Array>> {
      return asResult(() => wholeAnswer(this.#runtime.state, this.#runtime.turn(CALL_TURN), address));
    }

    async deferOperation(request: DeferRequest): Promise<Result<GivenHandle>> {
      return asResult(() => this.#runtime.results.defer(validate(deferSchema, request)));
    }

    async completeOperation(handle: string, outcome: ToolOutcome): Promise<Result<CompletedOperation>> {
      return asResult(async () => {
        if (!this.#runtime.exists) {
          await this.removeEmpty();
          throw unknownHandle();
        }
        return this.#runtime.results.complete(handle, parseOutcome(outcome));
      });
    }

    async reportOperation(handle: string, progress?: Json): Promise<Result<boolean>> {
      return asResult(() => {
        if (!this.#runtime.exists) throw unknownHandle();
        return this.#runtime.results.report(handle, parseProgress(progress));
      });
    }

    override shouldSendProtocolMessages(_connection: Connection, { request }: ConnectionContext): boolean {
      const { protocol, principal } = readUpgrade(request) ?? {};
      // The SDK sends its messages before `onConnect`, so only readers of the conversation may get them (SOCKET-3).
      return protocol === "sdk" && principal !== undefined && this.#context.access.mayRead(principal);
    }

    override async onConnect(connection: Client, { request }: ConnectionContext): Promise<void> {
      const upgrade = readUpgrade(request);
      if (upgrade === null) {
        connection.close(UNAUTHORIZED_CLOSE, "UNAUTHENTICATED");
        return;
      }
      const { principal, options } = upgrade;
      openConnection(this.#context.connections, connection, principal, options);
      const { expiresAt } = principal;
      if (expiresAt !== undefined && connection.state !== null) await this.#context.expireAt(expiresAt);
    }

    override async onMessage(connection: Client, message: WSMessage): Promise<void> {
      await receiveFrame(this.#context.connections, connection, message);
    }

    override onClose(connection: Client): void {
      this.#context.readers.sockets.closed(connection);
    }
  };
}
