/** Foreign session tables under today's code: from the Agents SDK's memory design, half-made, or unrelated. */
import { describe, expect, test } from "vitest";
import { openSessionTables } from "../../src/agents/base/storage/session-tables.ts";
import { SessionStore } from "../../src/memory/session/session-store.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import {
  DESIGN_EVENTS,
  DESIGN_INDEX,
  DESIGN_READ,
  DESIGN_SESSIONS,
  writeDesignRows,
} from "../support/design-tables.ts";
import { compaction, result, user } from "../support/events.ts";
import { dumpStorage } from "../support/releases/format.ts";

/** The tables of this package, without the index of ids. */
const OWN_SESSIONS = `CREATE TABLE cf_agents_sessions (
  id TEXT PRIMARY KEY NOT NULL, agent_id TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  metadata TEXT, next_seq INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID`;
const OWN_EVENTS = `CREATE TABLE cf_agents_events (
  id TEXT NOT NULL, session_id TEXT NOT NULL, seq INTEGER NOT NULL, action TEXT NOT NULL,
  created_at INTEGER NOT NULL, content TEXT, metadata TEXT, PRIMARY KEY (session_id, seq)) WITHOUT ROWID`;

function made(...statements: string[]) {
  const database = new NodeSqlDatabase();
  const keyValue = new NodeKeyValue(database);
  for (const statement of statements) database.run(statement);
  return { database, keyValue };
}

type Made = ReturnType<typeof made>;

let ulids = 0;
function storeOf(stores: Made): SessionStore {
  const clock = { now: () => 1_000 };
  return new SessionStore({ ...openSessionTables(stores), clock, ids: { ulid: () => `${++ulids}` } });
}

const shape = ({ database }: Made) =>
  database
    .all<{ sql: string }>(
      "SELECT sql FROM sqlite_master WHERE tbl_name LIKE 'cf_agents_%' AND sql IS NOT NULL ORDER BY name",
    )
    .map(({ sql }) => sql.replaceAll(/\s+/g, " "));

/** Uses every statement of the store once. */
function work(store: SessionStore): void {
  const session = store.create("helper", { a: 1 });
  store.append(session, [user("a"), result("t", "c", "x".repeat(2_000_000)), user("b")]);
  store.append(session, [user("b"), user("c")]);
  store.deleteEvents(session, ["t"]);
  expect(store.load(session).map(({ seq, id }) => [seq, id])).toEqual([
    [0, "a"],
    [2, "b"],
    [3, "c"],
  ]);
  expect(store.list().items.map(({ id }) => id)).toContain(session);
  store.delete(session);
  expect(store.load(session)).toEqual([]);
}

const SEED = [DESIGN_SESSIONS, DESIGN_EVENTS, DESIGN_INDEX];

test.each([
  ["whole", SEED],
  ["without its index", SEED.slice(0, 2)],
])("DESIGN-1 the design's tables, %s, keep their sessions and events, and continue", (_name, statements) => {
  const stores = made(...statements);
  writeDesignRows(stores.database);
  const store = storeOf(stores);
  expect(store.list({ order: "asc" }).items).toEqual([
    { id: "s-1", agent_id: "helper", created_at: 10, updated_at: 30, metadata: '{"topic":"weather"}' },
    { id: "s-2", agent_id: "helper", created_at: 20, updated_at: 20, metadata: null },
  ]);
  expect(store.load("s-1")).toEqual(DESIGN_READ);
  expect(store.loadWindow("s-1").events.map(({ seq }) => seq)).toEqual([2, 3, 4, 5, 7]);
  expect(store.loadWindow("s-1", { limit: 1 }).events.map(({ seq }) => seq)).toEqual([5, 7]);
  store.append("s-1", [...store.load("s-1"), user("next")]);
  store.append("s-2", [user("first")]);
  expect(store.load("s-1", { limit: 2 }).map(({ seq, id }) => [seq, id])).toEqual([
    [7, "e-7"],
    [8, "next"],
  ]);
  expect(store.load("s-2")).toMatchObject([{ seq: 0, id: "first" }]);
  work(store);
  const fresh = made();
  const other = storeOf(fresh);
  work(other);
  other.append(other.create("helper"), [compaction("k", 0)]);
  expect(shape(stores)).toEqual(shape(fresh));
  const before = dumpStorage(stores.database, stores.keyValue);
  storeOf(stores);
  expect(dumpStorage(stores.database, stores.keyValue)).toEqual(before);
});

describe("DESIGN-1 half-made tables are completed", () => {
  test.each([
    ["the design's sessions", [DESIGN_SESSIONS]],
    ["the design's events", [DESIGN_EVENTS, DESIGN_INDEX]],
    ["our sessions", [OWN_SESSIONS]],
    ["our events", [OWN_EVENTS]],
    ["our sessions and the design's events", [OWN_SESSIONS, DESIGN_EVENTS]],
    ["the design's sessions and our events", [DESIGN_SESSIONS, OWN_EVENTS]],
    ["our tables", [OWN_SESSIONS, OWN_EVENTS]],
  ])("%s", (_name, statements) => {
    const stores = made(...statements);
    work(storeOf(stores));
    work(storeOf(stores));
    const fresh = made();
    work(storeOf(fresh));
    expect(shape(stores)).toEqual(shape(fresh));
  });
});

describe("DESIGN-2 tables of another origin are refused, and stay unchanged", () => {
  const columns = [
    "id INTEGER PRIMARY KEY, type TEXT NOT NULL, event TEXT NOT NULL, created_at INTEGER NOT NULL",
    "id TEXT, session_id TEXT, seq INTEGER, action TEXT, content TEXT, metadata TEXT, created_at INTEGER",
    "id TEXT PRIMARY KEY, session_id TEXT, seq INTEGER, action TEXT, content TEXT, metadata TEXT, created_at INTEGER, more TEXT",
  ];
  const events = columns.map((given) => `CREATE TABLE cf_agents_events (${given})`);
  const sessions = [
    "CREATE TABLE cf_agents_sessions (id TEXT PRIMARY KEY, agent_id TEXT)",
    "CREATE VIEW cf_agents_sessions AS SELECT 1 AS id",
  ];
  test.each([
    ...events.map((statement) => ["cf_agents_events", [DESIGN_SESSIONS, statement]] as const),
    ...sessions.map((statement) => ["cf_agents_sessions", [DESIGN_EVENTS, statement]] as const),
  ])("%s %#", (table, statements) => {
    const stores = made(...statements);
    const before = dumpStorage(stores.database, stores.keyValue);
    for (let time = 0; time < 2; time++) {
      expect(() => storeOf(stores)).toThrow(
        expect.objectContaining({
          code: "UNAVAILABLE",
          message: expect.stringMatching(new RegExp(`"${table}" with unknown columns.*Rename or drop it`)),
        }),
      );
    }
    expect(dumpStorage(stores.database, stores.keyValue)).toEqual(before);
  });

  test("events that share a number are refused until the number is changed", () => {
    const stores = made(...SEED);
    writeDesignRows(stores.database);
    stores.database.run("UPDATE cf_agents_events SET seq = 1 WHERE id = 'e-7'");
    expect(() => storeOf(stores)).toThrow(
      expect.objectContaining({
        code: "UNAVAILABLE",
        message: expect.stringContaining('"s-1" have the number 1'),
      }),
    );
    stores.database.run("UPDATE cf_agents_events SET seq = 9 WHERE id = 'e-7'");
    expect(storeOf(stores).load("s-1")).toHaveLength(DESIGN_READ.length);
  });
});
