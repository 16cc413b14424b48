/**
 * `SessionAgent`: an actor with sessions, each an ordered log of events in the actor's own database.
 *
 * AGENT-1  The tables exist after the constructor, and are gone after the actor was destroyed.
 * AGENT-2  RPC input is checked before use, and RPC output is plain data.
 */
import { type Compaction, type CompactOptions, compactSession } from "../../memory/session/compaction.ts";
import { messageToEvent } from "../../memory/session/events.ts";
import { schemas } from "../../memory/session/schemas.ts";
import type { LoadEventsOptions, SessionEvent, StoredSession } from "../../memory/session/session-event.ts";
import { type SessionStorage, SessionStore } from "../../memory/session/session-store.ts";
import { checkTokenBudget } from "../../memory/session/tokens.ts";
import {
  buildWorkingContext,
  type ContextBuilderOptions,
  type WorkingContext,
} from "../../memory/session/working-context.ts";
import type { Facts } from "../../shared/json.ts";
import type { Page, PageOptions } from "../../shared/page.ts";
import { validate } from "../../shared/validation.ts";
import { DurableActor, type SESSION_METHODS } from "./durable-actor.ts";
import { openOrRefuse } from "./storage/schema-upgrade.ts";
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
  extends DurableActor<Env, State>
  implements Record<(typeof SESSION_METHODS)[number], unknown>
{
  readonly #sessions: () => SessionStore;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#sessions = openOrRefuse(() => new SessionStore(this.createSessionStorage()));
  }

  /** Creates the storage of sessions and events. The constructor calls it once, before the fields of a subclass exist. */
  protected createSessionStorage(): SessionStorage {
    const { database, keyValue, clock, ids } = this.platform;
    return { ...openSessionTables({ database, keyValue }), clock, ids };
  }

  protected override checkStorage(): void {
    this.#sessions();
    super.checkStorage();
  }

  /** Creates a session and returns its id. */
  async createSession(metadata?: Facts): Promise<string> {
    return this.#sessions().create(this.name, validate(schemas.sessionMetadata, metadata, "/metadata"));
  }

  /** Returns the session's row; `null` for an unknown session. */
  async getSession(sessionId: string): Promise<StoredSession | null> {
    return this.#sessions().get(checkId(sessionId));
  }

  /**
   * Returns a page of the sessions, created last first, at most 200.
   *
   * @example const { items, nextCursor } = await agent.listSessions({ limit: 100 });
   */
  async listSessions(options?: PageOptions): Promise<Page<StoredSession>> {
    return this.#sessions().list(validate(schemas.listOptions, options, "/options"));
  }

  /** Deletes a session and all of its events. */
  async deleteSession(sessionId: string): Promise<void> {
    this.#sessions().delete(checkId(sessionId));
  }

  /** Returns events of a session in ascending order: by default the last 50, at most 8 MiB. */
  async loadEvents(sessionId: string, options?: LoadEventsOptions): Promise<SessionEvent[]> {
    return this.#sessions().load(checkId(sessionId), validate(schemas.loadOptions, options, "/options"));
  }

  /**
   * Appends events atomically, in the given order. They get the session's next sequence numbers; their own `seq` and `sessionId` are
   * ignored. An event with a stored id is skipped, so you can safely send a batch again. Throws `NOT_FOUND` for an unknown session,
   * `CONFLICT` for an id that is there with other content.
   */
  async appendEvents(sessionId: string, events: SessionEvent[]): Promise<void> {
    this.#sessions().append(checkId(sessionId), validate(schemas.events, events, "/events"));
  }

  /** Deletes events of a session by id; unknown ids are ignored. */
  async deleteEvents(sessionId: string, eventIds: string[]): Promise<void> {
    this.#sessions().deleteEvents(checkId(sessionId), validate(schemas.eventIds, eventIds, "/eventIds"));
  }

  /**
   * Builds the context of a request from a session's events. For use inside the actor, because the object loses its methods
   * over RPC. Elsewhere, pass the result of `loadEvents` to the function of the same name.
   *
   * @example const context = this.buildWorkingContext(sessionId, { tokenBudget: 16_000 });
   */
  buildWorkingContext(sessionId: string, options: ContextBuilderOptions = {}): WorkingContext {
    const store = this.#sessions();
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
    return compactSession(this.#sessions(), checkId(sessionId), options, signal);
  }

  /**
   * Appends the new messages of a context to a session atomically, and marks them as persisted. Call it at the end of the turn: until then,
   * other requests do not see the new messages.
   */
  persistWorkingContext(sessionId: string, context: WorkingContext): void {
    const store = this.#sessions();
    const events = context.getNewMessages().map((message) => messageToEvent(sessionId, message));
    store.append(sessionId, validate(schemas.events, events, "/messages"));
    context.markPersisted();
  }
}
