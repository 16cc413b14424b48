/** The directory: lists over HTTP, and its rows in D1. */
import { env } from "cloudflare:workers";
import fc from "fast-check";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { D1Directory } from "../../src/d1/d1-directory.ts";
import { MIGRATIONS } from "../../src/d1/d1-tables.ts";
import { migrate } from "../../src/d1/migrate.ts";
import type { AgentIdentity } from "../../src/protocol/agent-api.ts";
import type { PublishedConversation } from "../../src/protocol/views.ts";
import type { Principal } from "../../src/shared/principal.ts";
import {
  ADMIN,
  createAgent,
  createConversation,
  expectProblem,
  get,
  MEMBER,
  pages,
  post,
} from "./http-client.ts";

describe("lists", () => {
  const tenant = { ...ADMIN, tenant: "lists" };
  const ids = ["c", "a", "b", "e", "d", "f", "g"];

  beforeAll(async () => {
    for (const id of ids) await createAgent(id, tenant);
  });

  test.each([1, 2, 3, 7, 8])("DIR-3 have pages of %i, ascending by creation and back", async (limit) => {
    const ascending = await pages("/api/agents", "agents", `limit=${limit}`, tenant);
    const descending = await pages("/api/agents", "agents", `limit=${limit}&order=desc`, tenant);
    expect(ascending.flat()).toEqual(ids);
    expect(descending.flat()).toEqual(ids.toReversed());
    for (const found of [ascending, descending]) {
      expect(found.map((page) => page.length).slice(0, -1)).toEqual(found.slice(1).map(() => limit));
    }
  });

  test.each([
    ["limit=0", "/limit"],
    ["limit=201", "/limit"],
    ["limit=ten", "/limit"],
    ["order=up", "/order"],
    ["cursor=", "/cursor"],
    ["cursor=nonsense", "/cursor"],
    ["cursor=WzEsMl0", "/cursor"],
  ])("refuse ?%s", async (query, path) => {
    expectProblem(await get(`/api/agents?${query}`), 422, "INVALID_INPUT", path);
    expectProblem(await get(`/api/conversations?${query}`), 422, "INVALID_INPUT", path);
  });

  test("QUERY-3 of every kind refuse unknown and repeated parameters, and name the known parameters", async () => {
    const agent = await createAgent();
    const conversation = await createConversation(agent);
    for (const path of [
      "/api/agents",
      "/api/conversations",
      "/api/runs",
      "/api/triggers",
      "/api/libraries",
      "/api/dead-letters",
      `/api/conversations/${conversation}/messages`,
      `/api/conversations/${conversation}/turns`,
      `/api/conversations/${conversation}/journal`,
      `/api/agents/${agent}/memories`,
    ]) {
      const answer = await get(`${path}?colour=red&limit=2`);
      expectProblem(answer, 400, "UNKNOWN_PARAMETER", "/colour");
      expect([path, answer.body.detail]).toEqual([path, expect.stringContaining("Known: limit")]);
    }
    expectProblem(await get("/api/conversations?limit=2&limit=3"), 422, "INVALID_INPUT", "/limit");
    expectProblem(
      await get("/api/memories/search?q=a&agents=b&colour=red"),
      400,
      "UNKNOWN_PARAMETER",
      "/colour",
    );
  });

  test("of a conversation refuse the same options", async () => {
    const conversation = await createConversation(await createAgent());
    for (const list of ["messages", "turns", "journal"]) {
      for (const query of ["limit=0", "order=up", "cursor=nonsense"]) {
        const path = `/api/conversations/${conversation}/${list}?${query}`;
        expectProblem(await get(path), 422, "INVALID_INPUT");
      }
    }
  });

  test("DIR-2 show a conversation to its participants, and to principals that may read all", async () => {
    const tenant = "membership";
    const [ada, mel, boss] = [
      { ...ADMIN, tenant, roles: ["author" as const] },
      { ...MEMBER, tenant },
      { subject: "boss", tenant, roles: ["operator" as const] },
    ];
    const id = await createAgent(undefined, ada);
    const [first, second, third] = [
      await createConversation(id, ada),
      await createConversation(id, mel),
      (
        await post(
          "/api/conversations",
          {
            participants: [
              { type: "agent", id },
              { type: "user", id: "ada" },
            ],
          },
          mel,
        )
      ).body.id,
    ];
    const listed = (principal: Principal) =>
      pages("/api/conversations", "conversations", "limit=1", principal);
    expect((await listed(ada)).flat()).toEqual([first, third]);
    expect((await listed(mel)).flat()).toEqual([second, third]);
    expect((await listed(boss)).flat()).toEqual([first, second, third]);
    expect((await listed({ ...mel, subject: "nobody" })).flat()).toEqual([]);
    expect((await get(`/api/conversations/${first}`, boss)).status).toBe(200);
    expectProblem(await get(`/api/conversations/${first}`, mel), 404, "NOT_FOUND");
    const [summary] = (await get("/api/conversations?limit=1", boss)).body.conversations;
    const { status, gate, turns, usage, spent, ...view } = (await get(`/api/conversations/${first}`, boss))
      .body;
    expect(summary).toEqual({ ...view, lastActivityAt: view.createdAt });
  });
});

describe("rows", () => {
  const operator = (tenant: string): Principal => ({ subject: "op", tenant, roles: ["operator"] });
  const member = (tenant: string, subject: string): Principal => ({ subject, tenant, roles: ["member"] });
  const time = (milliseconds: number) => new Date(1_700_000_000_000 + milliseconds).toISOString();

  function database(): D1Database {
    // SAFETY: `test/wrangler.jsonc` binds it.
    return Reflect.get(env, "DB") as D1Database;
  }

  function agent(tenant: string, id: string, createdAt: string, systemPrompt = "Hi."): AgentIdentity {
    const persona = { identity: { systemPrompt } };
    return { id, tenant, persona, projectIds: ["default"], createdAt, updatedAt: createdAt };
  }

  function conversation(id: string, createdAt: string, users: string[]): PublishedConversation {
    return {
      id,
      title: null,
      agentId: "a",
      projectId: "default",
      participants: [
        ...users.map((user) => ({ type: "user" as const, id: user })),
        { type: "agent", id: "a" },
      ],
      createdAt,
    };
  }

  /** Returns a new reference to the database, and a count of the rows written through it. */
  function metered(): { database: D1Database; written(): number } {
    const inner = database();
    let rows = 0;
    const count = <Result extends D1Result>(result: Result): Result => {
      rows += result.meta.rows_written;
      return result;
    };
    const prepare = (sql: string) => {
      const statement = inner.prepare(sql);
      const bind = statement.bind.bind(statement);
      return Object.assign(statement, {
        bind: (...values: unknown[]) => {
          const bound = bind(...values);
          const run = bound.run.bind(bound);
          return Object.assign(bound, { run: async () => count(await run()) });
        },
      });
    };
    const batch = async (statements: D1PreparedStatement[]) => (await inner.batch(statements)).map(count);
    // SAFETY: the directory uses these two methods only.
    return { database: { prepare, batch } as unknown as D1Database, written: () => rows };
  }

  test("DIR-1 an upsert writes one row, one more for each added or removed user, and first two for the activity", async () => {
    const { database, written } = metered();
    const directory = new D1Directory(database);
    const rowsWritten = async (action: () => Promise<void>) => {
      const before = written();
      await action();
      return written() - before;
    };
    const tenant = "upserts";
    const first = agent(tenant, "x", time(0));
    let puts = 0;
    const put = (users: string[]) => () =>
      directory.putConversation(tenant, conversation("c", time(0), users), ++puts);
    await migrate(database);
    expect(await rowsWritten(() => directory.putAgent(first))).toBe(1);
    expect(await rowsWritten(() => directory.putAgent({ ...first, projectIds: ["p"] }))).toBe(1);
    expect(await rowsWritten(put(["u", "v"]))).toBe(5);
    expect(await rowsWritten(put(["u", "v"]))).toBe(1);
    expect(await rowsWritten(put(["v", "w"]))).toBe(3);
    const late = () => directory.putConversation(tenant, conversation("c", time(0), ["u", "v"]), 1);
    expect(await rowsWritten(late), "a late put brings nobody back").toBe(0);
    expect((await directory.agents(tenant)).items).toEqual([{ ...first, projectIds: ["p"] }]);
    const seenBy = async (user: string) => (await directory.conversations(member(tenant, user))).items.length;
    expect([await seenBy("u"), await seenBy("v"), await seenBy("w")]).toEqual([0, 1, 1]);
  });

  test("DIR-2 DIR-3 pages of any size have every visible row once, in order", async () => {
    const directory = new D1Directory(database());
    let run = 0;
    const row = fc.record({
      at: fc.integer({ min: 0, max: 3 }),
      id: fc.string({ minLength: 1, maxLength: 3, unit: fc.constantFrom(..."ab0-_Z") }),
      users: fc.uniqueArray(fc.constantFrom("u", "v", "w"), { maxLength: 3 }),
    });
    const rows = fc.uniqueArray(row, { selector: ({ id }) => id, maxLength: 12 });
    const orders = fc.constantFrom("asc" as const, "desc" as const);
    await fc.assert(
      fc.asyncProperty(rows, fc.integer({ min: 1, max: 6 }), orders, async (rows, limit, order) => {
        run += 1;
        const tenant = `pages-${run}`;
        for (const { id, at, users } of rows) {
          await directory.putConversation(tenant, conversation(id, time(at), users), 1);
        }
        const expected = rows.toSorted((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1));
        if (order === "desc") expected.reverse();
        for (const principal of [operator(tenant), member(tenant, "u")]) {
          const found: string[] = [];
          let cursor: string | undefined;
          do {
            const page = await directory.conversations(principal, {
              limit,
              order,
              ...(cursor === undefined ? {} : { cursor }),
            });
            expect(page.items.length).toBeLessThanOrEqual(limit);
            found.push(...page.items.map(({ id }) => id));
            cursor = page.nextCursor;
          } while (cursor !== undefined);
          const visible = expected.filter(({ users }) => principal.subject === "op" || users.includes("u"));
          expect(found).toEqual(visible.map(({ id }) => id));
        }
      }),
      { numRuns: 25 },
    );
  });

  test("DIR-3 rows that are added between pages do not repeat or hide other rows", async () => {
    const directory = new D1Directory(database());
    const tenant = "meanwhile";
    for (const at of [1, 3, 5]) await directory.putAgent(agent(tenant, `a${at}`, time(at)));
    const first = await directory.agents(tenant, { limit: 2 });
    for (const at of [0, 2, 4, 6]) await directory.putAgent(agent(tenant, `a${at}`, time(at)));
    const { nextCursor = "" } = first;
    const rest = await directory.agents(tenant, { cursor: nextCursor });
    expect(first.items.map(({ id }) => id)).toEqual(["a1", "a3"]);
    expect(rest.items.map(({ id }) => id)).toEqual(["a4", "a5", "a6"]);
  });

  test("a page of large personas ends early, and the next page continues", async () => {
    const directory = new D1Directory(database());
    const tenant = "large";
    for (let n = 0; n < 6; n++) {
      await directory.putAgent(agent(tenant, `a${n}`, time(n), "x".repeat(1_500_000)));
    }
    const first = await directory.agents(tenant);
    expect(first.items.map(({ id }) => id)).toEqual(["a0", "a1"]);
    const second = await directory.agents(tenant, { cursor: first.nextCursor ?? "", limit: 1 });
    expect(second.items.map(({ id }) => id)).toEqual(["a2"]);
    const rest = await directory.agents(tenant, { cursor: second.nextCursor ?? "" });
    expect(rest.items.map(({ id }) => id)).toEqual(["a3", "a4"]);
    const last = await directory.agents(tenant, { cursor: rest.nextCursor ?? "" });
    expect([last.items.map(({ id }) => id), last.nextCursor]).toEqual([["a5"], undefined]);
  });

  test("MIGRATE-1 MIGRATE-2 isolates that migrate at once apply each migration once", async () => {
    const { database } = metered();
    const applied = () =>
      database.prepare("SELECT name FROM dramatis_migrations ORDER BY name").all<{ name: string }>();
    await migrate(database);
    const names = MIGRATIONS.map(({ name }) => name);
    expect((await applied()).results.map(({ name }) => name)).toEqual(names.toSorted());
    const tables = [
      ...["agents", "conversations", "conversation_users", "dead_letters"],
      ...[
        "approval_places",
        "approvals",
        "approvers",
        "turns",
        "turn_labels",
        "published_turns",
        "conversation_marks",
      ],
      ...["libraries", "definitions", "usage", "runs", "triggers", "memories", "dramatis_migrations"],
      ...["tenant_databases", "projects", "repositories", "git_packs", "git_refs"],
      ...["artifacts", "artifact_operations", "removed_repositories", "mcp_servers", "project_secrets"],
    ];
    await database.batch(tables.map((table) => database.prepare(`DROP TABLE ${table}`)));
    // An isolate caches a reference to the database, so each reference stands for an isolate.
    await Promise.all(Array.from({ length: 8 }, () => migrate(metered().database)));
    expect((await applied()).results.map(({ name }) => name)).toEqual(names.toSorted());
    expect((await new D1Directory(database).agents("nobody")).items).toEqual([]);
  });

  test("MIGRATE-1 MIGRATE-3 a failed migration is rolled back and stops later migrations, and newer migrations stay", async () => {
    const table = (name: string) => `CREATE TABLE ${name} (id TEXT PRIMARY KEY) STRICT`;
    const first = { name: "9001_first", statements: [table("first")] };
    const broken = { name: "9002_second", statements: [table("second"), "INSERT INTO nowhere VALUES (1)"] };
    const second = { name: "9002_second", statements: [table("second"), "INSERT INTO first VALUES ('a')"] };
    const third = { name: "9003_third", statements: ["INSERT INTO second SELECT id FROM first"] };
    const names = async (sql: string) =>
      (await database().prepare(sql).all<{ name: string }>()).results.map(({ name }) => name);
    const applied = () => names("SELECT name FROM dramatis_migrations WHERE name > '9' ORDER BY name");
    const tables = () =>
      names("SELECT name FROM sqlite_master WHERE name IN ('first', 'second') ORDER BY name");
    await expect(migrate(metered().database, [first, broken, third])).rejects.toThrow("nowhere");
    expect([await applied(), await tables()]).toEqual([["9001_first"], ["first"]]);
    await migrate(metered().database, [first, second, third]);
    expect([await applied(), await tables()]).toEqual([
      ["9001_first", "9002_second", "9003_third"],
      ["first", "second"],
    ]);
    expect(await names("SELECT id AS name FROM second"), "each ran once, in order").toEqual(["a"]);
    await migrate(metered().database, [first]);
    expect((await new D1Directory(metered().database).agents("nobody")).items).toEqual([]);
    expect(await applied()).toHaveLength(3);
  });

  test("lists are UNAVAILABLE while the database fails", async () => {
    const log = vi.spyOn(console, "error").mockReturnValue();
    const failing = () => database().prepare("SELECT * FROM a_table_of_another_planet");
    // SAFETY: the directory uses these two methods only.
    const broken = { prepare: failing, batch: () => database().batch([failing()]) } as unknown as D1Database;
    await expect(new D1Directory(broken).agents("t")).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(log).toHaveBeenCalledOnce();
    log.mockRestore();
  });
});
