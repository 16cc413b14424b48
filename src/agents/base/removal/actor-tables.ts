/** Empties an actor's own database. The SDK's tables, the mailbox and the numbers of vectors to delete stay. */
import type { ActorStores } from "../storage/schema-upgrade.ts";

/** The platform's own tables begin with an underscore. */
const TABLES = `SELECT name, sql LIKE 'CREATE VIRTUAL%' AS is_virtual FROM sqlite_master
  WHERE type = 'table' AND name NOT GLOB 'cf_agent*' AND name NOT GLOB '_*' AND name NOT GLOB 'sqlite_*'
    AND name NOT GLOB 'mailbox_*' AND name <> 'removed_vectors'
  ORDER BY is_virtual DESC`;
/** The tables of sessions stay, empty: the actor's base expects them. */
const SESSION_TABLES = `SELECT name FROM sqlite_master
  WHERE type = 'table' AND name IN ('cf_agents_sessions', 'cf_agents_events', 'cf_agents_long_text')`;

/** Maximum number of values in one list. A value may have 2 MB. */
const PAGE = 16;

/**
 * Drops the tables one by one, and empties the session tables. Virtual tables go first, because dropping them also drops their shadow
 * tables.
 */
export function dropTables({ database }: ActorStores): void {
  for (let [table] = tables(database); table !== undefined; [table] = tables(database))
    database.run(`DROP TABLE "${table.name.replaceAll('"', '""')}"`);
  for (const { name } of database.all<{ name: string }>(SESSION_TABLES)) database.run(`DELETE FROM ${name}`);
}

function tables(database: ActorStores["database"]): { name: string }[] {
  return database.all<{ name: string }>(TABLES);
}

export function deleteValues({ database, keyValue }: ActorStores, prefixes: readonly string[]): void {
  for (const prefix of prefixes) {
    for (let found = keyValue.list(prefix, PAGE); found.length > 0; found = keyValue.list(prefix, PAGE))
      database.transaction(() => {
        for (const [key] of found) keyValue.delete(key);
      });
  }
}
