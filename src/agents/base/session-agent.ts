/**
 * `SessionAgent`: an actor with sessions, each an ordered log of events in its own database, and a mailbox. The base of
 * every addressable actor, and the only place that knows the SDK's `Agent` class.
 *
 * AGENT-1  The tables exist when the constructor has run, and are gone when the actor was destroyed.
 * AGENT-2  What arrives by RPC is checked before it is used, and what is answered is plain data.
 * AGENT-3  The SDK's own doors stay shut: no sub-agents, and no connection may write the SDK's state.
 */
import { Agent } from "agents";
import type { DeadLetterPublication } from "../../d1/dead-letters.ts";
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
import { DurableKeyValue } from "../../ports/workers/durable-key-value.ts";
import { DurableSqlDatabase } from "../../ports/workers/durable-sql-database.ts";
import type { ActorAddress, Envelope } from "../../protocol/envelope.ts";
import type {
  Answer,
  Attempt,
  DeadLetterApi,
  DeadLetterView,
  MailboxPeer,
} from "../../protocol/mailbox-api.ts";
import { asResult, type Result } from "../../shared/errors.ts";
import type { Facts } from "../../shared/json.ts";
import type { Page, PageOptions } from "../../shared/page.ts";
import type { Principal } from "../../shared/principal.ts";
import { validate } from "../../shared/validation.ts";
import { kindOf } from "./lookup/durable-actors.ts";
import { actorMailbox } from "./mailbox/actor-mailbox.ts";
import { checkOperator } from "./mailbox/api.ts";
import type { Mailbox } from "./mailbox/mailbox.ts";
import { openOrRefuse } from "./storage/schema-upgrade.ts";
import { openSessionTables } from "./storage/session-tables.ts";

/** A message takes at least four tokens, so this many events fill any context of the budget. */
function eventsWithin(tokenBudget: number | undefined): number | undefined {
  if (tokenBudget === undefined) return undefined;
  checkTokenBudget(tokenBudget);
  return Math.min(MAX_CONTEXT_EVENTS, Math.ceil(tokenBudget / 4) + 1);
}

/** Events that one context reads at most, if its caller names no limit. */
const MAX_CONTEXT_EVENTS = 10_000;

export class SessionAgent<Env extends Cloudflare.Env = Cloudflare.Env, State = unknown>
  extends Agent<Env, State>
  implements MailboxPeer, DeadLetterApi
{
  /** Sends envelopes to other actors, and hands those that come to the handlers a subclass registers. */
  protected readonly mailbox: Mailbox;
  private readonly openSessionStore: () => SessionStore;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.openSessionStore = openOrRefuse(() => new SessionStore(this.createSessionStorage()));
    this.mailbox = actorMailbox({
      storage: ctx.storage,
      lifecycle: this.lifecycle,
      env,
      checkStorage: () => this.checkStorage(),
      self: () => this.mailboxAddress,
      directory: () => this.deadLetterDirectory(),
    });
  }

  /**
   * Throws `UNAVAILABLE` while the storage is of a newer release than the code: then the mailbox leaves it alone. A
   * subclass with storage of its own that carries a version asks for that, too.
   */
  protected checkStorage(): void {
    this.openSessionStore();
  }

  /** The kind of this actor's address: its binding's name in kebab case, by default from the name of the class. */
  protected get mailboxKind(): string {
    return kindOf(this.constructor.name);
  }

  /** Where this actor's mailbox is found; `null` unless its name is `{tenant}:{id}`. */
  protected get mailboxAddress(): ActorAddress | null {
    const split = this.name.lastIndexOf(":");
    if (split < 1) return null;
    return { kind: this.mailboxKind, tenant: this.name.slice(0, split), id: this.name.slice(split + 1) };
  }

  /** Where dead letters are published for their tenant; by default nowhere. */
  protected deadLetterDirectory(): DeadLetterPublication | null {
    return null;
  }

  private get sessionStore(): SessionStore {
    return this.openSessionStore();
  }

  /**
   * Where sessions and events live; creates what has to be there. Called once by the constructor, before the fields
   * of a subclass exist.
   */
  protected createSessionStorage(): SessionStorage {
    const database = new DurableSqlDatabase(this.ctx.storage);
    const keyValue = new DurableKeyValue(this.ctx.storage);
    return { ...openSessionTables({ database, keyValue }), clock: systemClock, ids: systemIds };
  }

  /** Creates a session and answers its id. */
  async createSession(metadata?: Facts): Promise<string> {
    return this.sessionStore.create(this.name, validate(schemas.sessionMetadata, metadata, "/metadata"));
  }

  /** The session's row, or `null` if there is none. */
  async getSession(sessionId: string): Promise<StoredSession | null> {
    return this.sessionStore.get(validate(schemas.sessionId, sessionId, "/sessionId"));
  }

  /** The sessions, last updated first; at most 1 000. */
  async listSessions(): Promise<StoredSession[]> {
    return this.sessionStore.list();
  }

  /** Deletes a session and all of its events. */
  async deleteSession(sessionId: string): Promise<void> {
    this.sessionStore.delete(validate(schemas.sessionId, sessionId, "/sessionId"));
  }

  /** Events of a session in ascending order: by default its last 50, and no more than 8 MiB of them. */
  async loadEvents(sessionId: string, options?: LoadEventsOptions): Promise<SessionEvent[]> {
    return this.loadChecked(sessionId, options);
  }

  /**
   * Appends events in the given order, all or none. They get the session's next sequence numbers; the `seq` and
   * `sessionId` they carry are ignored. Throws `NOT_FOUND` for a session that does not exist.
   */
  async appendEvents(sessionId: string, events: SessionEvent[]): Promise<void> {
    this.sessionStore.append(
      validate(schemas.sessionId, sessionId, "/sessionId"),
      validate(schemas.events, events, "/events"),
    );
  }

  /** Deletes events of a session by id; unknown ids are ignored. */
  async deleteEvents(sessionId: string, eventIds: string[]): Promise<void> {
    this.sessionStore.deleteEvents(
      validate(schemas.sessionId, sessionId, "/sessionId"),
      validate(schemas.eventIds, eventIds, "/eventIds"),
    );
  }

  /**
   * The context of a request from a session's events. For use inside the actor: the object loses its methods over
   * RPC. Elsewhere, give the result of `loadEvents` to the function of the same name.
   */
  buildWorkingContext(sessionId: string, options: ContextBuilderOptions = {}): WorkingContext {
    const { limit, since, actions, tail, before, from, maxBytes, ...build } = options;
    const given = validate(
      schemas.loadOptions,
      { limit: limit ?? eventsWithin(build.tokenBudget), since, actions, tail, before, from, maxBytes },
      "/options",
    );
    const id = validate(schemas.sessionId, sessionId, "/sessionId");
    // A selection is what was asked for. Anything else is a window, to which the newest summary belongs.
    const isSelection = tail === false || [since, actions, from].some((option) => option !== undefined);
    const window = isSelection
      ? { events: this.sessionStore.load(id, given), isCutOff: false }
      : this.sessionStore.loadWindow(id, given);
    return buildWorkingContext(window.events, { ...build, isCutOff: window.isCutOff });
  }

  /**
   * Lets a summary take the place of a session's older turns in every context, if they have outgrown the budget
   * (COMPACT-1 to COMPACT-5); `null` if there was nothing to do. The events stay readable. For use inside the actor,
   * between turns or beside them: what is appended meanwhile is kept.
   *
   * @example await this.compactSession(id, { tokenBudget: 16_000, summarise: extractiveSummariser() })
   */
  async compactSession(
    sessionId: string,
    options: CompactOptions,
    signal?: AbortSignal,
  ): Promise<Compaction | null> {
    const id = validate(schemas.sessionId, sessionId, "/sessionId");
    return compactSession(this.sessionStore, id, options, signal);
  }

  /**
   * Appends the new messages of a context to a session, all or none, and marks them as persisted. Call it when the
   * turn is done: what is added to a context before stays invisible to other requests until then.
   */
  persistWorkingContext(sessionId: string, context: WorkingContext): void {
    const events = context.getNewMessages().map((message) => messageToEvent(sessionId, message));
    this.sessionStore.append(sessionId, validate(schemas.events, events, "/messages"));
    context.markPersisted();
  }

  /** Takes an envelope from another actor's mailbox: accepts, commits, answers. */
  async receive(envelope: Envelope, attempt: Attempt): Promise<Answer> {
    return this.mailbox.receive(envelope, attempt);
  }

  async deadLetters(principal: Principal, options?: PageOptions): Promise<Result<Page<DeadLetterView>>> {
    return asResult(() => {
      checkOperator(principal, this.mailboxAddress);
      return this.mailbox.deadLetters(options);
    });
  }

  async redeliver(principal: Principal, operationId: string): Promise<Result<null>> {
    return asResult(async () => {
      checkOperator(principal, this.mailboxAddress);
      await this.mailbox.redeliver(operationId);
      return null;
    });
  }

  /** Sub-agents have no door here. */
  override async onBeforeSubAgent(): Promise<Response> {
    return new Response("Not found", { status: 404 });
  }

  /** The SDK's state is no channel for clients. */
  override shouldConnectionBeReadonly(): boolean {
    return true;
  }

  private loadChecked(sessionId: string, options: LoadEventsOptions | undefined): SessionEvent[] {
    return this.sessionStore.load(
      validate(schemas.sessionId, sessionId, "/sessionId"),
      validate(schemas.loadOptions, options, "/options"),
    );
  }
}
