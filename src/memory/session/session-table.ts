/** The sessions of an actor, as rows of `cf_agents_sessions`. */
import { textBatches } from "../../ports/sql-batches.ts";
import type { SqlDatabase } from "../../ports/sql-database.ts";
import { bothOrders } from "../../shared/page.ts";
import type { StoredSession } from "./session-event.ts";

export interface Reservation {
  /** The first of the reserved numbers, which ascend without a gap. */
  first: number;
  /** Sequence numbers of the session's events that have one of the given ids. */
  known: number[];
}

/** At most `limit` sessions in this order of their ids, after `after` if it is set. */
export interface SessionRange {
  order: "asc" | "desc";
  limit: number;
  after?: string | undefined;
}

/** The sessions of an actor. An actor may derive them instead of storing rows. */
export interface SessionTable {
  insert(session: StoredSession): void;
  get(sessionId: string): StoredSession | undefined;
  list(range: SessionRange): StoredSession[];
  delete(sessionId: string): void;
  /**
   * Reserves a sequence number for each id of an event, records `now` as the session's last update, and finds the events
   * that already have one of the ids. Returns `undefined` if there is no such session. Call it in a transaction.
   */
  reserve(sessionId: string, eventIds: readonly string[], now: number): Reservation | undefined;
  /** Releases the last `count` reserved numbers. */
  release(sessionId: string, count: number): void;
}

const CREATE = `CREATE TABLE IF NOT EXISTS cf_agents_sessions (
  id TEXT PRIMARY KEY NOT NULL, agent_id TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  metadata TEXT, next_seq INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID`;
const INSERT = `INSERT INTO cf_agents_sessions (id, agent_id, created_at, updated_at, metadata)
  VALUES (?, ?, ?, ?, ?)`;
const COLUMNS = "id, agent_id, created_at, updated_at, metadata";
const SELECT = `SELECT ${COLUMNS} FROM cf_agents_sessions WHERE id = ?`;
const LIST = bothOrders(
  (comparison, order) =>
    `SELECT ${COLUMNS} FROM cf_agents_sessions WHERE id ${comparison} ? ORDER BY id ${order} LIMIT ?`,
);
/** SQLite sorts bytes after every text. */
const BEFORE_FIRST = { asc: "", desc: new Uint8Array() };
const DELETE = "DELETE FROM cf_agents_sessions WHERE id = ?";
const RESERVE = `UPDATE cf_agents_sessions
  SET next_seq = next_seq + json_array_length(?1), updated_at = max(updated_at, ?2) WHERE id = ?3
  RETURNING next_seq - json_array_length(?1) AS first, (
    SELECT json_group_array(event.seq) FROM json_each(?1) AS given CROSS JOIN cf_agents_events AS event
    WHERE event.session_id = ?3 AND event.id = given.value) AS known`;
const RELEASE = "UPDATE cf_agents_sessions SET next_seq = next_seq - ? WHERE id = ?";

export class SqlSessionTable implements SessionTable {
  constructor(private readonly db: SqlDatabase) {}

  createTable(): void {
    this.db.run(CREATE);
  }

  insert({ id, agent_id, created_at, updated_at, metadata }: StoredSession): void {
    this.db.run(INSERT, id, agent_id, created_at, updated_at, metadata);
  }

  get(sessionId: string): StoredSession | undefined {
    return this.db.all<StoredSession>(SELECT, sessionId)[0];
  }

  list({ order, after, limit }: SessionRange): StoredSession[] {
    return this.db.all<StoredSession>(LIST[order], after ?? BEFORE_FIRST[order], limit);
  }

  delete(sessionId: string): void {
    this.db.run(DELETE, sessionId);
  }

  reserve(sessionId: string, eventIds: readonly string[], now: number): Reservation | undefined {
    const parts = textBatches(eventIds).map(
      (ids) => this.db.all<{ first: number; known: string }>(RESERVE, ids, now, sessionId)[0],
    );
    const [first] = parts;
    if (first === undefined) return undefined;
    return { first: first.first, known: parts.flatMap((part) => JSON.parse(part?.known ?? "[]")) };
  }

  release(sessionId: string, count: number): void {
    this.db.run(RELEASE, count, sessionId);
  }
}
