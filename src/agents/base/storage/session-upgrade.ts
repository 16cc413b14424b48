/**
 * Converts the session tables of the Agents SDK's memory design. They have the same names as the tables of this package.
 * One of the two tables may be missing, or already be a table of this package.
 *
 * DESIGN-1  Sessions and events of the design's tables keep their ids, numbers, times and content, and the next number of a
 *         session follows its newest event.
 * DESIGN-2  Tables with other columns, and events that share a number, are rejected with `UNAVAILABLE`, without a change. The message has
 *           the remedy.
 */
import type { SqlDatabase } from "../../../ports/sql-database.ts";
import { StorageRefusal } from "./schema-upgrade.ts";

type Table = "cf_agents_sessions" | "cf_agents_events";

const COLUMNS = "SELECT name, pk FROM pragma_table_info(?) ORDER BY name";

const SESSION_COLUMNS = ["agent_id", "created_at", "id", "metadata", "updated_at"];
const EVENT_COLUMNS = ["action", "content", "created_at", "id", "metadata", "seq", "session_id"];

const CREATE_SESSIONS = `CREATE TABLE cf_agents_sessions (
  id TEXT PRIMARY KEY NOT NULL, agent_id TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  metadata TEXT, next_seq INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID`;
const CREATE_EVENTS = `CREATE TABLE cf_agents_events (
  id TEXT NOT NULL, session_id TEXT NOT NULL, seq INTEGER NOT NULL, action TEXT NOT NULL,
  created_at INTEGER NOT NULL, content TEXT, metadata TEXT, PRIMARY KEY (session_id, seq)) WITHOUT ROWID`;
const HAS_COMPACTION = "SELECT 1 AS found FROM cf_agents_events WHERE action = 'compaction' LIMIT 1";
const INDEX_COMPACTIONS = `CREATE INDEX cf_agents_compactions ON cf_agents_events (session_id, seq)
  WHERE action = 'compaction'`;
const INDEX_IDS = "CREATE INDEX IF NOT EXISTS cf_agents_event_ids ON cf_agents_events (session_id, id)";

const SET_SESSIONS_ASIDE = "ALTER TABLE cf_agents_sessions RENAME TO cf_agents_sessions_before";
const COPY_SESSIONS = `INSERT INTO cf_agents_sessions (id, agent_id, created_at, updated_at, metadata, next_seq)
  SELECT id, agent_id, created_at, updated_at, metadata, coalesce(
    (SELECT max(event.seq) + 1 FROM cf_agents_events AS event WHERE event.session_id = before.id), 0)
  FROM cf_agents_sessions_before AS before`;
const DROP_SESSIONS = "DROP TABLE cf_agents_sessions_before";

const SHARED_NUMBER = `SELECT session_id, seq FROM cf_agents_events GROUP BY session_id, seq
  HAVING count(*) > 1 LIMIT 1`;
const SET_EVENTS_ASIDE = "ALTER TABLE cf_agents_events RENAME TO cf_agents_events_before";
const COPY_EVENTS = `INSERT INTO cf_agents_events (id, session_id, seq, action, created_at, content, metadata)
  SELECT id, session_id, seq, action, created_at, content, metadata FROM cf_agents_events_before
  ORDER BY session_id, seq`;
const DROP_EVENTS = "DROP TABLE cf_agents_events_before";

/** Converts both tables. Call it inside a transaction. Throws `UNAVAILABLE` (DESIGN-2). */
export function alignSessionTables(database: SqlDatabase): void {
  alignEvents(database);
  alignSessions(database);
  database.run(INDEX_IDS);
}

function alignEvents(database: SqlDatabase): void {
  const { columns, key } = shapeOf(database, "cf_agents_events");
  if (columns.length === 0) {
    database.run(CREATE_EVENTS);
    return;
  }
  const isEvents = String(columns) === String(EVENT_COLUMNS);
  if (isEvents && key === "seq,session_id") return;
  if (!isEvents || key !== "id") throw foreign("cf_agents_events", columns);
  const [shared] = database.all<{ session_id: string; seq: number }>(SHARED_NUMBER);
  if (shared !== undefined) {
    const { session_id, seq } = shared;
    const message = `Two events of the session "${session_id}" have the number ${seq}. Change the \`seq\` of one of them with an SQL statement.`;
    throw new StorageRefusal(message);
  }
  database.run(SET_EVENTS_ASIDE);
  database.run(CREATE_EVENTS);
  database.run(COPY_EVENTS);
  database.run(DROP_EVENTS);
  if (database.all(HAS_COMPACTION).length > 0) database.run(INDEX_COMPACTIONS);
}

function alignSessions(database: SqlDatabase): void {
  const { columns, key } = shapeOf(database, "cf_agents_sessions");
  if (columns.length === 0) {
    database.run(CREATE_SESSIONS);
    return;
  }
  const given = columns.filter((name) => name !== "next_seq");
  if (String(given) !== String(SESSION_COLUMNS) || key !== "id") throw foreign("cf_agents_sessions", columns);
  if (given.length < columns.length) return;
  database.run(SET_SESSIONS_ASIDE);
  database.run(CREATE_SESSIONS);
  database.run(COPY_SESSIONS);
  database.run(DROP_SESSIONS);
}

/** Returns the names of a table's columns and of its primary key. Both are empty for a missing table. */
function shapeOf(database: SqlDatabase, table: Table): { columns: string[]; key: string } {
  const columns = database.all<{ name: string; pk: number }>(COLUMNS, table);
  return {
    columns: columns.map(({ name }) => name),
    key: columns.flatMap(({ name, pk }) => (pk > 0 ? name : [])).join(),
  };
}

function foreign(table: Table, columns: readonly string[]): StorageRefusal {
  const message = `This actor has a table "${table}" with unknown columns: ${columns.join(", ")}. Rename or drop it with an SQL statement. The actor creates its own table at the next start.`;
  return new StorageRefusal(message);
}
