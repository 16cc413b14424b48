/** The tables of an actor's sessions, and their version. Release 0.1.0 recorded none: its tables are of version 1. */

import { EventStore } from "../../../memory/session/event-store.ts";
import { LongText } from "../../../memory/session/long-text.ts";
import { type SessionStorage, SqlSessionTable } from "../../../memory/session/session-store.ts";
import { type ActorSchema, type ActorStores, newestVersion, upgrade } from "./schema-upgrade.ts";

export const SESSIONS_SCHEMA: ActorSchema = { of: "actor's sessions", first: 1, steps: [] };

const VERSION_KEY = "dramatis:sessions";
const EXISTS = "SELECT 1 AS found FROM sqlite_master WHERE type = 'table' AND name = 'cf_agents_sessions'";

/** Creates the tables or brings them up to date. Throws `UNAVAILABLE` for newer ones. */
export function openSessionTables(stores: ActorStores): Pick<SessionStorage, "db" | "sessions" | "events"> {
  const { database, keyValue } = stores;
  const sessions = new SqlSessionTable(database);
  const events = new EventStore(database, new LongText(database));
  const record = (version: number) => keyValue.put(VERSION_KEY, version);
  /** Creates missing tables. Returns and records the version of tables without one. */
  const adopt = () =>
    database.transaction(() => {
      const isNew = database.all(EXISTS).length === 0;
      if (isNew) {
        sessions.createTable();
        events.createTable();
      }
      const version = isNew ? newestVersion(SESSIONS_SCHEMA) : SESSIONS_SCHEMA.first;
      record(version);
      return version;
    });
  upgrade(SESSIONS_SCHEMA, stores, keyValue.get<number>(VERSION_KEY) ?? adopt(), record);
  return { db: database, sessions, events };
}
