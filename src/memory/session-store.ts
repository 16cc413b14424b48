/**
 * Sessions and their events together: what an actor's session methods do, in a few statements each.
 *
 * SESSIONS-1  Sequence numbers of a session start at 0, ascend without a gap and are never given out twice, not even
 *            after the newest events were deleted.
 * SESSIONS-2  Appending to a session and deleting one happen as a whole or not at all.
 */
import type { Clock } from "../ports/clock.ts";
import type { Ids } from "../ports/ids.ts";
import type { SqlDatabase } from "../ports/sql-database.ts";
import { DramatisError } from "../shared/errors.ts";
import type { EventStore } from "./event-store.ts";
import type { SessionTable } from "./session-table.ts";
import type { Facts, LoadEventsOptions, SessionEvent, StoredSession } from "./types.ts";

/** How many sessions a list gives at most. */
const MAX_LISTED_SESSIONS = 1000;

/** What a session store is made of. */
export interface SessionStorage {
  db: SqlDatabase;
  sessions: SessionTable;
  events: EventStore;
  clock: Pick<Clock, "now">;
  ids: Ids;
}

export class SessionStore {
  constructor(private readonly storage: SessionStorage) {}

  /** Creates a session and answers its id. */
  create(agentId: string, metadata?: Facts): string {
    const { sessions, clock, ids } = this.storage;
    const id = `sess_${ids.ulid()}`;
    const now = clock.now();
    sessions.insert({
      id,
      agent_id: agentId,
      created_at: now,
      updated_at: now,
      metadata: metadata === undefined ? null : JSON.stringify(metadata),
    });
    return id;
  }

  get(sessionId: string): StoredSession | null {
    return this.storage.sessions.get(sessionId) ?? null;
  }

  /** The sessions, last updated first, at most 1 000. */
  list(): StoredSession[] {
    return this.storage.sessions.list(MAX_LISTED_SESSIONS);
  }

  /** Deletes a session and its events; one that does not exist is fine. */
  delete(sessionId: string): void {
    const { db, sessions, events } = this.storage;
    db.transaction(() => {
      sessions.delete(sessionId);
      events.deleteSession(sessionId);
    });
  }

  load(sessionId: string, options?: LoadEventsOptions): SessionEvent[] {
    return this.storage.events.load(sessionId, options);
  }

  /** Appends events in the given order. Throws `NOT_FOUND` if there is no such session. */
  append(sessionId: string, events: readonly SessionEvent[]): void {
    const { db, sessions, clock } = this.storage;
    if (events.length === 0) {
      if (sessions.get(sessionId) === undefined) throw unknownSession(sessionId);
      return;
    }
    db.transaction(() => {
      const first = sessions.reserve(sessionId, events.length, clock.now());
      if (first === undefined) throw unknownSession(sessionId);
      this.storage.events.append(sessionId, first, events);
    });
  }

  /** Deletes events of a session by id. */
  deleteEvents(sessionId: string, eventIds: readonly string[]): void {
    this.storage.events.delete(sessionId, eventIds);
  }
}

function unknownSession(sessionId: string): DramatisError {
  return new DramatisError(
    "NOT_FOUND",
    `There is no session "${sessionId}": create it with createSession() first.`,
  );
}
