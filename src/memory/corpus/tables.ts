/** The tables of an agent's memory. The first write creates them, so agents without memory have no such tables. */
import type { SqlDatabase } from "../../ports/sql-database.ts";
import { ERASED_TABLE } from "./erased-sources.ts";

const TABLES = [
  `CREATE TABLE IF NOT EXISTS memories (
    n INTEGER PRIMARY KEY, id TEXT NOT NULL, key TEXT, content TEXT NOT NULL, long INTEGER NOT NULL, ref TEXT, hash TEXT NOT NULL,
    type TEXT NOT NULL, significance REAL NOT NULL, speaker TEXT, session TEXT, sequence INTEGER, time INTEGER, metadata TEXT NOT NULL,
    user_id TEXT, conversation_id TEXT, state TEXT NOT NULL, hidden INTEGER NOT NULL, tainted INTEGER NOT NULL, own INTEGER NOT NULL,
    valid_from INTEGER NOT NULL, valid_to INTEGER, version INTEGER NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL)`,
  "CREATE INDEX IF NOT EXISTS memories_by_hash ON memories (hash)",
  "CREATE INDEX IF NOT EXISTS memories_by_key ON memories (key, user_id, conversation_id) WHERE key IS NOT NULL",
  "CREATE INDEX IF NOT EXISTS memories_condemned ON memories (n) WHERE hidden = 2",
  "CREATE INDEX IF NOT EXISTS memories_by_end ON memories (valid_to) WHERE valid_to IS NOT NULL AND state = 'current'",
  `CREATE TABLE IF NOT EXISTS memory_log (
    n INTEGER NOT NULL, version INTEGER NOT NULL, entry TEXT NOT NULL, PRIMARY KEY (n, version)) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS memory_sources (
    conversation_id TEXT NOT NULL, turn_id TEXT NOT NULL, n INTEGER NOT NULL, entries TEXT, stated_version INTEGER,
    PRIMARY KEY (conversation_id, turn_id, n)) WITHOUT ROWID`,
  "CREATE INDEX IF NOT EXISTS memory_sources_by_memory ON memory_sources (n)",
  `CREATE TABLE IF NOT EXISTS memory_parts (
    part INTEGER NOT NULL, n INTEGER NOT NULL, part_id TEXT NOT NULL, PRIMARY KEY (part, n)) WITHOUT ROWID`,
  "CREATE INDEX IF NOT EXISTS memory_parts_by_memory ON memory_parts (n)",
  "CREATE TABLE IF NOT EXISTS memory_texts (n INTEGER PRIMARY KEY, version INTEGER NOT NULL, text TEXT NOT NULL)",
  `CREATE TABLE IF NOT EXISTS memory_requests (
    day INTEGER NOT NULL, key TEXT NOT NULL, hash TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (day, key)) WITHOUT ROWID`,
  "CREATE INDEX IF NOT EXISTS memory_requests_by_memory ON memory_requests (id)",
  `CREATE TABLE IF NOT EXISTS memory_offers (
    day INTEGER NOT NULL, operation_id TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (day, operation_id)) WITHOUT ROWID`,
  "CREATE TABLE IF NOT EXISTS memory_counts (id INTEGER PRIMARY KEY, memories INTEGER NOT NULL, archived INTEGER NOT NULL)",
  "INSERT OR IGNORE INTO memory_counts (id, memories, archived) VALUES (1, 0, 0)",
  `CREATE TABLE IF NOT EXISTS memory_tombstones (
    n INTEGER PRIMARY KEY, id TEXT NOT NULL, at INTEGER NOT NULL, erased INTEGER NOT NULL, hash TEXT)`,
  ERASED_TABLE,
  "CREATE INDEX IF NOT EXISTS memory_tombstones_by_hash ON memory_tombstones (hash) WHERE hash IS NOT NULL",
  "CREATE TABLE IF NOT EXISTS memory_rederive (n INTEGER PRIMARY KEY)",
  `CREATE TABLE IF NOT EXISTS memory_pending (
    n INTEGER PRIMARY KEY, seq INTEGER NOT NULL, objects TEXT, deleted INTEGER NOT NULL)`,
];

export function createTables(database: SqlDatabase): void {
  for (const statement of TABLES) database.run(statement);
}
