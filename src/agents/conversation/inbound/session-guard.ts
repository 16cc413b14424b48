/** The RPC methods for sessions: other actors may read a conversation's session, but only its turns write it. */
import type { StoredSession } from "../../../memory/session/session-event.ts";
import type { SessionStorage } from "../../../memory/session/session-store.ts";
import type { SessionRange, SessionTable } from "../../../memory/session/session-table.ts";
import { forbidden } from "../../../shared/errors.ts";
import { SessionAgent } from "../../base/session-agent.ts";
import { ConversationDatabase } from "../store/conversation-database.ts";

/** Every method that writes a session throws `FORBIDDEN`. */
export class GuardedSessionAgent<Env extends Cloudflare.Env> extends SessionAgent<Env> {
  protected override createSessionStorage(): SessionStorage {
    const { database, keyValue, clock, ids } = this.platform;
    const store = new ConversationDatabase(database, keyValue);
    const { events } = store;
    return { db: database, sessions: new ConversationSessions(store), events, clock, ids };
  }

  override async createSession(): Promise<never> {
    return refuse();
  }

  override async deleteSession(): Promise<never> {
    return refuse();
  }

  override async appendEvents(): Promise<never> {
    return refuse();
  }

  override async deleteEvents(): Promise<never> {
    return refuse();
  }

  override async compactSession(): Promise<never> {
    return refuse();
  }
}

/** A conversation's sessions, derived from the record: one per agent, its id the agent's id. */
class ConversationSessions implements SessionTable {
  readonly insert = refuse;
  readonly delete = refuse;
  readonly reserve = refuse;
  readonly release = refuse;

  constructor(private readonly store: ConversationDatabase) {}

  get(sessionId: string): StoredSession | undefined {
    return this.#all().find((session) => session.id === sessionId);
  }

  list({ order, after, limit }: SessionRange): StoredSession[] {
    const isBefore = (one: string, other: string) => (order === "asc" ? one < other : one > other);
    const listed = this.#all().filter(({ id }) => after === undefined || isBefore(after, id));
    return listed.sort((one, other) => (isBefore(one.id, other.id) ? -1 : 1)).slice(0, limit);
  }

  #all(): StoredSession[] {
    const state = this.store.load();
    const newest = state === null ? null : this.store.journal.newest();
    if (state === null || newest === null) return [];
    const { agents, createdAt: created_at } = state.record;
    const updated_at = newest.row.at;
    return agents.map(({ id }) => ({ id, agent_id: id, created_at, updated_at, metadata: null }));
  }
}

function refuse(): never {
  const message = "Only turns write a conversation's session; send a signal to `ingest`.";
  throw forbidden(message);
}
