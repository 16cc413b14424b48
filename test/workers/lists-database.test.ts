/** The lists of a tenant in one of several D1 databases, on the real Worker. */
import { runDurableObjectAlarm } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { ulid } from "ulid";
import { afterAll, expect, test, vi } from "vitest";
import { ListsMove } from "../../src/d1/move-lists.ts";
import { D1Queries } from "../../src/d1/queries.ts";
import { systemClock } from "../../src/ports/system.ts";
import { ADMIN, call, createAgent, createConversation, expectProblem, get, send } from "./http-client.ts";

const PATH = "/api/lists/database";
/** Until no isolate uses an old place. */
const SETTLED_MS = 31_000;

afterAll(() => void vi.useRealTimers());

function pass(milliseconds: number): void {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + milliseconds });
}

/** The bindings of the test's Worker. */
const { DB, DB_1 } = env as unknown as Record<"DB" | "DB_1", D1Database>;

/** Counts the rows of a tenant in a table. A database without the table has none. */
async function count(database: D1Database, table: string, tenant: string): Promise<number> {
  const row = await database
    .prepare(`SELECT count(*) AS rows FROM ${table} WHERE tenant = ?1`)
    .bind(tenant)
    .first<{ rows: number }>()
    .catch(() => null);
  return row?.rows ?? 0;
}

interface Lists {
  agents: { id: string }[];
  conversations: { id: string }[];
  turns: { id: string }[];
}

async function listsOf(principal: typeof ADMIN) {
  const ids = async (name: keyof Lists) => {
    const { status, body } = await get(`/api/${name}?limit=200`, principal);
    expect(status, JSON.stringify(body)).toBe(200);
    return body[name].map(({ id }) => id);
  };
  return {
    agents: await ids("agents"),
    conversations: await ids("conversations"),
    turns: await ids("turns"),
  };
}

/** Repeats the command until the command reports no more rows. */
async function moveTo(database: string, principal: typeof ADMIN) {
  for (;;) {
    const { status, body } = await call("PUT", PATH, { database }, principal);
    expect(status, JSON.stringify(body)).toBe(200);
    const { continueInMs } = body as { continueInMs?: number };
    if (continueInMs === undefined) return body;
    pass(continueInMs + 1);
  }
}

async function fill(principal: typeof ADMIN) {
  const agent = await createAgent(undefined, principal);
  const conversation = await createConversation(agent, principal);
  await expect.poll(async () => (await listsOf(principal)).conversations).toContain(conversation);
  return agent;
}

test("I6 DATABASE-1 DATABASE-3 LISTS-1 LISTS-2 lists move with all rows, stay readable, and hold what came during the move", async () => {
  const movers = { ...ADMIN, tenant: "movers" };
  const stayers = { ...ADMIN, tenant: "stayers" };
  for (const principal of [movers, stayers]) await fill(principal);
  const agent = await fill(movers);
  const before = await listsOf(movers);
  const others = await listsOf(stayers);

  const begun = await call("PUT", PATH, { database: "DB_1" }, movers);
  expect(begun.body).toMatchObject({ database: "DB", target: "DB_1" });
  // The agent is created, and the refused row follows after the move.
  const late = await createAgent(undefined, movers);
  expect((await listsOf(movers)).agents).toEqual(before.agents);
  expect(await moveTo("DB_1", movers)).toEqual({ database: "DB_1" });
  // The agent's wake-up repeats its row. The clock of the runtime has not advanced.
  await runDurableObjectAlarm(exports.Agent.getByName(`movers:${late}`));
  await expect.poll(async () => (await listsOf(movers)).agents).toEqual([...before.agents, late]);
  expect((await listsOf(movers)).conversations).toEqual(before.conversations);
  expect(await listsOf(stayers)).toEqual(others);
  expect(await count(DB, "agents", "movers")).toBe(0);
  expect(await count(DB, "conversations", "movers")).toBe(0);
  expect(await count(DB_1, "conversations", "movers")).toBe(before.conversations.length);
  expect(await count(DB_1, "agents", "stayers")).toBe(0);

  const next = await createConversation(agent, movers);
  await expect.poll(async () => (await listsOf(movers)).conversations).toContain(next);
  expect(await count(DB, "conversations", "movers")).toBe(0);
  const after = await listsOf(movers);
  expect(await moveTo("DB", movers)).toEqual({ database: "DB" });
  expect(await listsOf(movers)).toEqual(after);
  expect(await count(DB_1, "agents", "movers")).toBe(0);
});

test("I6 LISTS-3 a move can be cancelled, one at a time is possible, and a missing database is named", async () => {
  const principal = { ...ADMIN, tenant: "undecided" };
  await fill(principal);
  const before = await listsOf(principal);
  expectProblem(await call("PUT", PATH, { database: "DB_2" }, principal), 422, "INVALID_INPUT", "/database");
  expectProblem(await call("PUT", PATH, { database: "OTHER" }, principal), 422, "INVALID_INPUT", "/database");
  await call("PUT", PATH, { database: "DB_1" }, principal);
  const cancelled = await call("PUT", PATH, { database: "DB" }, principal);
  expect(cancelled.body).toMatchObject({ database: "DB" });
  expectProblem(await call("PUT", PATH, { database: "DB_1" }, principal), 409, "CONFLICT");
  expect(await moveTo("DB", principal)).toEqual({ database: "DB" });
  expect(await listsOf(principal)).toEqual(before);
  expect(await get(PATH, principal)).toMatchObject({ status: 200, body: { database: "DB" } });
});

test("I6 DATABASE-2 DATABASE-4 a Worker with one database reads no places, unless a tenant has one", async () => {
  const statements: string[] = [];
  const counted = new Proxy(DB_1, {
    get(target, name) {
      if (name !== "prepare") return Reflect.get(target, name)?.bind(target);
      return (sql: string) => {
        if (sql.includes("tenant_databases LIMIT")) statements.push(sql);
        return target.prepare(sql);
      };
    },
  });
  const alone = () => new ListsMove(new Map([["DB", counted]]), systemClock).databases;
  await counted.prepare("DELETE FROM tenant_databases").run();
  const databases = alone();
  for (let read = 0; read < 3; read++) await databases.forReads("any");
  await databases.forWrites("other");
  expect(statements).toHaveLength(1);
  await counted.prepare("INSERT INTO tenant_databases (tenant, name, since) VALUES ('any', 'DB_9', 0)").run();
  await expect(alone().forReads("any")).rejects.toMatchObject({ code: "UNAVAILABLE" });
  await counted.prepare("DELETE FROM tenant_databases").run();
});

test("I6 DATABASE-3 DATABASE-5 deletions during a move reach both databases, and refused writes end the move", async () => {
  const principal = { ...ADMIN, tenant: "deleting" };
  const agent = await fill(principal);
  const conversation = await createConversation(agent, principal);
  const listed = async () => (await listsOf(principal)).conversations;
  await expect.poll(listed).toContain(conversation);
  await call("PUT", PATH, { database: "DB_1" }, principal);
  pass(SETTLED_MS);
  expect((await call("PUT", PATH, { database: "DB_1" }, principal)).body).toMatchObject({ database: "DB_1" });
  const { status } = await send(`/api/conversations/${conversation}`, { method: "DELETE" }, principal);
  expect(status).toBeLessThan(300);
  // Nobody repeats the command. The wake-ups of the deletion take the steps.
  const stub = exports.Conversation.getByName(`deleting:${conversation}`);
  await expect
    .poll(async () => {
      pass(SETTLED_MS);
      await runDurableObjectAlarm(stub);
      return (await get(PATH, principal)).body;
    })
    .toEqual({ database: "DB_1" });
  await expect.poll(listed).not.toContain(conversation);
  for (const database of [DB, DB_1]) {
    const { results } = await database
      .prepare("SELECT id FROM conversations WHERE id = ?1")
      .bind(conversation)
      .all();
    expect(results).toEqual([]);
  }
});

/** Returns a database that holds its first statement that begins with `prefix` until `release` is called. */
function holding(database: D1Database, prefix: string) {
  const reached = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  let isFirst = true;
  const wait = async () => {
    if (!isFirst) return;
    isFirst = false;
    reached.resolve();
    await held.promise;
  };
  const slow = new Proxy(database, {
    get(target, name) {
      if (name !== "prepare") return Reflect.get(target, name)?.bind(target);
      return (sql: string) => {
        const statement = target.prepare(sql);
        if (!sql.startsWith(prefix)) return statement;
        // SAFETY: the commands bind and run these statements only.
        return {
          bind: (...values: unknown[]) => ({
            async run() {
              await wait();
              return statement.bind(...values).run();
            },
            async first() {
              const row = await statement.bind(...values).first();
              await wait();
              return row;
            },
          }),
        } as unknown as D1PreparedStatement;
      };
    },
  });
  return { slow, reached: reached.promise, release: held.resolve };
}

function movesOf(first: D1Database, further: D1Database, clock = { now: () => Date.now() }): ListsMove {
  const databases = new Map([
    ["DB", first],
    ["DB_1", further],
  ]);
  return new ListsMove(databases, clock);
}

/** Takes the steps of a move until it ends. */
async function end(move: ListsMove, tenant: string, target: string): Promise<void> {
  for (;;) {
    const { continueInMs } = await move.move(tenant, target);
    if (continueInMs === undefined) return;
    pass(continueInMs + 1);
  }
}

async function placeIn(tenant: string, name: string): Promise<void> {
  await DB.prepare("INSERT INTO tenant_databases (tenant, name, since) VALUES (?1, ?2, 0)")
    .bind(tenant, name)
    .run();
}

test("I6 LISTS-5 a slow call cannot take rows away that came after the move", async () => {
  const tenant = "raced";
  await fill({ ...ADMIN, tenant });
  const { slow, reached, release } = holding(DB_1, 'DELETE FROM "conversations"');
  const first = movesOf(DB, slow);
  const second = movesOf(DB, DB_1);
  await first.move(tenant, "DB_1");
  pass(SETTLED_MS);
  const late = first.move(tenant, "DB_1");
  await reached;
  await end(second, tenant, "DB_1");
  expect(await count(DB_1, "conversations", tenant)).toBe(1);
  release();
  await late;
  expect(await count(DB_1, "conversations", tenant)).toBe(1);
  expect(await second.read(tenant)).toEqual({ database: "DB_1" });
});

test("I6 LISTS-5 a slow call that empties a table takes no rows away that another call has copied", async () => {
  const tenant = "emptied-late";
  await fill({ ...ADMIN, tenant });
  const { results } = await DB.prepare('PRAGMA table_info("conversations")').all<{ name: string }>();
  const names = results.map(({ name }) => `"${name}"`);
  const values = names.map((name) => (name === '"id"' ? "'copy-' || value" : name)).join(", ");
  await DB.prepare(
    `INSERT INTO conversations (${names.join(", ")}) SELECT ${values} FROM conversations, (WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 299) SELECT value FROM n) WHERE tenant = ?1`,
  )
    .bind(tenant)
    .run();
  const total = await count(DB, "conversations", tenant);
  expect(total).toBe(300);
  const one = holding(DB_1, 'DELETE FROM "conversations"');
  const reached = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  const paused = new Proxy(DB, {
    get(target, name) {
      if (name !== "prepare") return Reflect.get(target, name)?.bind(target);
      return (sql: string) => {
        const statement = target.prepare(sql);
        if (!sql.startsWith('PRAGMA table_info("turns")')) return statement;
        const all = async () => {
          reached.resolve();
          await held.promise;
          return target.prepare(sql).all();
        };
        // SAFETY: the command reads all rows of this statement only.
        return { all } as unknown as D1PreparedStatement;
      };
    },
  });
  const first = movesOf(DB, one.slow);
  const second = movesOf(paused, DB_1);
  await first.move(tenant, "DB_1");
  pass(SETTLED_MS);
  // Both calls are at the begin of the table. The statement of the first is slow.
  const late = first.move(tenant, "DB_1");
  await one.reached;
  const other = second.move(tenant, "DB_1");
  await reached.promise;
  expect(await count(DB_1, "conversations", tenant)).toBe(total);
  one.release();
  await late.catch(() => undefined);
  held.resolve();
  await other;
  await end(movesOf(DB, DB_1), tenant, "DB_1");
  expect(await movesOf(DB, DB_1).read(tenant)).toEqual({ database: "DB_1" });
  expect(await count(DB_1, "conversations", tenant)).toBe(total);
});

test.each(["DB", "DB_1"])(
  "I6 LISTS-5 a slow deletion of old rows in %s cannot delete rows that came back later",
  async (from) => {
    const tenant = `returned-to-${from}`;
    await fill({ ...ADMIN, tenant });
    const [old, to] = from === "DB" ? [DB, "DB_1"] : [DB_1, "DB"];
    const second = movesOf(DB, DB_1);
    await end(second, tenant, from);
    const { slow, reached, release } = holding(old, 'DELETE FROM "conversations"');
    const late = end(from === "DB" ? movesOf(slow, DB_1) : movesOf(DB, slow), tenant, to);
    await reached;
    await end(second, tenant, to);
    await end(second, tenant, from);
    expect(await count(old, "conversations", tenant)).toBe(1);
    release();
    await late;
    await end(second, tenant, from);
    expect(await count(old, "conversations", tenant)).toBe(1);
  },
);

test("I6 DATABASE-3 a place that arrives late is not used, and does not replace a newer place", async () => {
  for (const [tenant, passed] of [
    ["late-place", 9_000],
    ["too-late-place", 10_000],
  ] as const) {
    const { slow, reached, release } = holding(DB, "SELECT name, target");
    let now = 0;
    const places = movesOf(slow, DB_1, { now: () => now }).databases;
    const late = places.forWrites(tenant);
    await reached;
    await placeIn(tenant, "DB_1");
    now = 5_000;
    expect(await places.forWrites(tenant)).toBe(DB_1);
    now = passed;
    release();
    if (passed < 10_000) expect(await late).toBe(slow);
    else await expect(late).rejects.toMatchObject({ code: "UNAVAILABLE", retriable: true });
    expect(await places.forWrites(tenant)).toBe(DB_1);
  }
});

test("I6 DATABASE-3 a query looks up the place again after a migration of its database", async () => {
  const tenant = "migrated-late";
  await placeIn(tenant, "DB_1");
  const migrating = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  const queried: string[] = [];
  const further = new Proxy(DB_1, {
    get(target, name) {
      if (name !== "batch") return Reflect.get(target, name)?.bind(target);
      return async (statements: D1PreparedStatement[]) => {
        migrating.resolve();
        await held.promise;
        return target.batch(statements);
      };
    },
  });
  const first = new Proxy(DB, {
    get(target, name) {
      if (name !== "prepare") return Reflect.get(target, name)?.bind(target);
      return (sql: string) => {
        queried.push(sql);
        return target.prepare(sql);
      };
    },
  });
  let now = 0;
  const queries = new D1Queries(movesOf(first, further, { now: () => now }).databases);
  const query = "SELECT 'read' WHERE ?1 <> ''";
  const read = queries.read(query, tenant);
  await migrating.promise;
  await DB.prepare("DELETE FROM tenant_databases WHERE tenant = ?1").bind(tenant).run();
  now = 10_000;
  held.resolve();
  await read;
  expect(queried).toContain(query);
});

test("I6 DATABASE-1 records of memories and dead letters are in the database of their tenant", async () => {
  const principal = { ...ADMIN, tenant: "remembering" };
  const agent = await fill(principal);
  await moveTo("DB_1", principal);
  const { status } = await call("POST", `/api/agents/${agent}/memories`, { content: "Tea." }, principal);
  expect(status).toBe(201);
  await expect.poll(() => count(DB_1, "memories", principal.tenant)).toBe(1);
  const [sender, receiver] = ["sender", "receiver"].map((id) =>
    exports.Courier.getByName(`${principal.tenant}:${id}`),
  );
  await receiver?.set("mood", "refuse");
  await sender?.dispatch("receiver", `op_${ulid()}`, "unwanted");
  await expect.poll(() => count(DB_1, "dead_letters", principal.tenant)).toBe(1);
  for (const table of ["memories", "dead_letters"]) expect(await count(DB, table, principal.tenant)).toBe(0);
});

test("I6 DATABASE-4 lists in a database that the Worker lacks are UNAVAILABLE, and the answer names it", async () => {
  const principal = { ...ADMIN, tenant: "elsewhere-placed" };
  await DB.prepare("INSERT INTO tenant_databases (tenant, name, since) VALUES (?1, 'DB_9', 0)")
    .bind(principal.tenant)
    .run();
  const answer = await get("/api/agents", principal);
  expectProblem(answer, 503, "UNAVAILABLE");
  expect(answer.body.detail).toContain("DB_9");
});

/** A database that fails at one of its next calls. */
function failingAt(database: D1Database, calls: { left: number }): D1Database {
  const fail = () => {
    calls.left -= 1;
    if (calls.left === 0) throw new Error("The database is away.");
  };
  const own = new Map<D1PreparedStatement, D1PreparedStatement>();
  const wrap = (statement: D1PreparedStatement): D1PreparedStatement => {
    const wrapped = new Proxy(statement, {
      get(target, name) {
        if (name === "bind") return (...values: unknown[]) => wrap(target.bind(...values));
        // SAFETY: the other members are functions that run the statement.
        return async (...values: unknown[]) => {
          fail();
          return (target as unknown as Record<string | symbol, (...all: unknown[]) => unknown>)[name]?.(
            ...values,
          );
        };
      },
    });
    own.set(wrapped, statement);
    return wrapped;
  };
  // SAFETY: the command uses these two methods only.
  return {
    prepare: (sql: string) => wrap(database.prepare(sql)),
    batch: async (statements: D1PreparedStatement[]) => {
      fail();
      return database.batch(statements.map((statement) => own.get(statement) ?? statement));
    },
  } as unknown as D1Database;
}

test("I6 LISTS-4 a move that a failure interrupts at any call ends with the same rows", async () => {
  const tenant = "interrupted";
  await fill({ ...ADMIN, tenant });
  const rows = async (database: D1Database) =>
    (await database.prepare("SELECT * FROM agents WHERE tenant = ?1 ORDER BY id").bind(tenant).all()).results;
  const expected = await rows(DB);
  let interrupted = 0;
  for (let at = 1, target = "DB_1"; at < 40; at += 3, target = target === "DB" ? "DB_1" : "DB") {
    const calls = { left: at };
    const databases = new Map([
      ["DB", failingAt(DB, calls)],
      ["DB_1", failingAt(DB_1, calls)],
    ]);
    for (;;) {
      try {
        const { continueInMs } = await new ListsMove(databases, systemClock).move(tenant, target);
        if (continueInMs === undefined) break;
        pass(SETTLED_MS);
      } catch (error) {
        expect(String(error)).toContain("The database is away.");
        interrupted += 1;
      }
    }
    expect(await rows(target === "DB" ? DB : DB_1)).toEqual(expected);
    expect(await count(target === "DB" ? DB_1 : DB, "agents", tenant)).toBe(0);
  }
  expect(interrupted).toBeGreaterThan(10);
});
