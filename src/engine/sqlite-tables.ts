/**
 * The tables of the engine's conversations in SQLite.
 *
 * STORE-6  A database whose tables a newer release has changed is refused with `UNAVAILABLE`, and nothing is written to it.
 */
import type { SqlDatabase } from "../ports/sql-database.ts";
import { DramatisError } from "../shared/errors.ts";

/** The version of the tables below, which stands in the database beside them. */
const VERSION = 1;

const TABLES = [
  `CREATE TABLE IF NOT EXISTS engine_conversations (
    id TEXT PRIMARY KEY, written INTEGER NOT NULL, body TEXT NOT NULL) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS engine_messages (
    conversation_id TEXT NOT NULL, at INTEGER NOT NULL, n INTEGER NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (conversation_id, at, n)) WITHOUT ROWID`,
  `CREATE UNIQUE INDEX IF NOT EXISTS engine_message_ids ON engine_messages (conversation_id, id)`,
  `CREATE TABLE IF NOT EXISTS engine_turns (
    conversation_id TEXT NOT NULL, at INTEGER NOT NULL, n INTEGER NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (conversation_id, at, n)) WITHOUT ROWID`,
  `CREATE UNIQUE INDEX IF NOT EXISTS engine_turn_ids ON engine_turns (conversation_id, id)`,
];

/** Makes the tables where they are not there. Throws as STORE-6 says. */
export function openTables(database: SqlDatabase): void {
  database.transaction(() => {
    database.run("CREATE TABLE IF NOT EXISTS engine_schema (version INTEGER NOT NULL)");
    const [stored] = database.all<{ version: number }>("SELECT version FROM engine_schema LIMIT 1");
    if (stored !== undefined && stored.version > VERSION) throw newer(stored.version);
    for (const statement of TABLES) database.run(statement);
    if (stored === undefined) database.run("INSERT INTO engine_schema (version) VALUES (?)", VERSION);
  });
}

function newer(version: number): DramatisError {
  return new DramatisError(
    "UNAVAILABLE",
    `The conversations of this database have schema version ${version}, and this code knows versions up to ${VERSION}: deploy the release that wrote them, or a later one.`,
    { retriable: true },
  );
}
