/** Where sessions live: rows of `cf_agents_sessions` here; an actor may keep them elsewhere behind the same interface. */
import type { SqlDatabase } from "../../ports/sql-database.ts";
import type { StoredSession } from "./types.ts";

export interface SessionTable {
  insert(session: StoredSession): void;
  get(sessionId: string): StoredSession | undefined;
  /** At most `limit` sessions, last updated first. */
  list(limit: number): StoredSession[];
  delete(sessionId: string): void;
  /**
   * Gives out the next `count` sequence numbers of a session and notes `now` as its last update. Answers the first
   * number; `undefined` if there is no such session.
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

export class SqlSessionTable implements SessionTable {
  constructor(private readonly db: SqlDatabase) {}

  /** Creates the table if it is not there. */
  createTable(): void {
    this.db.run(CREATE);
  }

  insert(session: StoredSession): void {
    const { id, agent_id, created_at, updated_at, metadata } = session;
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
