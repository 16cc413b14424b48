/** An actor whose sessions everyone inside may read, and nobody writes but its turns. */
import { EventStore } from "../../memory/session/event-store.ts";
import { LongText } from "../../memory/session/long-text.ts";
import type { SessionStorage } from "../../memory/session/session-store.ts";
import { systemClock, systemIds } from "../../ports/system.ts";
import { durableStorage } from "../../ports/workers/durable-storage.ts";
import { SessionAgent } from "../base/session-agent.ts";
import { ConversationDatabase } from "./store/conversation-database.ts";
import { ConversationSessions, refused } from "./store/sessions.ts";

export class GuardedSessionAgent<Env extends Cloudflare.Env> extends SessionAgent<Env> {
  protected override createSessionStorage(): SessionStorage {
    const { database: db, keyValue } = durableStorage(this.ctx.storage);
    const store = new ConversationDatabase(db, keyValue);
    const events = new EventStore(db, new LongText(db));
    return { db, sessions: new ConversationSessions(store), events, clock: systemClock, ids: systemIds };
  }

  override async createSession(): Promise<string> {
    throw refused();
  }

  override async deleteSession(): Promise<void> {
    throw refused();
  }

  override async appendEvents(): Promise<void> {
    throw refused();
  }

  override async deleteEvents(): Promise<void> {
    throw refused();
  }

  override async compactSession(): Promise<never> {
    throw refused();
  }
}
