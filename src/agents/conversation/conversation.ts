/**
 * The actor `Conversation`: transport and RPC of one conversation. Every entrance checks its caller and its input, and
 * answers errors as data. The shell in `runtime.ts` does the work.
 *
 * The way of a message: `door/` checks it, `core/` plans and reduces it (pure), `store/` commits it, and `effects/` calls
 * models and tools, whose outcomes return to the shell as signals. Beside it, `reads/` answers queries, and `mirror/`
 * publishes to the agent, the directory and the metrics sink.
 */

import type { Connection, ConnectionContext, WSMessage } from "agents";
import type { LoadEventsOptions, SessionEvent } from "../../memory/session/types.ts";
import { systemClock, systemIds } from "../../ports/system.ts";
import { durableStorage } from "../../ports/workers/durable-storage.ts";
import { unknownHandle } from "../../protocol/complete-operation.ts";
import type {
  CompletedOperation,
  ConversationApi,
  CreateConversation,
  StartTurn,
  StopOptions,
  SubmittedResult,
  SubscribeOptions,
  UpdateConversation,
} from "../../protocol/conversation-api.ts";
import type { TaskResult, TaskResultApi, ToolStateApi, ToolStateEntry } from "../../protocol/executor-api.ts";
import { taskResultSchema } from "../../protocol/executor-reports.ts";
import { UNAUTHORIZED_CLOSE } from "../../protocol/frames.ts";
import { stemOf } from "../../protocol/ids.ts";
import type { DeferApi, DeferRequest, GivenHandle } from "../../protocol/operation-handle.ts";
import type { Participant } from "../../protocol/participants.ts";
import type { ToolOutcome, ToolSubmission } from "../../protocol/requests.ts";
import type { SignalResult, StartedTurn } from "../../protocol/signals.ts";
import { readEntrance } from "../../protocol/upgrade-request.ts";
import type { TurnView } from "../../protocol/views.ts";
import { defined } from "../../shared/defined.ts";
import { asDone, asResult, type Result, unwrap } from "../../shared/errors.ts";
import type { Json } from "../../shared/json.ts";
import type { PageOptions } from "../../shared/page.ts";
import type { Principal } from "../../shared/principal.ts";
import { validate } from "../../shared/validation.ts";
import type { SessionAgent } from "../base/session-agent.ts";
import { StorageRefusal } from "../base/storage/schema-upgrade.ts";
import { spendingView } from "./core/ledger.ts";
import { checkOpen } from "./core/life.ts";
import type { ConversationState } from "./core/state.ts";
import { checkReader, checkSpeaker, noConversationAt } from "./door/access.ts";
import { Claims } from "./door/claims.ts";
import type { Client, ConnectionMemory } from "./door/client.ts";
import { ConnectionGuard } from "./door/connection-guard.ts";
import { type ConnectionPorts, openConnection, receiveFrame } from "./door/connections.ts";
import {
  agentPart,
  checkActorName,
  checkSameRequest,
  conversationRecord,
  parseCreate,
} from "./door/create-conversation.ts";
import { Ingress } from "./door/ingress.ts";
import { createOutflows } from "./door/outflow.ts";
import { Participants } from "./door/participants.ts";
import {
  deferSchema,
  messageOf,
  parseOutcome,
  parseSubmissions,
  startTurnSchema,
  subscribeSchema,
  updateSchema,
} from "./door/requests.ts";
import { seedEvents } from "./door/seed-history.ts";
import { GuardedSessionAgent } from "./door/session-guard.ts";
import { Stops } from "./door/stops.ts";
import { takeLeaseAnswers } from "./lease-answers.ts";
import { ConversationParts } from "./parts.ts";
import type { ConversationClassPorts } from "./ports.ts";
import { usageView } from "./reads/call-views.ts";
import { conversationView } from "./reads/views.ts";

/** Milliseconds in which the SDK ends an actor that was destroyed. */
const DESTROYED_WITHIN_MS = 1_000;

/** Creates the class `Conversation` of an application. */
export function createConversationClass<Env extends Cloudflare.Env>(
  ports: ConversationClassPorts<Env>,
): new (
  ctx: DurableObjectState,
  env: Env,
) => SessionAgent<Env> & ConversationApi & ToolStateApi & TaskResultApi & DeferApi {
  const shared = { outflows: createOutflows() };
  return class Conversation
    extends GuardedSessionAgent<Env>
    implements ConversationApi, ToolStateApi, TaskResultApi, DeferApi
  {
    static override readonly options = { sendIdentityOnConnect: false };

    readonly #parts = new ConversationParts({
      ...ports,
      ...durableStorage(this.ctx.storage),
      clock: systemClock,
      ids: systemIds,
      shared,
      gateway: ports.gateway(this.env),
      executor: ports.executor(this.env),
      attachments: ports.attachments(this.env),
      directory: () => ports.directory(this.env),
      send: (envelope) => this.mailbox.send(envelope),
      clients: () => this.#clients(),
      waitUntil: (work) => this.ctx.waitUntil(work),
    });
    readonly #runtime = this.#parts.runtime;
    readonly #queries = this.#parts.queries;
    readonly #readers = this.#parts.readers;
    readonly #stops = new Stops({
      runtime: this.#runtime,
      queries: this.#queries,
      stateFor: (principal) => this.#stateFor(principal),
      checkSpeaker: (principal) => this.#checkSpeaker(principal),
    });
    readonly #ingress = new Ingress({
      runtime: this.#runtime,
      stops: this.#stops,
      stem: () => stemOf(systemIds.ulid()),
    });
    readonly #participants = new Participants({
      runtime: this.#runtime,
      agent: (tenant, id) => ports.actors(this.env).agent(tenant, id),
      checkSpeaker: (principal) => this.#checkSpeaker(principal),
      expel: () => this.#readers.expel((principal) => this.#mayRead(principal)),
      publish: () => this.#parts.announcement.listing.publish(),
      clock: systemClock,
    });
    readonly #connectionPorts: ConnectionPorts = {
      cursor: (principal, start) => {
        this.#stateFor(principal);
        return this.#readers.cursor(start);
      },
      readers: this.#readers.sockets,
      claims: new Claims({
        clients: () => this.#clients(),
        checkSpeaker: (principal) => this.#checkSpeaker(principal),
        checkCall: (operationId) => this.#runtime.results.checkClientCall(operationId),
      }),
      stops: this.#stops,
      startTurn: (principal, input) => this.#accept(principal, input),
      submitResult: async (principal, { v: _v, type: _type, ...result }) => {
        await this.#submit(principal, [result]);
      },
      connections: () => [...this.#clients()].length,
      clock: systemClock,
    };
    readonly #guard = new ConnectionGuard({
      ...this.#connectionPorts,
      connectionOf: (socket) => this.#connectionOf(socket),
      isPlain: (client) => !this.isConnectionProtocolEnabled(client),
    });

    /** The error of every entrance while the storage is of a newer release; `null` otherwise. */
    #refusal: StorageRefusal | null = null;

    constructor(ctx: DurableObjectState, env: Env) {
      super(ctx, env);
      this.lifecycle.use(this.#parts.wakeups);
      this.lifecycle.use(this.#guard);
      takeLeaseAnswers(this.mailbox, () => this.#runtime.begin());
    }

    protected override get mailboxKind() {
      return "conversation";
    }

    protected override checkStorage() {
      super.checkStorage();
      if (this.#refusal !== null) throw this.#refusal;
    }

    protected override whenArmed() {
      return this.#runtime.whenArmed();
    }

    protected override deadLetterDirectory() {
      return ports.deadLetters(this.env);
    }

    override async onStart(): Promise<void> {
      try {
        if (this.#runtime.exists) {
          this.#readers.sockets.restore(this.#runtime.state.seq);
          this.#readers.expel((principal) => this.#mayRead(principal));
        }
        await this.#runtime.wake();
      } catch (error) {
        // Every entrance answers with this error, and the wake-up job tries again.
        if (!(error instanceof StorageRefusal)) throw error;
        this.#refusal = error;
        console.error(error);
      }
    }

    async create(principal: Principal, input: CreateConversation) {
      return asResult(async () => {
        const request = parseCreate(input);
        const { agentId, fingerprint } = request;
        const agent = () => ports.actors(this.env).agent(principal.tenant, agentId);
        const part = unwrap(await agentPart(systemClock, agent));
        checkActorName(this.name, principal, request);
        if (fingerprint !== undefined && this.#runtime.exists) {
          const state = this.#stateFor(principal);
          checkSameRequest(state.record, fingerprint);
          return conversationView(state);
        }
        const now = systemClock.now();
        const record = conversationRecord(principal, request, part, now);
        const origin = { sessionId: agentId, userId: principal.subject, now, ids: systemIds };
        const history = seedEvents(request.history ?? [], origin);
        await this.#runtime.create(record, {
          history,
          ...defined({ order: request.turns, budget: request.budget }),
          ...(request.orchestration === false ? { orchestration: false } : {}),
        });
        if (record.listed !== false) await this.#parts.announcement.listing.publish();
        return conversationView(this.#runtime.state);
      });
    }

    async view(principal: Principal) {
      return this.#read(principal, (state) => ({
        ...conversationView(state),
        usage: usageView(state.usage),
        spent: spendingView(state.spent),
      }));
    }

    async update(principal: Principal, input: UpdateConversation) {
      return asResult(async () => {
        this.#checkSpeaker(principal);
        const { turns: order, budget, orchestration } = validate(updateSchema, input);
        const caller = { type: "user", userId: principal.subject } as const;
        await this.#runtime.changes.update({ caller, ...defined({ order, budget, orchestration }) });
        return conversationView(this.#runtime.state);
      });
    }

    async checkSpeaker(principal: Principal) {
      return asDone(() => {
        this.#checkSpeaker(principal);
        checkOpen(this.#runtime.state);
      });
    }

    async startTurn(principal: Principal, input: StartTurn): Promise<Result<StartedTurn>> {
      return asResult(() => this.#accept(principal, input));
    }

    async runTurn(principal: Principal, input: StartTurn): Promise<Result<TurnView>> {
      return asResult(async () => {
        const { turnId } = await this.#accept(principal, input);
        const turn = this.#queries.requireTurn(this.#runtime.state, turnId);
        const ended = turn.status === "active" ? await this.#runtime.ends.next(turnId) : turn;
        return this.#queries.view(this.#runtime.state, ended);
      });
    }

    async streamTurn(
      principal: Principal,
      input: StartTurn,
      encoding: SubscribeOptions["encoding"],
      untilWaiting?: boolean,
    ) {
      const target = { principal, encoding, ...defined({ untilWaiting }) };
      return asResult(() => this.#readers.streamTurn(target, () => this.#accept(principal, input)));
    }

    async submitToolResults(principal: Principal, results: ToolSubmission[]) {
      return asResult(() => this.#submit(principal, results));
    }

    async cancelTurn(principal: Principal, turnId: string, options: StopOptions = {}) {
      return asResult(() => this.#stops.cancelTurn(principal, turnId, options));
    }

    async cancel(principal: Principal, options: StopOptions = {}) {
      return asResult(() => this.#stops.cancel(principal, options));
    }

    async resume(principal: Principal, options: StopOptions = {}) {
      return asResult(() => this.#stops.resume(principal, options));
    }

    async complete(principal: Principal, options: StopOptions = {}) {
      return asResult(() => this.#stops.complete(principal, options));
    }

    async addParticipant(principal: Principal, participant: Participant) {
      return asResult(() => this.#participants.add(principal, participant));
    }

    async removeParticipant(principal: Principal, participant: Participant) {
      return asDone(() => this.#participants.remove(principal, participant));
    }

    async ingest(principal: Principal, signals: unknown): Promise<Result<SignalResult[]>> {
      return asResult(async () => {
        this.#checkSpeaker(principal);
        return this.#ingress.ingest(principal, signals);
      });
    }

    async messages(principal: Principal, options?: PageOptions) {
      return this.#read(principal, (state) => this.#queries.messages(state, options));
    }

    async turns(principal: Principal, options?: PageOptions) {
      return this.#read(principal, () => this.#queries.turns(options));
    }

    async turn(principal: Principal, turnId: string) {
      return this.#read(principal, (state) => this.#queries.turn(state, turnId));
    }

    async journal(principal: Principal, options?: PageOptions) {
      return this.#read(principal, (state) => this.#queries.journal(state, options));
    }

    async subscribe(principal: Principal, options: SubscribeOptions) {
      return this.#read(principal, (state) => {
        const { turnId, encoding, from, untilWaiting } = validate(subscribeSchema, options);
        const turn = turnId === undefined ? undefined : this.#queries.requireTurn(state, turnId);
        const position = from ?? (turn === undefined ? undefined : turn.firstSeq - 1);
        return this.#readers.stream({ from: position, turnId, untilWaiting }, { principal, encoding });
      });
    }

    override async loadEvents(sessionId: string, options?: LoadEventsOptions): Promise<SessionEvent[]> {
      return this.#runtime.exists ? super.loadEvents(sessionId, options) : [];
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
      return asDone(() => this.#runtime.results.takeResult(validate(taskResultSchema, result)));
    }

    async deferOperation(request: DeferRequest): Promise<Result<GivenHandle>> {
      return asResult(() => this.#runtime.results.defer(validate(deferSchema, request)));
    }

    async completeOperation(handle: string, outcome: ToolOutcome): Promise<Result<CompletedOperation>> {
      return asResult(async () => {
        if (!this.#runtime.exists) {
          await this.#removeEmpty();
          throw unknownHandle();
        }
        return this.#runtime.results.complete(handle, parseOutcome(outcome));
      });
    }

    override shouldSendProtocolMessages(_connection: Connection, { request }: ConnectionContext): boolean {
      const { entrance, principal } = readEntrance(request) ?? {};
      // The SDK sends its messages before `onConnect`, so only readers of the conversation may get them (DOOR-3).
      return entrance === "sdk" && principal !== undefined && this.#mayRead(principal);
    }

    override async onConnect(connection: Client, { request }: ConnectionContext): Promise<void> {
      const entrance = readEntrance(request);
      if (entrance === null) {
        connection.close(UNAUTHORIZED_CLOSE, "UNAUTHENTICATED");
        return;
      }
      const { principal, options } = entrance;
      openConnection(this.#connectionPorts, connection, principal, options);
      const { expiresAt } = principal;
      if (expiresAt !== undefined && connection.state !== null) await this.#parts.expireAt(expiresAt);
    }

    override async onMessage(connection: Client, message: WSMessage): Promise<void> {
      await receiveFrame(this.#connectionPorts, connection, message);
    }

    override onClose(connection: Client): void {
      this.#readers.sockets.closed(connection);
    }

    override onRequest(): Response {
      return new Response("Not found", { status: 404 });
    }

    /**
     * Removes the storage of an actor that has no conversation: anyone may name one in a handle (HANDLE-3). No other request
     * runs meanwhile, so none can create the conversation in the storage that goes.
     */
    async #removeEmpty(): Promise<void> {
      await this.ctx.blockConcurrencyWhile(async () => {
        if (this.#runtime.exists || this.#refusal !== null) return;
        await this.destroy();
        // The SDK ends the actor in a moment. Whoever is answered before would reach an actor without tables.
        await scheduler.wait(DESTROYED_WITHIN_MS);
      });
    }

    #clients(): Iterable<Client> {
      return this.getConnections<ConnectionMemory>();
    }

    /** The SDK tags each socket with its connection's id. */
    #connectionOf(socket: WebSocket): Client | undefined {
      const [id = ""] = this.ctx.getTags(socket);
      return this.getConnection<ConnectionMemory>(id);
    }

    /** Throws `NOT_FOUND` unless the conversation exists and this principal may read it. */
    #stateFor(reader: Principal): ConversationState {
      const state = this.#requireState();
      checkReader(state.record, reader);
      return state;
    }

    /** Throws `NOT_FOUND` before the conversation was created. */
    #requireState(): ConversationState {
      if (this.#runtime.exists) return this.#runtime.state;
      throw noConversationAt(this.name);
    }

    /** Reports whether the conversation exists and this principal may read it. */
    #mayRead(principal: Principal): boolean {
      try {
        return this.#stateFor(principal) !== null;
      } catch {
        return false;
      }
    }

    #read<Value>(principal: Principal, body: (state: ConversationState) => Value): Promise<Result<Value>> {
      return asResult(() => body(this.#stateFor(principal)));
    }

    #checkSpeaker(principal: Principal): void {
      checkSpeaker(this.#requireState().record, principal);
    }

    async #accept(principal: Principal, input: unknown): Promise<StartedTurn> {
      this.#checkSpeaker(principal);
      return this.#runtime.accept(messageOf(principal, validate(startTurnSchema, input)));
    }

    async #submit(principal: Principal, results: ToolSubmission[]): Promise<SubmittedResult[]> {
      this.#checkSpeaker(principal);
      return this.#runtime.results.submit(parseSubmissions(results));
    }
  };
}
