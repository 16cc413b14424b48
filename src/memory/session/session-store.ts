/**
 * Stores sessions together with their events, in a few statements per operation.
 *
 * SESSIONS-1  Sequence numbers of a session start at 0, ascend without a gap and are never reused, not even after the
 *            newest events were deleted.
 * SESSIONS-2  Appending to a session and deleting a session are atomic.
 * SESSIONS-3  An id names one event of its session. Appending skips an event that is there, so a caller may send a batch
 *            again. An event that is there with other content is refused with `CONFLICT`; its number and its time do not
 *            count as content.
 * SESSIONS-4  Sessions are listed in pages, by id, so the newest come first or last. A page reads its own rows only.
 */
import type { Clock } from "../../ports/clock.ts";
import type { Ids } from "../../ports/ids.ts";
import type { SqlDatabase } from "../../ports/sql-database.ts";
import { conflict, type DramatisError, notFound } from "../../shared/errors.ts";
import type { Facts } from "../../shared/json.ts";
import { DEFAULT_PAGE_SIZE, type Page, type PageOptions, pageOf } from "../../shared/page.ts";
import { contentText } from "./event-rows.ts";
import type { EventStore, EventWindow, LoadWindowOptions } from "./event-store.ts";
import {
  EventAction,
  type LoadEventsOptions,
  type SessionEvent,
  type StoredSession,
} from "./session-event.ts";
import type { SessionTable } from "./session-table.ts";

export interface SessionStorage {
  db: SqlDatabase;
  sessions: SessionTable;
  events: EventStore;
  clock: Pick<Clock, "now">;
  ids: Ids;
}

/** The state of a session at a read: its newest compaction, and the number of events from `from` to below `before`. */
export interface ExpectedSession {
  /** Id of the newest compaction, or `null`. */
  newest: string | null;
  from: number;
  before: number;
  count: number;
}

export class SessionStore {
  constructor(private readonly ports: SessionStorage) {}

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

  /** Returns a page of the sessions, by default those created last first (SESSIONS-4). A cursor is a session's id. */
  list({ order = "desc", limit = DEFAULT_PAGE_SIZE, cursor }: PageOptions = {}): Page<StoredSession> {
    const rows = this.ports.sessions.list({ order, after: cursor, limit: limit + 1 });
    return pageOf(
      rows,
      limit,
      (row) => row,
      ({ id }) => id,
    );
  }

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

  /**
   * Appends the events that are not there yet, in the given order (SESSIONS-3). Throws `NOT_FOUND` if there is no such
   * session, `CONFLICT` for an id with other content.
   */
  append(sessionId: string, events: readonly SessionEvent[]): void {
    const { db, sessions, clock } = this.ports;
    if (events.length === 0) {
      this.#mustExist(sessionId);
      return;
    }
    db.transaction(() => {
      const given = withoutKnown(sessionId, events, []);
      const ids = given.map(({ id }) => id);
      const reserved = sessions.reserve(sessionId, ids, clock.now());
      if (reserved === undefined) throw unknownSession(sessionId);
      const added = this.#withoutStored(sessionId, given, reserved.known);
      if (added.length < given.length) sessions.release(sessionId, given.length - added.length);
      this.ports.events.append(sessionId, reserved.first, added);
    });
  }

  #withoutStored(sessionId: string, given: readonly SessionEvent[], known: readonly number[]) {
    if (known.length === 0) return given;
    return withoutKnown(sessionId, given, this.ports.events.at(sessionId, known));
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
        throw conflict(message, { retriable: true });
      }
      const id = ids.ulid();
      const base = { id, sessionId, seq: 0, content, timestamp: clock.now() };
      this.append(sessionId, [{ ...base, action: EventAction.COMPACTION, compactedEventCount: before }]);
      return id;
    });
  }

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

/**
 * Returns the events except those already in `known` or earlier in `events`. Throws `CONFLICT` if all known events with the same id have
 * other content: releases before 0.4.0 may have stored an id twice.
 */
function withoutKnown(
  sessionId: string,
  events: readonly SessionEvent[],
  known: readonly SessionEvent[],
): SessionEvent[] {
  const found = Map.groupBy(known, ({ id }) => id);
  return events.filter((event) => {
    const same = found.get(event.id);
    if (same === undefined) {
      found.set(event.id, [event]);
      return true;
    }
    const content = contentText(event);
    if (same.some((other) => contentText(other) === content)) return false;
    const message = `The session "${sessionId}" has an event "${event.id}" with other content. Give a new event an id of its own, or send the same content again.`;
    throw conflict(message);
  });
}

function unknownSession(sessionId: string): DramatisError {
  return notFound(`Session "${sessionId}" not found. Create it with createSession() first.`);
}
