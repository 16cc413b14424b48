/** The tables of an actor's sessions, and their version. Tables without a version were created by other software. */
import { EventStore } from "../../../memory/session/event-store.ts";
import { LongText } from "../../../memory/session/long-text.ts";
import type { SessionStorage } from "../../../memory/session/session-store.ts";
import { SqlSessionTable } from "../../../memory/session/session-table.ts";
import { type ActorSchema, type ActorStores, newestVersion, upgrade } from "./schema-upgrade.ts";
import { alignSessionTables } from "./session-upgrade.ts";

export const SESSIONS_SCHEMA: ActorSchema = { of: "actor's sessions", first: 1, steps: [] };

const VERSION_KEY = "dramatis:sessions";
const EXISTS = `SELECT 1 AS found FROM sqlite_master
  WHERE type IN ('table', 'view') AND name IN ('cf_agents_sessions', 'cf_agents_events')`;

/** Creates or upgrades the tables. Throws `UNAVAILABLE` for tables of a newer release, and for tables that cannot be converted. */
export function openSessionTables(stores: ActorStores): Pick<SessionStorage, "db" | "sessions" | "events"> {
  const { database, keyValue } = stores;
  const sessions = new SqlSessionTable(database);
  const events = new EventStore(database, new LongText(database));
  const record = (version: number) => keyValue.put(VERSION_KEY, version);
  /** Creates the tables, or converts tables of other software. Returns their version. */
  const adopt = () =>
    database.transaction(() => {
      if (database.all(EXISTS).length > 0) alignSessionTables(database);
      else {
        sessions.createTable();
        events.createTable();
        events.indexIds();
      }
      const version = newestVersion(SESSIONS_SCHEMA);
      record(version);
      return version;
    });
  upgrade(SESSIONS_SCHEMA, stores, keyValue.get<number>(VERSION_KEY) ?? adopt(), record);
  return { db: database, sessions, events };
}
