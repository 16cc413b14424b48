/** Two tenants with equal ids: over HTTP and in the directory, each sees only its own data. */
import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, test } from "vitest";
import { D1Directory } from "../../src/d1/d1-directory.ts";
import { OPERATIONS } from "../../src/http/operations.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { call, createAgent, createConversation, expectProblem, get, pages, post } from "./http-client.ts";

const ada = (tenant: string): Principal => ({ subject: "ada", tenant, roles: ["admin"] });
/** One name begins with the other, and contains the separator of tenant and id in actor names. */
const TENANTS = [ada("north"), ada("north:one")] as const;
const [NORTH, OTHER] = TENANTS;
const IDS = ["a", "b", "c", "one", "d"];

let conversations: Record<string, string[]>;

beforeAll(async () => {
  conversations = {};
  for (const id of IDS) for (const principal of TENANTS) await createAgent(id, principal);
  for (const principal of TENANTS) {
    const own: string[] = [];
    for (const id of IDS) own.push(await createConversation(id, principal));
    conversations[principal.tenant] = own;
    await post(`/api/conversations/${own[0]}/turns`, { content: `Of ${principal.tenant}.` }, principal);
  }
});

const own = ({ tenant }: Principal) => conversations[tenant] ?? [];

describe("G7 equal agent ids", () => {
  test("are two agents: changing one does not change the other", async () => {
    const before = await get("/api/agents/a", OTHER);
    const persona = { identity: { systemPrompt: "Of the north." } };
    expect((await call("PATCH", "/api/agents/a", { persona, projectIds: ["north"] }, NORTH)).status).toBe(
      200,
    );
    expect((await get("/api/agents/a", OTHER)).body).toEqual(before.body);
    expect((await get("/api/agents/a", NORTH)).body).toMatchObject({ persona, tenant: NORTH.tenant });
  });

  test("stay two if tenant and id joined are the same text", async () => {
    await createAgent("x-one", ada("t:x"));
    expectProblem(await get("/api/agents/x-one", ada("t")), 404, "NOT_FOUND");
    expectProblem(await get("/api/agents/x:x-one", ada("t")), 404, "NOT_FOUND");
  });
});

describe("G7 DIR-2 lists", () => {
  test.each([1, 2, 200])("in pages of %i show only the tenant's own entries", async (limit) => {
    for (const principal of TENANTS) {
      for (const order of ["asc", "desc"]) {
        const query = `limit=${limit}&order=${order}`;
        const agents = await pages("/api/agents", "agents", query, principal);
        expect(agents.flat()).toEqual(order === "asc" ? IDS : IDS.toReversed());
        const listed = await pages("/api/conversations", "conversations", query, principal);
        expect(listed.flat().toSorted()).toEqual(own(principal).toSorted());
      }
    }
    const { body } = await get("/api/agents?limit=200", OTHER);
    expect(new Set(body.agents.map((agent) => Reflect.get(agent, "tenant")))).toEqual(
      new Set([OTHER.tenant]),
    );
  });

  test("that continue at another tenant's cursor stay in the own tenant", async () => {
    for (const order of ["asc", "desc"]) {
      const { body } = await get(`/api/conversations?limit=2&order=${order}`, NORTH);
      const cursor = body.nextCursor;
      if (cursor === undefined) throw new Error("There is no further page.");
      const list = `/api/conversations?limit=200&order=${order}&cursor=${cursor}`;
      const continued = (await get(list, OTHER)).body.conversations.map(({ id }) => id);
      for (const id of continued) expect(own(OTHER)).toContain(id);
      const agents = await get(`/api/agents?limit=2&order=${order}`, NORTH);
      const path = `/api/agents?limit=200&order=${order}&cursor=${agents.body.nextCursor}`;
      const rest = (await get(path, OTHER)).body.agents;
      for (const agent of rest) expect(agent).toMatchObject({ tenant: OTHER.tenant });
      expect(rest.length).toBeGreaterThan(0);
    }
  });

  test("of a member show no conversation of the same user in another tenant", async () => {
    const member = (tenant: string): Principal => ({ subject: "ada", tenant, roles: ["member"] });
    for (const { tenant } of TENANTS) {
      const listed = await pages("/api/conversations", "conversations", "limit=2", member(tenant));
      expect(listed.flat().toSorted()).toEqual((conversations[tenant] ?? []).toSorted());
    }
    expect(await pages("/api/conversations", "conversations", "", member("south"))).toEqual([[]]);
  });

  test("in D1 have rows of both, and read only their own rows", async () => {
    // SAFETY: `test/wrangler.jsonc` binds it.
    const directory = new D1Directory(Reflect.get(env, "DB") as D1Database);
    const found = await Promise.all(TENANTS.map(({ tenant }) => directory.agents(tenant)));
    expect(found.map(({ items }) => items.map(({ id }) => id))).toEqual([IDS, IDS]);
    expect(found.map(({ items }) => new Set(items.map(({ tenant }) => tenant)))).toEqual(
      TENANTS.map(({ tenant }) => new Set([tenant])),
    );
  });
});

test("G7 every route of a conversation answers 404 to another tenant, in any role", async () => {
  const routes = OPERATIONS.filter(({ path }) => path.includes("conversation") && path.includes(":id"));
  expect(routes.length).toBeGreaterThan(7);
  const conversation = own(NORTH)[0];
  const turn = (await get(`/api/conversations/${conversation}/turns`, NORTH)).body.turns[0]?.id;
  if (conversation === undefined || turn === undefined) throw new Error("There is no conversation or turn.");
  for (const { method, path, body } of routes) {
    // The first frame of a refused WebSocket is the error.
    if (!path.startsWith("/api/")) continue;
    const query = path.endsWith("/workspace/file") ? "?path=README.md" : "";
    const target = path.replace(":id", conversation).replace(":turnId", turn) + query;
    const answer = await call(method.toUpperCase(), target, body?.meta()?.example, OTHER);
    expectProblem(answer, 404, "NOT_FOUND");
  }
  const { body } = await get(`/api/conversations/${conversation}/turns`, NORTH);
  expect(body.turns).toHaveLength(1);
});
