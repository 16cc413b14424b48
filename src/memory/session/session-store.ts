/**
 * Sessions and their events together: what an actor's session methods do, in a few statements each.
 *
 * SESSIONS-1  Sequence numbers of a session start at 0, ascend without a gap and are never given out twice, not even
 *            after the newest events were deleted.
 * SESSIONS-2  Appending to a session and deleting one happen as a whole or not at all.
 */
import type { Clock } from "../../ports/clock.ts";
import type { Ids } from "../../ports/ids.ts";
import type { SqlDatabase } from "../../ports/sql-database.ts";
import { DramatisError } from "../../shared/errors.ts";
import type { Facts } from "../../shared/json.ts";
import { compacted } from "./compacted.ts";
import type { EventStore, EventWindow, LoadWindowOptions } from "./event-store.ts";
import type { SessionTable } from "./session-table.ts";
import { EventAction, type LoadEventsOptions, type SessionEvent, type StoredSession } from "./types.ts";

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

/** How far a session is compacted. */
export interface CompactionState {
  /** Id of the newest compaction; `null` if there is none. */
  newest: string | null;
  /** Events with a lower number are covered. */
  covered: number;
}

/** A session as it was read: its newest compaction, and how many events have a number from `from` to `before`. */
export interface ExpectedSession extends Pick<CompactionState, "newest"> {
  from: number;
  before: number;
  count: number;
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

  /** A window of a session's events (EVENTS-4). */
  loadWindow(sessionId: string, options?: LoadWindowOptions): EventWindow {
    return this.storage.events.loadWindow(sessionId, options);
  }

  /** What a compaction starts from. Throws `NOT_FOUND` if there is no such session. */
  readForCompaction(sessionId: string, options?: LoadWindowOptions): EventWindow & CompactionState {
    if (this.get(sessionId) === null) throw unknownSession(sessionId);
    const window = this.loadWindow(sessionId, options);
    return { ...window, covered: compacted(window.events).covered, newest: this.newestCompaction(sessionId) };
  }

  /** How many events have a number from `from` on and below `before`. */
  count(sessionId: string, from: number, before: number): number {
    return this.storage.events.count(sessionId, from, before);
  }

  /**
   * Appends a compaction of the events below `expected.before`, if the session is as it was read; answers the event's
   * id. Throws `NOT_FOUND` if it was deleted, `CONFLICT` if it was compacted, or lost an event that would be covered.
   */
  appendCompaction(sessionId: string, content: string, expected: ExpectedSession): string {
    const { db, clock, ids } = this.storage;
    const { newest, from, before, count } = expected;
    return db.transaction(() => {
      if (this.get(sessionId) === null) throw unknownSession(sessionId);
      if (this.newestCompaction(sessionId) !== newest || this.count(sessionId, from, before) !== count) {
        const message = `The session "${sessionId}" was compacted, or events of it were deleted, meanwhile: try again.`;
        throw new DramatisError("CONFLICT", message, { retriable: true });
      }
      const id = ids.ulid();
      const base = { id, sessionId, seq: 0, content, createdAt: clock.now() };
      this.append(sessionId, [{ ...base, action: EventAction.COMPACTION, compactedEventCount: before }]);
      return id;
    });
  }

  private newestCompaction(sessionId: string): string | null {
    return this.loadWindow(sessionId, { limit: 0 }).events[0]?.id ?? null;
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
