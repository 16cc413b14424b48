/**
 * `SessionAgent`: an actor with sessions, each an ordered log of events in its own database. The base of every
 * addressable actor, and the only place that knows the SDK's `Agent` class.
 *
 * AGENT-1  The tables exist when the constructor has run, and are gone when the actor was destroyed.
 * AGENT-2  What arrives by RPC is checked before it is used, and what is answered is plain data.
 * AGENT-3  The SDK's own doors stay shut: no sub-agents, and no connection may write the SDK's state.
 */
import { Agent } from "agents";
import { messageToEvent } from "../memory/events.ts";
import { schemas } from "../memory/schemas.ts";
import { openSessionTables } from "../memory/session-schema.ts";
import { type SessionStorage, SessionStore } from "../memory/session-store.ts";
import type {
  ContextBuilderOptions,
  Facts,
  LoadEventsOptions,
  SessionEvent,
  StoredSession,
} from "../memory/types.ts";
import { buildWorkingContext, type WorkingContext } from "../memory/working-context.ts";
import { DurableKeyValue } from "../ports/workers/durable-key-value.ts";
import { DurableSqlDatabase } from "../ports/workers/durable-sql-database.ts";
import { systemClock, systemIds } from "../ports/workers/system.ts";
import { openOrRefuse } from "../shared/actor-schema.ts";
import { validate } from "../shared/validation.ts";

export class SessionAgent<Env extends Cloudflare.Env = Cloudflare.Env, State = unknown> extends Agent<
  Env,
  State
> {
  private readonly openSessionStore: () => SessionStore;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.openSessionStore = openOrRefuse(() => new SessionStore(this.createSessionStorage()));
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
    const { systemInstructions, eventToMessage, ...load } = options;
    return buildWorkingContext(this.loadChecked(sessionId, load), {
      ...(systemInstructions === undefined ? {} : { systemInstructions }),
      ...(eventToMessage === undefined ? {} : { eventToMessage }),
    });
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
