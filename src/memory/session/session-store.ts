/**
 * Stores sessions together with their events, in a few statements per operation.
 *
 * SESSIONS-1  Sequence numbers of a session start at 0, ascend without a gap and are never reused, not even after the
 *            newest events were deleted.
 * SESSIONS-2  Appending to a session and deleting a session are atomic.
 */
import type { Clock } from "../../ports/clock.ts";
import type { Ids } from "../../ports/ids.ts";
import type { SqlDatabase } from "../../ports/sql-database.ts";
import { DramatisError } from "../../shared/errors.ts";
import type { Facts } from "../../shared/json.ts";
import type { EventStore, EventWindow, LoadWindowOptions } from "./event-store.ts";
import { EventAction, type LoadEventsOptions, type SessionEvent, type StoredSession } from "./types.ts";

/** Maximum length of a list of sessions. */
const MAX_LISTED_SESSIONS = 1000;

/** The sessions of an actor. An actor may derive them instead of storing rows. */
export interface SessionTable {
  insert(session: StoredSession): void;
  get(sessionId: string): StoredSession | undefined;
  /** Returns at most `limit` sessions, last updated first. */
  list(limit: number): StoredSession[];
  delete(sessionId: string): void;
  /**
   * Reserves the next `count` sequence numbers of a session and records `now` as its last update. Returns the first
   * number, or `undefined` if there is no such session.
   */
  reserve(sessionId: string, count: number, now: number): number | undefined;
}

const CREATE = `CREATE TABLE IF NOT EXISTS cf_agents_sessions (
  id TEXT PRIMARY KEY NOT NULL, agent_id TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  metadata TEXT, next_seq INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID`;
const INSERT = `INSERT INTO cf_agents_sessions (id, agent_id, created_at, updated_at, metadata)
  VALUES (?, ?, ?, ?, ?)`;
const COLUMNS = "id, agent_id, created_at, updated_at, metadata";
const SELECT = `SELECT ${COLUMNS} FROM cf_agents_sessions WHERE id = ?`;
const LIST = `SELECT ${COLUMNS} FROM cf_agents_sessions ORDER BY updated_at DESC, id DESC LIMIT ?`;
const DELETE = "DELETE FROM cf_agents_sessions WHERE id = ?";
const RESERVE = `UPDATE cf_agents_sessions SET next_seq = next_seq + ?1, updated_at = max(updated_at, ?2)
  WHERE id = ?3 RETURNING next_seq - ?1 AS first`;

/** Sessions as rows of `cf_agents_sessions`. */
export class SqlSessionTable implements SessionTable {
  constructor(private readonly db: SqlDatabase) {}

  /** Creates the table if it does not exist. */
  createTable(): void {
    this.db.run(CREATE);
  }

  insert({ id, agent_id, created_at, updated_at, metadata }: StoredSession): void {
    this.db.run(INSERT, id, agent_id, created_at, updated_at, metadata);
  }

  get(sessionId: string): StoredSession | undefined {
    return this.db.all<StoredSession>(SELECT, sessionId)[0];
  }

  list(limit: number): StoredSession[] {
    return this.db.all<StoredSession>(LIST, limit);
  }

  delete(sessionId: string): void {
    this.db.run(DELETE, sessionId);
  }

  reserve(sessionId: string, count: number, now: number): number | undefined {
    return this.db.all<{ first: number }>(RESERVE, count, now, sessionId)[0]?.first;
  }
}

/** The ports of a session store. */
export interface SessionStorage {
  db: SqlDatabase;
  sessions: SessionTable;
  events: EventStore;
  clock: Pick<Clock, "now">;
  ids: Ids;
}

/** The state of a session at a read: its newest compaction, and the number of events from `from` to below `before`. */
export interface ExpectedSession {
  /** Id of the newest compaction; `null` if there is none. */
  newest: string | null;
  from: number;
  before: number;
  count: number;
}

export class SessionStore {
  constructor(private readonly ports: SessionStorage) {}

  /** Creates a session and returns its id. */
  create(agentId: string, metadata?: Facts): string {
    const { sessions, clock, ids } = this.ports;
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
    return this.ports.sessions.get(sessionId) ?? null;
  }

  /** Returns the sessions, last updated first, at most 1 000. */
  list(): StoredSession[] {
    return this.ports.sessions.list(MAX_LISTED_SESSIONS);
  }

  /** Deletes a session with its events, if it exists. */
  delete(sessionId: string): void {
    const { db, sessions, events } = this.ports;
    db.transaction(() => {
      sessions.delete(sessionId);
      events.deleteSession(sessionId);
    });
  }

  load(sessionId: string, options?: LoadEventsOptions): SessionEvent[] {
    return this.ports.events.load(sessionId, options);
  }

  /** Appends events in the given order. Throws `NOT_FOUND` if there is no such session. */
  append(sessionId: string, events: readonly SessionEvent[]): void {
    const { db, sessions, clock } = this.ports;
    if (events.length === 0) {
      this.#mustExist(sessionId);
      return;
    }
    db.transaction(() => {
      const first = sessions.reserve(sessionId, events.length, clock.now());
      if (first === undefined) throw unknownSession(sessionId);
      this.ports.events.append(sessionId, first, events);
    });
  }

  /** Returns the newest events that no compaction covers (EVENTS-4). */
  loadWindow(sessionId: string, options?: LoadWindowOptions): EventWindow {
    return this.ports.events.loadWindow(sessionId, options);
  }

  /** Returns the window that a compaction starts from. Throws `NOT_FOUND` if there is no such session. */
  readForCompaction(
    sessionId: string,
    options: LoadWindowOptions,
  ): EventWindow & Pick<ExpectedSession, "newest"> {
    this.#mustExist(sessionId);
    return { ...this.loadWindow(sessionId, options), newest: this.#newestCompaction(sessionId) };
  }

  /** Counts the events with a sequence number from `from` to below `before`. */
  count(sessionId: string, from: number, before: number): number {
    return this.ports.events.count(sessionId, from, before);
  }

  /**
   * Appends a compaction of the events below `expected.before`, and returns its id. Throws `NOT_FOUND` if the session was
   * deleted, `CONFLICT` if it was compacted or lost an event to be covered.
   */
  appendCompaction(sessionId: string, content: string, expected: ExpectedSession): string {
    const { db, clock, ids } = this.ports;
    const { newest, from, before, count } = expected;
    return db.transaction(() => {
      this.#mustExist(sessionId);
      if (this.#newestCompaction(sessionId) !== newest || this.count(sessionId, from, before) !== count) {
        const message = `The session "${sessionId}" was compacted, or lost events, in the meantime. Try again.`;
        throw new DramatisError("CONFLICT", message, { retriable: true });
      }
      const id = ids.ulid();
      const base = { id, sessionId, seq: 0, content, createdAt: clock.now() };
      this.append(sessionId, [{ ...base, action: EventAction.COMPACTION, compactedEventCount: before }]);
      return id;
    });
  }

  /** Deletes events of a session by id. */
  deleteEvents(sessionId: string, eventIds: readonly string[]): void {
    this.ports.events.delete(sessionId, eventIds);
  }

  #newestCompaction(sessionId: string): string | null {
    return this.loadWindow(sessionId, { limit: 0 }).events[0]?.id ?? null;
  }

  #mustExist(sessionId: string): void {
    if (this.get(sessionId) === null) throw unknownSession(sessionId);
  }
}

function unknownSession(sessionId: string): DramatisError {
  return new DramatisError(
    "NOT_FOUND",
    `There is no session "${sessionId}": create it with createSession() first.`,
  );
}
