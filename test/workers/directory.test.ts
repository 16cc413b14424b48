/** The directory: lists over HTTP, and its rows in D1. */
import { env } from "cloudflare:workers";
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import type { AgentIdentity } from "../../src/agents/agent/api.ts";
import { D1Directory } from "../../src/directory/d1-directory.ts";
import type { ConversationSummary } from "../../src/directory/directory.ts";
import { migrate } from "../../src/directory/migrate.ts";
import { MIGRATIONS } from "../../src/directory/schema.ts";
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

  test.each([1, 2, 3, 7, 8])("DIR-3 come in pages of %i, ascending by creation and back", async (limit) => {
    const ascending = await pages("/api/agents", "agents", `limit=${limit}&colour=red`, tenant);
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

  test("of a conversation refuse the same", async () => {
    const conversation = await createConversation(await createAgent());
    for (const list of ["messages", "turns", "journal"]) {
      for (const query of ["limit=0", "order=up", "cursor=nonsense"]) {
        const path = `/api/conversations/${conversation}/${list}?${query}`;
        expectProblem(await get(path), 422, "INVALID_INPUT");
      }
    }
  });

  test("DIR-2 show a conversation to those who take part, and to those who may read all", async () => {
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
    const { status, gate, ...view } = (await get(`/api/conversations/${first}`, boss)).body;
    expect(summary).toEqual(view);
  });
});

describe("rows", () => {
  const operator = (tenant: string): Principal => ({ subject: "op", tenant, roles: ["operator"] });
  const member = (tenant: string, subject: string): Principal => ({ subject, tenant, roles: ["member"] });

  function database(): D1Database {
    if (env.DB === undefined) throw new Error("The test Worker has a database.");
    return env.DB;
  }

  /** The database as the directory sees it, and how many rows its statements have written. */
  function metered(): { database: D1Database; written(): number } {
    let rows = 0;
    const inner = database();
    const count = <Row>(result: D1Result<Row>) => {
      rows += result.meta.rows_written;
      return result;
    };
    const prepare = (sql: string) => {
      const statement = inner.prepare(sql);
      return new Proxy(statement, {
        get: (target, key) =>
          key === "bind"
            ? (...values: unknown[]) => runCounted(target.bind(...values), count)
            : Reflect.get(target, key),
      });
    };
    const batch = async (statements: D1PreparedStatement[]) =>
      (await inner.batch(statements.map((statement) => originals.get(statement) ?? statement))).map(count);
    // SAFETY: the directory uses these two methods only.
    return { database: { prepare, batch } as D1Database, written: () => rows };
  }
});
