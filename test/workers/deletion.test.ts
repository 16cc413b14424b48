/**
 * The deletion of conversations and agents on the real Worker: the immediate answers, and the later changes in every
 * store.
 */

import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import { beforeAll, describe, expect, test } from "vitest";
import { MIGRATIONS } from "../../src/d1/d1-tables.ts";
import { OTHER_TABLES, OWNED_TABLES } from "../../src/d1/owned-rows.ts";
import type { ConversationApi } from "../../src/protocol/conversation-api.ts";
import { calledConversationId } from "../../src/protocol/ids.ts";
import type { Principal } from "../../src/shared/principal.ts";
import type { AttemptScript } from "../support/provider-script.ts";
import { expectErased, objectsOfR2, rowsOfD1, storageOf } from "./everything.ts";
import { Play } from "./provider.ts";
import {
  ADA,
  crash,
  createAgent,
  createConversation,
  request,
  skipInvariants,
  TestConversation,
} from "./world.ts";

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

async function secretConversation(agent = plain): Promise<TestConversation> {
  const conversation = await createConversation(agent);
  skipInvariants(conversation);
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
  test("DELETE-1 DELETE-2 is answered as an unknown conversation, at every entrance", async () => {
    const conversation = await createConversation(plain);
    skipInvariants(conversation);
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

  test("DELETE-1 REMOVE-1 STOREDTIME-2 keeps only the mark of its deletion, also after a pause before an attempt", async () => {
    const conversation = await createConversation(plain);
    skipInvariants(conversation);
    const attempts: AttemptScript[] = [{ status: 503, message: "Busy." }, [{ text: "Yes." }]];
    const { turnId } = await conversation.play({ replies: [{ attempts }] });
    await conversation.ended(turnId);
    // The Agents SDK has keys of its own.
    const keys = () =>
      runInDurableObject(conversation.stub, async (_, { storage }) =>
        [...(await storage.list()).keys()].filter((key) => !key.startsWith("cf_agents:")),
      );
    expect(await keys()).toContain("slept");
    expect(await status(conversation.path, "DELETE")).toBe(204);
    await expect.poll(keys).toEqual(["conversation"]);
  });
});

test("REMOVE-4 every table of D1 is in the registry of stores", () => {
  const made = MIGRATIONS.flatMap(({ statements }) =>
    statements.flatMap((sql) => /^CREATE TABLE (\w+)/.exec(sql)?.[1] ?? []),
  );
  const known = [...Object.keys(OWNED_TABLES), ...Object.keys(OTHER_TABLES)];
  expect([...made, "dramatis_migrations"].sort()).toEqual(known.sort());
});

describe("G8 the effects of a deletion", () => {
  test("REMOVE-1 REMOVE-5 every store is emptied, and the neighbour's data stay", async () => {
    const [conversation, neighbour] = [await secretConversation(), await secretConversation()];
    await expect.poll(rowsOfD1).toContain(conversation.id);
    expect(await storageOf(conversation.stub)).toContain(SECRET);
    expect(await status(conversation.path, "DELETE")).toBe(204);
    await expectErased(conversation.stub, SECRET);
    await expect.poll(rowsOfD1).not.toContain(conversation.id);
    expect(await objectsOfR2()).not.toContain(conversation.id);
    const agent = exports.Agent.getByName(`test:${plain}`);
    // The mark that blocks learning from the conversation stays, for messages that are still in transit.
    const mark = `["${conversation.id}","",`;
    await expect.poll(() => storageOf(agent)).toContain(mark);
    const rest = async () => (await storageOf(agent)).replaceAll(mark, "");
    await expect.poll(rest).not.toContain(`"${conversation.id}"`);
    expect(await storageOf(neighbour.stub)).toContain(SECRET);
    expect(await objectsOfR2()).toContain(neighbour.id);
    expect(await rowsOfD1()).toContain(neighbour.id);
  });
});

describe("G8 a deleted agent", () => {
  test("A23 DELETE-4 LIFE-5 DELETE-5 DELETE-6 is removed, and each of its conversations continues or fails", async () => {
    const [first, other] = [await createAgent("test/plain"), await createAgent("test/plain")];
    const own = await secretConversation(first);
    const begun = await createConversation(first);
    const joined = await createConversation(other);
    for (const conversation of [begun, joined]) skipInvariants(conversation);
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
    // A conversation without another agent fails, states the reason, and stays readable.
    await expect.poll(async () => (await own.view()).status).toBe("failed");
    await own.evict();
    const refused = await request(`${own.path}/turns`, {
      method: "POST",
      body: JSON.stringify({ content: "Hi" }),
    });
    expect(refused.status).toBe(409);
    expect(await refused.json()).toMatchObject({
      code: "CONVERSATION_CLOSED",
      detail:
        "This conversation has failed: its agents were deleted, so no agent can answer. Start a new one.",
    });
    expect((await own.messages()).filter(({ role }) => role === "user")).toHaveLength(2);
    expect((await own.journal()).at(-1)).toMatchObject({
      type: "conversation.ended",
      data: { status: "failed", reason: `Its agent "${first}" was deleted.` },
    });
    // If another agent takes part, it answers instead of the first.
    await expect
      .poll(async () => (await begun.view()).participants)
      .not.toContainEqual({ type: "agent", id: first });
    expect(await begun.view()).toMatchObject({ status: "active", agentId: other });
    const { turnId } = await begun.play({ replies: [[{ text: "I am still here." }]] });
    expect((await begun.ended(turnId)).answer).toBe("I am still here.");
    expect(await status(`${begun.path}/participants/agent/${other}`, "DELETE")).toBe(409);
    await expect
      .poll(async () => (await joined.view()).participants)
      .not.toContainEqual({ type: "agent", id: first });
    await expect.poll(rowsOfD1).not.toContain(`"id":"${first}","persona"`);
  });
});

describe("G8 a deletion that is interrupted", () => {
  test("REMOVE-1 REMOVE-2 continues after crashes at any step, and no data remains at the end", async () => {
    const conversations = await Promise.all(Array.from({ length: 4 }, () => secretConversation()));
    for (const [index, conversation] of conversations.entries()) {
      expect(await status(conversation.path, "DELETE")).toBe(204);
      // The steps visit the stores one after another: each crash is a little later.
      for (let turns = 0; turns < index * 3; turns++) await Promise.resolve();
      await crash();
      expect(await status(conversation.path)).toBe(404);
      await runDurableObjectAlarm(conversation.stub);
      await expectErased(conversation.stub, SECRET);
      await expect.poll(rowsOfD1).not.toContain(conversation.id);
      await expect.poll(objectsOfR2).not.toContain(conversation.id);
    }
  });

  test("DELETE-2 is not undone: the id is never used again", async () => {
    const conversation = await createConversation(plain);
    skipInvariants(conversation);
    expect(await status(conversation.path, "DELETE")).toBe(204);
    await expectErased(conversation.stub, "conversation.started");
    await crash();
    // SAFETY: the class of the export has this interface.
    const stub = conversation.stub as unknown as ConversationApi;
    const again = await stub.create(ADA, { id: conversation.id, agentId: plain });
    expect(again).toMatchObject({ ok: false, error: { code: "CONFLICT" } });
    expect(await status(conversation.path)).toBe(404);
  });
});

describe("G8 DELETE-3 a conversation with calls of agents", () => {
  /** Calls a helper from a conversation. Returns the conversation and the operation of the call. */
  async function called(name: string, message: string, more: object = {}) {
    const post = async (path: string, body: object) => {
      const response = await request(path, { method: "POST", body: JSON.stringify(body) });
      expect(response.status, await response.clone().text()).toBe(201);
    };
    const identity = { systemPrompt: "You are a test.", modelProfileId: "test/scripted" };
    const helper = await createAgent({ identity });
    const tool = { id: name, name, description: "Asks.", target: { agent: helper }, ...more };
    await post("/api/libraries/deletion/tools", tool);
    const manager = await createAgent({ identity, tools: { toolIds: [`deletion/${name}`] } });
    const conversation = await createConversation(manager);
    skipInvariants(conversation);
    const { turnId } = await conversation.play({
      replies: [[{ call: name, input: { message } }], [{ text: "Done." }]],
    });
    await expect
      .poll(async () => (await conversation.turn(turnId)).status, { timeout: 10_000 })
      .toBe("completed");
    const { moves } = await conversation.turn(turnId);
    const [call = expect.fail("no call")] = moves.flatMap(({ toolCall }) => toolCall ?? []);
    return { conversation, call };
  }

  test("is deleted with the conversations that the calls opened", async () => {
    const answer = new Play({ replies: [[{ text: `The helper knows ${SECRET}.` }]] });
    const { conversation, call } = await called("ask_deleted", answer.content);
    const below = new TestConversation(call.agent?.conversationId ?? expect.fail("no call"));
    expect(await storageOf(below.stub)).toContain(SECRET);
    expect(await status(conversation.path, "DELETE")).toBe(204);
    await expectErased(below.stub, SECRET);
    expect(await status(below.path)).toBe(404);
  });

  test("is deleted with the conversation of each attempt of a call", async () => {
    const busy = { status: 503, message: "Busy." };
    const answer = new Play({ replies: [{ attempts: [busy, busy, busy, [{ text: "Yes." }]] }] });
    const retry = { maxAttempts: 2, backoffMs: 10 };
    const { conversation, call } = await called("ask_twice", answer.content, { effect: "idempotent", retry });
    expect(call.attempt).toBe(2);
    const children = [1, 2].map(
      (attempt) => new TestConversation(calledConversationId(call.operationId, attempt)),
    );
    for (const child of children) expect(await status(child.path)).toBe(200);
    expect(await status(conversation.path, "DELETE")).toBe(204);
    for (const child of children) await expect.poll(() => status(child.path)).toBe(404);
  });
});
