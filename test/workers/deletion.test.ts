/** The deletion of conversations and agents on the real Worker: what answers at once, and what follows in every store. */

import { runInDurableObject } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { beforeAll, describe, expect, test } from "vitest";
import { OTHER_TABLES, OWNED_TABLES } from "../../src/d1/owned-rows.ts";
import { MIGRATIONS } from "../../src/d1/schema.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { createAgent, createConversation, leaveAlone, request, type TestConversation } from "./world.ts";

const SECRET = "marmalade-7e57-secret";
const MEMBER: Principal = { subject: "mel", tenant: "test", roles: ["member"] };
const OPERATOR: Principal = { subject: "olga", tenant: "test", roles: ["operator"] };

let plain: string;

beforeAll(async () => {
  plain = await createAgent("test/plain");
});

const status = async (path: string, method = "GET", principal?: Principal) => {
  const response = await request(path, { method, ...(method === "POST" ? { body: "{}" } : {}) }, principal);
  await response.body?.cancel();
  return response.status;
};

/** The texts of all rows of D1. */
async function rowsOfD1(): Promise<string> {
  const tables = await env.DB.prepare(
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '_cf_%'",
  ).all<{ name: string }>();
  const texts: string[] = [];
  for (const { name } of tables.results)
    texts.push(JSON.stringify((await env.DB.prepare(`SELECT * FROM "${name}"`).all()).results));
  return texts.join("\n");
}

/** The keys and contents of all objects. */
async function objectsOfR2(): Promise<string> {
  const { objects } = await env.BUCKET.list();
  const texts = objects.map(async ({ key }) => `${key} ${await (await env.BUCKET.get(key))?.text()}`);
  return (await Promise.all(texts)).join("\n");
}

/** The texts of everything in an actor's storage. */
function storageOf(stub: DurableObjectStub): Promise<string> {
  return runInDurableObject(stub, async (_, { storage }) => {
    const { sql } = storage;
    const decode = (value: unknown) =>
      value instanceof ArrayBuffer ? new TextDecoder().decode(value) : value;
    const tables = sql
      .exec<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '_cf_%'")
      .toArray();
    const texts = tables.map(({ name }) =>
      JSON.stringify(
        sql
          .exec(`SELECT * FROM "${name}"`)
          .toArray()
          .map((row) => Object.values(row).map(decode)),
      ),
    );
    return [...texts, JSON.stringify([...storage.kv.list()])].join("\n");
  });
}

/** Waits until nothing of a text is left in an actor. */
async function gone(stub: DurableObjectStub, text: string): Promise<void> {
  await expect.poll(() => storageOf(stub)).not.toContain(text);
}

async function secretConversation(agent = plain): Promise<TestConversation> {
  const conversation = await createConversation(agent);
  leaveAlone(conversation);
  const upload = await request(`${conversation.path}/attachments`, {
    method: "POST",
    headers: { "content-type": "text/plain" },
    body: SECRET,
  });
  const { url } = await upload.json<{ url: string }>();
  const { play } = await conversation.play({
    replies: [[{ text: `I keep ${SECRET} ${"x".repeat(9_000)}` }]],
  });
  await play.closes(0);
  await conversation.say([
    { type: "text", text: SECRET },
    { type: "file", url, mediaType: "text/plain" },
  ]);
  return conversation;
}

describe("G8 a deleted conversation", () => {
  test("DELETE-1 DELETE-2 is answered as one that does not exist, at every entrance", async () => {
    const conversation = await createConversation(plain);
    leaveAlone(conversation);
    const client = await conversation.connect();
    const { play, turnId } = await conversation.play({ replies: [[{ text: "Half" }, { gate: "never" }]] });
    await play.reached("never");
    expect(await status(conversation.path, "DELETE", MEMBER)).toBe(404);
    expect(await status(conversation.path, "DELETE", OPERATOR)).toBe(204);
    expect((await play.closes(1)).length).toBe(1);
    await expect.poll(() => client.closed).toBeDefined();
    const gets = ["", "/messages", "/journal", "/turns", `/turns/${turnId}`, "/events"];
    for (const path of gets) expect([path, await status(conversation.path + path)]).toEqual([path, 404]);
    for (const path of ["/cancel", "/complete", "/resume"])
      expect([path, await status(conversation.path + path, "POST")]).toEqual([path, 404]);
    expect(await status(conversation.path, "DELETE")).toBe(404);
    const said = await request(`${conversation.path}/turns`, {
      method: "POST",
      body: JSON.stringify({ content: "Hi" }),
    });
    expect(said.status).toBe(404);
    await conversation.evict();
    expect(await status(conversation.path)).toBe(404);
  });
});

test("REMOVE-4 every table of D1 is in the registry of stores", () => {
  const made = MIGRATIONS.flatMap(({ statements }) =>
    statements.flatMap((sql) => /^CREATE TABLE (\w+)/.exec(sql)?.[1] ?? []),
  );
  const known = [...Object.keys(OWNED_TABLES), ...Object.keys(OTHER_TABLES)];
  expect([...made, "dramatis_migrations"].sort()).toEqual(known.sort());
});

describe("G8 what follows a deletion", () => {
  test("REMOVE-1 REMOVE-5 every store is emptied, and the neighbour's data stay", async () => {
    const [conversation, neighbour] = [await secretConversation(), await secretConversation()];
    await expect.poll(rowsOfD1).toContain(conversation.id);
    expect(await storageOf(conversation.stub)).toContain(SECRET);
    expect(await status(conversation.path, "DELETE")).toBe(204);
    await gone(conversation.stub, SECRET);
    await expect.poll(rowsOfD1).not.toContain(conversation.id);
    expect(await objectsOfR2()).not.toContain(conversation.id);
    const agent = exports.Agent.getByName(`test:${plain}`);
    await expect.poll(() => storageOf(agent)).not.toContain(`"${conversation.id}"`);
    expect(await storageOf(neighbour.stub)).toContain(SECRET);
    expect(await objectsOfR2()).toContain(neighbour.id);
    expect(await rowsOfD1()).toContain(neighbour.id);
  });
});

describe("G8 a deleted agent", () => {
  test("DELETE-4 DELETE-5 DELETE-6 is not there any more, with the conversations that had no other agent", async () => {
    const [first, other] = [await createAgent("test/plain"), await createAgent("test/plain")];
    const own = await secretConversation(first);
    const begun = await createConversation(first);
    const joined = await createConversation(other);
    for (const conversation of [begun, joined]) leaveAlone(conversation);
    const add = (path: string, id: string) =>
      request(`${path}/participants`, { method: "POST", body: JSON.stringify({ type: "agent", id }) });
    expect((await add(begun.path, other)).status).toBe(200);
    expect((await add(joined.path, first)).status).toBe(200);
    const path = `/api/agents/${first}`;
    expect(await status(path, "DELETE", MEMBER)).toBe(403);
    expect(await status(path, "DELETE")).toBe(204);
    expect(await status(path)).toBe(404);
    expect(await status(path, "DELETE")).toBe(404);
    const create = (body: object) =>
      request("/api/conversations", { method: "POST", body: JSON.stringify(body) });
    expect((await create({ agentId: first })).status).toBe(404);
    const again = await request("/api/agents", {
      method: "POST",
      body: JSON.stringify({ id: first, persona: "test/plain" }),
    });
    expect(again.status).toBe(409);
    await expect.poll(() => status(own.path)).toBe(404);
    await gone(own.stub, SECRET);
    await expect.poll(async () => (await begun.view()).status).toBe("completed");
    await expect
      .poll(async () => (await joined.view()).participants)
      .not.toContainEqual({ type: "agent", id: first });
    await expect.poll(rowsOfD1).not.toContain(`"id":"${first}","persona"`);
  });
});
