/**
 * `SessionAgent`: an actor with a mailbox and sessions, each an ordered log of events in the actor's own database. It is the base of all
 * addressable actors, and the only file that uses the SDK's `Agent` class.
 *
 * AGENT-1  The tables exist after the constructor, and are gone after the actor was destroyed.
 * AGENT-2  RPC input is checked before use, and RPC output is plain data.
 * AGENT-4  An actor without session storage refuses each session method with `FORBIDDEN`, and has no session tables.
 * AGENT-3  The SDK's own entrances are closed: no sub-agents, and no connection may write the SDK's state.
 */
import { Agent } from "agents";
import { D1DeadLetters, type DeadLetterWriter } from "../../d1/dead-letters.ts";
import { type Compaction, type CompactOptions, compactSession } from "../../memory/session/compaction.ts";
import { messageToEvent } from "../../memory/session/events.ts";
import { schemas } from "../../memory/session/schemas.ts";
import { type SessionStorage, SessionStore } from "../../memory/session/session-store.ts";
import { checkTokenBudget } from "../../memory/session/tokens.ts";
import type { LoadEventsOptions, SessionEvent, StoredSession } from "../../memory/session/types.ts";
import {
  buildWorkingContext,
  type ContextBuilderOptions,
  type WorkingContext,
} from "../../memory/session/working-context.ts";
import { systemClock, systemIds } from "../../ports/system.ts";
import { durableStorage } from "../../ports/workers/durable-storage.ts";
import type { ActorAddress, Envelope } from "../../protocol/envelope.ts";
import type { Answer, Attempt, DeadLetterApi, MailboxPeer } from "../../protocol/mailbox-api.ts";
import type { DeadLetterView } from "../../protocol/views.ts";
import { asDone, asResult, DramatisError, type Result } from "../../shared/errors.ts";
import type { Facts } from "../../shared/json.ts";
import type { Page, PageOptions } from "../../shared/page.ts";
import type { Principal } from "../../shared/principal.ts";
import { validate } from "../../shared/validation.ts";
import { checkActorPlace, kindOf } from "./lookup/durable-actors.ts";
import { actorMailbox } from "./mailbox/actor-mailbox.ts";
import { checkOperator } from "./mailbox/dead-letter.ts";
import type { Mailbox } from "./mailbox/mailbox.ts";
import { openOrRefuse, StorageRefusal } from "./storage/schema-upgrade.ts";
import { openSessionTables } from "./storage/session-tables.ts";

/** Returns a number of events that fills any context of the budget: a message has at least four tokens. */
function eventsWithin(tokenBudget: number | undefined): number | undefined {
  if (tokenBudget === undefined) return undefined;
  checkTokenBudget(tokenBudget);
  return Math.min(MAX_CONTEXT_EVENTS, Math.ceil(tokenBudget / 4) + 1);
}

/** Events that a context reads, unless its caller gives a limit. */
const MAX_CONTEXT_EVENTS = 10_000;

function checkId(sessionId: unknown): string {
  return validate(schemas.sessionId, sessionId, "/sessionId");
}

export class SessionAgent<Env extends Cloudflare.Env = Cloudflare.Env, State = unknown>
  extends Agent<Env, State>
  implements MailboxPeer, DeadLetterApi
{
  /** Sends envelopes to other actors, and passes incoming envelopes to the handlers of a subclass. */
  protected readonly mailbox: Mailbox;
  private readonly openSessionStore: () => SessionStore | null;
  /** The error of every entrance while the storage is of a newer release; `null` otherwise. */
  #refusal: StorageRefusal | null = null;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.openSessionStore = openOrRefuse(() => {
      const storage = this.createSessionStorage();
      return storage && new SessionStore(storage);
    });
    this.mailbox = actorMailbox({
      storage: ctx.storage,
      lifecycle: this.lifecycle,
      env,
      checkStorage: () => this.checkStorage(),
      whenArmed: () => this.whenArmed(),
      whenDeliverable: (envelope) => this.whenDeliverable(envelope),
      self: () => this.mailboxAddress,
      directory: () => this.deadLetterDirectory(),
    });
  }

  /** Resolves when the wake-ups of the work that envelopes have started are armed. A subclass with such work overrides this. */
  protected whenArmed(): Promise<void> {
    return Promise.resolve();
  }

  /** Resolves when an envelope may be delivered. A subclass overrides this if it paces some. */
  protected whenDeliverable(_envelope: Pick<Envelope, "type">): Promise<void> {
    return Promise.resolve();
  }

  /**
   * Throws `UNAVAILABLE` while the storage is of a newer release than the code: the mailbox then writes nothing. A subclass
   * with versioned storage of its own overrides this to check that, too.
   */
  protected checkStorage(): void {
    this.openSessionStore();
    if (this.#refusal !== null) throw this.#refusal;
  }

  /** Reports whether the start of this life was refused. */
  protected get isRefused(): boolean {
    return this.#refusal !== null;
  }

  /**
   * Runs the start of a subclass. If it refuses the storage, the actor lives on, so that its entrances answer with the refusal and its wake-up
   * jobs try again (UPGRADE-4). Other errors are thrown.
   */
  protected async startUnlessRefused(start: () => void | Promise<void>): Promise<void> {
    try {
      await start();
    } catch (error) {
      if (!(error instanceof StorageRefusal)) throw error;
      this.#refusal = error;
      console.error(error);
    }
  }

  /** The kind in this actor's address: the name of its export, by default that of its class, in kebab case. */
  protected get mailboxKind(): string {
    return kindOf(this.constructor.name);
  }

  /** The address of this actor's mailbox; `null` unless its name is `{tenant}:{id}`. */
  protected get mailboxAddress(): ActorAddress | null {
    const split = this.name.lastIndexOf(":");
    if (split < 1) return null;
    return { kind: this.mailboxKind, tenant: this.name.slice(0, split), id: this.name.slice(split + 1) };
  }

  /** Throws `INVALID_INPUT` unless the actor is in the jurisdiction that its id names (PLACE-3). */
  protected checkPlace(): void {
    const address = this.mailboxAddress;
    if (address !== null) checkActorPlace(this.env, address, this.ctx.id.jurisdiction);
  }

  /**
   * Returns the directory that lists this actor's dead letters for their tenant: by default the D1 database bound as `DB`, or `null`
   * without this binding. A subclass overrides this to use another database.
   */
  protected deadLetterDirectory(): DeadLetterWriter | null {
    // SAFETY: the runtime has only one use for a binding of this name.
    const { DB } = this.env as { DB?: D1Database };
    return DB === undefined ? null : new D1DeadLetters(DB);
  }

  private get sessionStore(): SessionStore {
    const store = this.openSessionStore();
    if (store !== null) return store;
    const message = `The ${this.mailboxKind} "${this.name}" has no sessions. Call a conversation, or your own subclass of SessionAgent.`;
    throw new DramatisError("FORBIDDEN", message);
  }

  /**
   * Creates the storage of sessions and events. The constructor calls it once, before the fields of a subclass exist. An actor without sessions
   * returns `null` (AGENT-4).
   */
  protected createSessionStorage(): SessionStorage | null {
    const stores = durableStorage(this.ctx.storage);
    return { ...openSessionTables(stores), clock: systemClock, ids: systemIds };
  }

  /** Creates a session and returns its id. */
  async createSession(metadata?: Facts): Promise<string> {
    return this.sessionStore.create(this.name, validate(schemas.sessionMetadata, metadata, "/metadata"));
  }

  /** Returns the session's row; `null` for an unknown session. */
  async getSession(sessionId: string): Promise<StoredSession | null> {
    return this.sessionStore.get(checkId(sessionId));
  }

  /**
   * Returns a page of the sessions, created last first, at most 200.
   *
   * @example const { items, nextCursor } = await agent.listSessions({ limit: 100 });
   */
  async listSessions(options?: PageOptions): Promise<Page<StoredSession>> {
    return this.sessionStore.list(validate(schemas.listOptions, options, "/options"));
  }

  /** Deletes a session and all of its events. */
  async deleteSession(sessionId: string): Promise<void> {
    this.sessionStore.delete(checkId(sessionId));
  }

  /** Returns events of a session in ascending order: by default the last 50, at most 8 MiB. */
  async loadEvents(sessionId: string, options?: LoadEventsOptions): Promise<SessionEvent[]> {
    return this.sessionStore.load(checkId(sessionId), validate(schemas.loadOptions, options, "/options"));
  }

  /**
   * Appends events atomically, in the given order. They get the session's next sequence numbers; their own `seq` and `sessionId` are
   * ignored. An event with a stored id is skipped, so you can safely send a batch again. Throws `NOT_FOUND` for an unknown session,
   * `CONFLICT` for an id that is there with other content.
   */
  async appendEvents(sessionId: string, events: SessionEvent[]): Promise<void> {
    this.sessionStore.append(checkId(sessionId), validate(schemas.events, events, "/events"));
  }

  /** Deletes events of a session by id; unknown ids are ignored. */
  async deleteEvents(sessionId: string, eventIds: string[]): Promise<void> {
    this.sessionStore.deleteEvents(checkId(sessionId), validate(schemas.eventIds, eventIds, "/eventIds"));
  }

  /**
   * Builds the context of a request from a session's events. For use inside the actor, because the object loses its methods
   * over RPC. Elsewhere, pass the result of `loadEvents` to the function of the same name.
   *
   * @example const context = this.buildWorkingContext(sessionId, { tokenBudget: 16_000 });
   */
  buildWorkingContext(sessionId: string, options: ContextBuilderOptions = {}): WorkingContext {
    const store = this.sessionStore;
    const { limit, since, actions, tail, before, from, maxBytes, ...build } = options;
    const given = validate(
      schemas.loadOptions,
      { limit: limit ?? eventsWithin(build.tokenBudget), since, actions, tail, before, from, maxBytes },
      "/options",
    );
    const id = checkId(sessionId);
    // A selection has exactly the requested events. A window also has the newest summary.
    const isSelection = tail === false || [since, actions, from].some((option) => option !== undefined);
    const window = isSelection
      ? { events: store.load(id, given), isCutOff: false }
      : store.loadWindow(id, given);
    return buildWorkingContext(window.events, { ...build, isCutOff: window.isCutOff });
  }

  /**
   * Replaces a session's older turns by a summary in every context, if they exceed the budget (COMPACT-1 to COMPACT-5). Returns `null` if
   * the context fits. The events stay readable. Events that are appended during the call are kept. For use inside the actor, between or
   * during turns.
   *
   * @example await this.compactSession(id, { tokenBudget: 16_000, summarise: extractiveSummariser() })
   */
  async compactSession(
    sessionId: string,
    options: CompactOptions,
    signal?: AbortSignal,
  ): Promise<Compaction | null> {
    return compactSession(this.sessionStore, checkId(sessionId), options, signal);
  }

  /**
   * Appends the new messages of a context to a session atomically, and marks them as persisted. Call it at the end of the turn: until then,
   * other requests do not see the new messages.
   */
  persistWorkingContext(sessionId: string, context: WorkingContext): void {
    const store = this.sessionStore;
    const events = context.getNewMessages().map((message) => messageToEvent(sessionId, message));
    store.append(sessionId, validate(schemas.events, events, "/messages"));
    context.markPersisted();
  }

  /** Takes an envelope from another actor's mailbox. */
  async receive(envelope: Envelope, attempt: Attempt): Promise<Answer> {
    return this.mailbox.receive(envelope, attempt);
  }

  async deadLetters(principal: Principal, options?: PageOptions): Promise<Result<Page<DeadLetterView>>> {
    return asResult(() => {
      checkOperator(principal, this.mailboxAddress, this.name);
      return this.mailbox.deadLetters(options);
    });
  }

  async redeliver(principal: Principal, operationId: string): Promise<Result<null>> {
    return asDone(async () => {
      checkOperator(principal, this.mailboxAddress, this.name);
      await this.mailbox.redeliver(operationId);
    });
  }

  /** Refuses sub-agents. */
  override async onBeforeSubAgent(): Promise<Response> {
    return new Response("Not found", { status: 404 });
  }

  /** Keeps clients from writing the SDK's state. */
  override shouldConnectionBeReadonly(): boolean {
    return true;
  }
}
