/**
 * The `Conversation` actor: transport and RPC surface of one conversation. What it decides is in the core, what it does
 * in `runtime.ts`; here every entrance is checked and answered.
 */

import type { Connection, ConnectionContext, WSMessage } from "agents";
import type { LoadEventsOptions, SessionEvent } from "../../memory/session/types.ts";
import { systemClock, systemIds } from "../../ports/system.ts";
import { durableStorage } from "../../ports/workers/durable-storage.ts";
import type {
  ConversationApi,
  CreateConversation,
  StartedTurn,
  StartTurn,
  SubmittedResult,
  SubscribeOptions,
} from "../../protocol/conversation-api.ts";
import type { ToolStateApi, ToolStateEntry } from "../../protocol/executor-api.ts";
import { type Frame, UNAUTHORIZED_CLOSE } from "../../protocol/frames.ts";
import type { ToolSubmission } from "../../protocol/requests.ts";
import type { ConversationView } from "../../protocol/views.ts";
import { defined } from "../../shared/defined.ts";
import { asResult, type DramatisError, type Result, unwrap } from "../../shared/errors.ts";
import type { Json } from "../../shared/json.ts";
import type { PageOptions } from "../../shared/page.ts";
import type { Principal } from "../../shared/principal.ts";
import { validate } from "../../shared/validation.ts";
import type { SessionAgent } from "../base/session-agent.ts";
import { isRefusal } from "../base/storage/schema-upgrade.ts";
import { Wakeups } from "../base/timers/wakeups.ts";
import { checkStateEntry, MAX_STATE_ENTRIES } from "../executor/tool-state.ts";
import { endsTurn } from "./core/frames.ts";
import { MAX_WATCHERS } from "./core/limits.ts";
import { messageOf, normaliseSignal } from "./core/signals.ts";
import { checkReader, checkSpeaker } from "./door/access.ts";
import { ConnectionGuard } from "./door/connection-guard.ts";
import {
  admit,
  broadcast,
  type Client,
  type ConnectionMemory,
  type ConnectionPorts,
  nextExpiry,
  openConnection,
  receiveFrame,
  tooManyWatchers,
} from "./door/connections.ts";
import {
  checkSameRequest,
  conversationRecord,
  createConversationSchema,
} from "./door/create-conversation.ts";
import { readEntrance } from "./door/entrance.ts";
import { openingSlices } from "./door/opening.ts";
import { parseSubmissions, startTurnSchema, subscribeSchema } from "./door/schemas.ts";
import { checkHistory, seedEvents } from "./door/seed-history.ts";
import { frameStream, type Listener, type OpeningSlice, Subscribers } from "./door/subscribers.ts";
import { conversationMedia } from "./effects/media.ts";
import { Announcement } from "./mirror/announcement.ts";
import { UsageMirror } from "./mirror/usage-mirror.ts";
import type { ConversationClassPorts } from "./ports.ts";
import { usageView } from "./reads/call-views.ts";
import { ConversationQueries } from "./reads/queries.ts";
import { conversationView } from "./reads/views.ts";
import { ConversationRuntime } from "./runtime.ts";
import { GuardedSessionAgent } from "./session-guard.ts";

/** The class `Conversation` of an application. */
export function createConversationClass<Env extends Cloudflare.Env>(
  services: ConversationClassPorts<Env>,
): new (
  ctx: DurableObjectState,
  env: Env,
) => SessionAgent<Env> & ConversationApi & ToolStateApi {
  return class Conversation extends GuardedSessionAgent<Env> implements ConversationApi, ToolStateApi {
    static override readonly options = { sendIdentityOnConnect: false };

    readonly #wakeups = new Wakeups({
      window: () => {
        this.#runtime.reconcile();
        const times = [this.#runtime.dueIn, this.#usage.wake()].filter((time) => time !== null);
        return times.length === 0 ? null : Math.min(...times);
      },
      directory: () => this.#announcement.listing.wake(),
      registration: () => this.#announcement.noteAgain(),
      expiry: () => {
        this.#subscribers.publish([]);
        const next = Math.min(this.#subscribers.nextExpiry, nextExpiry(this.#clients()));
        return next === Infinity ? null : Math.max(0, next - systemClock.now());
      },
    });
    readonly #announcement = new Announcement({
      record: () => this.#runtime.state.record,
      directory: () => services.directory(this.env),
      send: (envelope) => this.mailbox.send(envelope),
      transaction: (body) => this.ctx.storage.transactionSync(body),
      clock: systemClock,
      wakeup: this.#wakeups.named("directory"),
    });
    readonly #usage = new UsageMirror({
      state: () => this.#runtime.state,
      directory: () => services.directory(this.env),
      clock: systemClock,
      disarm: () => this.#wakeups.disarm("window"),
    });
    readonly #guard = new ConnectionGuard({
      connectionOf: (socket) => this.#connectionOf(socket),
      isPlain: (client) => !this.isConnectionProtocolEnabled(client),
      admit: (client, message) => admit(this.#connectionHost, client, message),
      receive: (client, message) => receiveFrame(this.#connectionHost, client, message),
    });
    readonly #subscribers = new Subscribers((at) => this.ctx.waitUntil(this.#expireAt(at)));
    readonly #runtime = new ConversationRuntime({
      ...durableStorage(this.ctx.storage),
      clock: systemClock,
      ids: systemIds,
      gateway: services.gateway(this.env),
      adapters: services.adapters,
      executor: services.executor(this.env),
      ...conversationMedia(services.attachments(this.env), () => this.#runtime.state.record),
      gate: services.gate,
      ...defined({
        metrics: services.metrics,
        turnLimit: services.turnLimit,
        clientToolTimeoutMs: services.clientToolTimeoutMs,
      }),
      window: { open: (milliseconds) => this.#wakeups.arm("window", milliseconds) },
      publish: (frames) => {
        if (frames.some(endsTurn)) this.#usage.changed();
        this.#subscribers.publish(frames);
      },
    });
    readonly #queries = new ConversationQueries(this.#runtime.store);
    readonly #connectionHost: ConnectionPorts = {
      opening: (principal, from) => this.#opening(principal, from),
      startTurn: (principal, input) => this.#accept(principal, input),
      submitResult: async (principal, { v: _v, type: _type, ...result }) => {
        await this.#submit(principal, [result]);
      },
      connections: () => [...this.#clients()].length,
      now: () => systemClock.now(),
    };

    /** Why the storage is left alone; `null` where it is not. */
    #refusal: DramatisError | null = null;

    constructor(ctx: DurableObjectState, env: Env) {
      super(ctx, env);
      this.lifecycle.use(this.#wakeups);
      this.lifecycle.use(this.#guard);
      this.#subscribers.add((frames) => broadcast(this.#clients(), frames, systemClock.now()));
    }

    protected override get mailboxKind() {
      return "conversation";
    }

    protected override checkStorage() {
      super.checkStorage();
      if (this.#refusal !== null) throw this.#refusal;
    }

    protected override deadLetterDirectory() {
      return services.deadLetters(this.env);
    }

    override async onStart(): Promise<void> {
      try {
        await this.#runtime.wake();
      } catch (error) {
        // Every entrance answers it, and the wake-up job keeps trying.
        if (!isRefusal(error)) throw error;
        this.#refusal = error;
        console.error(error);
      }
    }

    async create(principal: Principal, input: CreateConversation) {
      return asResult(async () => {
        checkHistory(input.history);
        const { history = [], ...checked } = validate(createConversationSchema, input);
        const agent = await services.actors(this.env).agent(principal.tenant, checked.agentId);
        const part = unwrap(await agent.persona());
        const { fingerprint } = checked;
        if (fingerprint !== undefined && this.#runtime.exists)
          return this.#createdBefore(principal, fingerprint);
        const record = conversationRecord(principal, checked, part, systemClock.now());
        const { agentId: sessionId, createdAt: now, listed } = record;
        const events = seedEvents(history, { sessionId, userId: principal.subject, now, ids: systemIds });
        const armed: Promise<void>[] = [];
        const announce = () => armed.push(...this.#announcement.note(record));
        this.#runtime.create(record, listed === false ? undefined : announce, events);
        await Promise.all(armed);
        if (listed !== false) await this.#announcement.listing.publish();
        return conversationView(record, 0);
      });
    }

    async view(principal: Principal) {
      return this.#read(principal, ({ record, active, usage }) => ({
        ...conversationView(record, active.size),
        usage: usageView(usage),
      }));
    }

    async checkSpeaker(principal: Principal) {
      return asResult(() => {
        checkSpeaker(this.#runtime.state.record, principal);
        return null;
      });
    }

    async startTurn(principal: Principal, input: StartTurn): Promise<Result<StartedTurn>> {
      return asResult(() => this.#accept(principal, input));
    }

    async streamTurn(principal: Principal, input: StartTurn, encoding: SubscribeOptions["encoding"]) {
      return asResult(async () => {
        this.#checkRoom();
        const frames: Frame[] = [];
        const listener: Listener = (published) => frames.push(...published);
        this.#subscribers.add(listener);
        try {
          const started = await this.#accept(principal, input);
          const { turnId } = started;
          // A turn that was accepted before has begun without us: its frames come from the journal.
          const isNew = frames.some((frame) => frame.type === "turn.started" && frame.turnId === turnId);
          const opening = isNew ? [{ frames, last: true }] : this.#opening(principal, started.from);
          const options = { principal, turnId, encoding, clock: systemClock };
          const stream = frameStream(this.#subscribers, opening[Symbol.iterator](), options);
          return { ...started, frames: stream };
        } finally {
          this.#subscribers.remove(listener);
        }
      });
    }

    async submitToolResults(principal: Principal, results: ToolSubmission[]) {
      return asResult(() => this.#submit(principal, results));
    }

    /** The one door for signals from outside; `startTurn` is sugar for it. */
    async ingest(principal: Principal, signals: unknown): Promise<Result<StartedTurn[]>> {
      return asResult(async () => {
        checkSpeaker(this.#runtime.state.record, principal);
        const caller = { type: "user", userId: principal.subject } as const;
        const list = Array.isArray(signals) ? signals : [signals];
        const messages = list.map((signal) => normaliseSignal(signal, caller));
        const started: StartedTurn[] = [];
        // One after another: one whose media must be looked up would else be overtaken.
        for (const message of messages) started.push(await this.#runtime.accept(message));
        return started;
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
        const { turnId, encoding, from } = validate(subscribeSchema, options);
        const turn = turnId === undefined ? undefined : this.#queries.requireTurn(state, turnId);
        const position = from ?? (turn === undefined ? undefined : turn.firstSeq - 1);
        this.#checkRoom();
        const opening = this.#opening(principal, position);
        return frameStream(this.#subscribers, opening, { principal, turnId, encoding, clock: systemClock });
      });
    }

    override async loadEvents(sessionId: string, options?: LoadEventsOptions): Promise<SessionEvent[]> {
      return this.#runtime.exists ? super.loadEvents(sessionId, options) : [];
    }

    async toolStateGet(key: string): Promise<Result<Json>> {
      return asResult(() => this.#runtime.toolState.get(key));
    }

    async toolStatePut(key: string, value: Json): Promise<Result<null>> {
      return asResult(() => {
        checkStateEntry(key, value);
        this.#runtime.toolState.put(key, value);
        return null;
      });
    }

    async toolStateList(prefix: string): Promise<Result<ToolStateEntry[]>> {
      return asResult(() => this.#runtime.toolState.list(prefix, MAX_STATE_ENTRIES));
    }

    override shouldSendProtocolMessages(_connection: Connection, { request }: ConnectionContext): boolean {
      const { entrance, principal } = readEntrance(request) ?? {};
      // What the SDK says, it says before `onConnect`: to those who may read the conversation only (DOOR-3).
      return entrance === "sdk" && principal !== undefined && this.#mayRead(principal);
    }

    override async onConnect(connection: Client, { request }: ConnectionContext): Promise<void> {
      const entrance = readEntrance(request);
      if (entrance === null) {
        connection.close(UNAUTHORIZED_CLOSE, "UNAUTHENTICATED");
        return;
      }
      const { principal } = entrance;
      const from = new URL(request.url).searchParams.get("from");
      const position = from === null ? undefined : Number(from);
      openConnection(this.#connectionHost, connection, principal, position);
      const { expiresAt } = principal;
      if (expiresAt !== undefined && connection.state !== null) await this.#expireAt(expiresAt);
    }

    override async onMessage(connection: Client, message: WSMessage): Promise<void> {
      await receiveFrame(this.#connectionHost, connection, message);
    }

    override onRequest(): Response {
      return new Response("Not found", { status: 404 });
    }

    #createdBefore(principal: Principal, fingerprint: string): ConversationView {
      const { record, active } = this.#runtime.state;
      checkReader(record, principal);
      checkSameRequest(record, fingerprint);
      return conversationView(record, active.size);
    }

    /** Wakes the actor when the authority of one who watches ends. */
    async #expireAt(time: number): Promise<void> {
      await this.#wakeups.arm("expiry", Math.max(0, time - systemClock.now()));
    }

    #clients(): Iterable<Client> {
      return this.getConnections<ConnectionMemory>();
    }

    /** The SDK tags each socket with its connection's id. */
    #connectionOf(socket: WebSocket): Client | undefined {
      const [id = ""] = this.ctx.getTags(socket);
      return this.getConnection<ConnectionMemory>(id);
    }

    #checkRoom(): void {
      // One listener stands for all WebSockets.
      if (this.#subscribers.size <= MAX_WATCHERS) return;
      this.#subscribers.publish([]);
      throw tooManyWatchers();
    }

    async #read<Value>(
      principal: Principal,
      body: (state: ConversationRuntime["state"]) => Value,
    ): Promise<Result<Value>> {
      return asResult(() => {
        const { state } = this.#runtime;
        checkReader(state.record, principal);
        return body(state);
      });
    }

    /** Whether the conversation can be read, and by this principal. */
    #mayRead(principal: Principal): boolean {
      try {
        checkReader(this.#runtime.state.record, principal);
        return true;
      } catch {
        return false;
      }
    }

    async #accept(principal: Principal, input: unknown): Promise<StartedTurn> {
      checkSpeaker(this.#runtime.state.record, principal);
      return this.#runtime.accept(messageOf(principal, validate(startTurnSchema, input)));
    }

    async #submit(principal: Principal, results: ToolSubmission[]): Promise<SubmittedResult[]> {
      checkSpeaker(this.#runtime.state.record, principal);
      return this.#runtime.submit(parseSubmissions(results));
    }

    #opening(principal: Principal, from: number | undefined): Generator<OpeningSlice, void> {
      checkReader(this.#runtime.state.record, principal);
      return openingSlices({ runtime: this.#runtime, queries: this.#queries, clock: systemClock }, from);
    }
  };
}
