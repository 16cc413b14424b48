/** Forks of conversations over HTTP on the real Worker. */
import { beforeAll, describe, expect, test } from "vitest";
import type { ConversationView } from "../../src/protocol/conversation-schemas.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { objectsOfR2 } from "./everything.ts";
import { Play } from "./provider.ts";
import { createAgent, createConversation, request, skipInvariants, TestConversation } from "./world.ts";

const MEMBER: Principal = { subject: "mallory", tenant: "test", roles: ["member"] };

let handy: string;

beforeAll(async () => {
  handy = await createAgent("test/handy");
});

type Forked = ConversationView & { code: string };

const forked = async (source: TestConversation, body: object = {}, principal?: Principal) => {
  const response = await request(
    `${source.path}/fork`,
    { method: "POST", body: JSON.stringify(body) },
    principal,
  );
  const view = await response.json<Forked>();
  return { status: response.status, view, location: response.headers.get("location") };
};

const fork = async (source: TestConversation, body?: object) => {
  const { status, view } = await forked(source, body);
  expect(status, JSON.stringify(view)).toBe(201);
  return new TestConversation(view.id);
};

/** Says a text in a turn and awaits its end. */
const answered = async (conversation: TestConversation, text: string) => {
  const { turnId } = await conversation.play({ replies: [[{ text }]] });
  await conversation.ended(turnId);
  return turnId;
};

/** A turn without the id of its conversation. */
const turnOf = async (conversation: TestConversation, turnId: string) =>
  JSON.stringify(await conversation.turn(turnId)).replaceAll(conversation.id, "conv");

const fileOf = async (conversation: TestConversation) => {
  const text = await (await request(`${conversation.path}/export`)).text();
  const lines = text
    .trimEnd()
    .split("\n")
    .map((line): Record<string, unknown> => JSON.parse(line));
  const of = (kind: string) => lines.flatMap((line) => (kind in line ? [line[kind]] : []));
  return { turns: of("turn"), events: of("event"), record: of("record"), text };
};

describe("a fork", () => {
  test("H7 TITLE-3 FORK-2 names its original in lists and in its title; an erasure removes a title from the message", async () => {
    const source = await createConversation(handy);
    const { turnId, play } = await source.play({ replies: [[{ text: "Yes." }]] });
    await source.ended(turnId);
    const title = play.content.slice(0, 20);
    await request(source.path, { method: "PATCH", body: JSON.stringify({ title }) });
    const copy = await fork(source);
    const again = await fork(copy);
    const listed = async ({ id }: TestConversation) => {
      const response = await request("/api/conversations?order=desc&limit=200");
      const { conversations } = await response.json<{ conversations: ConversationView[] }>();
      return conversations.find((one) => one.id === id);
    };
    await expect
      .poll(() => listed(copy))
      .toMatchObject({
        title: `Fork of ${title}`,
        forkedFrom: { conversationId: source.id, turnId },
      });
    expect(await again.view()).toMatchObject({
      title: `Fork of Fork of ${title}`,
      forkedFrom: { conversationId: copy.id },
    });
    await expect.poll(() => listed(source)).not.toHaveProperty("forkedFrom");
    const [message] = await again.messages();
    const erased = await request(`${again.path}/events/${message?.id}`, { method: "DELETE" });
    expect(erased.status).toBe(204);
    await expect.poll(() => listed(again)).toMatchObject({ title: null });
  });

  test("H7 FORK-1 FORK-2 FORK-3 has an equal history, its own budget and attachments, and its own future", async () => {
    const source = await createConversation(handy);
    skipInvariants(source);
    const upload = { method: "POST", headers: { "content-type": "image/png" }, body: "an image" };
    const { url, id: image } = await (await request(`${source.path}/attachments`, upload)).json<{
      url: string;
      id: string;
    }>();
    const { turnId } = await source.play({
      replies: [[{ text: "I look. " }, { call: "double", input: { n: 2 } }], [{ text: "Four." }]],
    });
    await source.ended(turnId);
    const play = new Play({ replies: [[{ text: "Seen." }]] });
    const said = await source.say([
      { type: "text", text: play.content },
      { type: "image", url },
    ]);
    await source.ended(said.turnId);
    const { status, view, location } = await forked(source);
    expect([status, location]).toEqual([201, `/api/conversations/${view.id}`]);
    const copy = new TestConversation(view.id);
    expect(view).toMatchObject({
      forkedFrom: { conversationId: source.id, turnId: said.turnId },
      participants: (await source.view()).participants,
      spent: { tokens: 0, modelCalls: 0, toolCalls: 0 },
      usage: { calls: 0 },
    });
    expect(await copy.messages()).toEqual(await source.messages());
    for (const id of [turnId, said.turnId]) expect(await turnOf(copy, id)).toBe(await turnOf(source, id));
    const [own, other] = [await fileOf(copy), await fileOf(source)];
    expect([own.turns, own.events]).toEqual([other.turns, other.events]);
    const journal = await copy.journal();
    expect(JSON.stringify(journal.slice(0, -1)).replaceAll(copy.id, source.id)).toBe(
      JSON.stringify(await source.journal()),
    );
    expect(journal.at(-1)).toMatchObject({
      type: "conversation.forked",
      data: { conversationId: source.id, turnId: said.turnId },
    });

    await answered(source, "Only here.");
    const { play: next, turnId: nextId } = await copy.play({ replies: [[{ text: "Only there." }]] });
    const [sent] = await next.requests(1);
    expect(JSON.stringify(sent?.body.messages)).toContain("Four.");
    expect(JSON.stringify(sent?.body.messages)).not.toContain("Only here.");
    await copy.ended(nextId);
    expect(JSON.stringify(await source.messages())).not.toContain("Only there.");

    expect((await request(source.path, { method: "DELETE" })).status).toBe(204);
    await copy.evict();
    const read = await request(`${copy.path}/attachments/${image}`);
    expect([read.status, await read.text()]).toEqual([200, "an image"]);
    const replay = await copy.connect({ from: 0 });
    await replay.frame("turn.completed");
    const list = await request("/api/conversations?limit=200&order=desc");
    expect(await list.text()).toContain(copy.id);
    expect((await fork(copy, { turnId })).id).not.toBe(copy.id);
  });

  test("H7 FORK-1 at an earlier turn leaves out later and active turns, and keeps stopped turns", async () => {
    const source = await createConversation(handy);
    skipInvariants(source);
    const { play, turnId: stopped } = await source.play({ replies: [[{ text: "Half" }, { gate: "end" }]] });
    await play.requests(1);
    await source.stop(stopped);
    const { turnId: open, play: running } = await source.play({
      replies: [[{ gate: "go" }, { text: "Late." }]],
    });
    await running.requests(1);
    const last = await answered(source, "Kept.");
    const beyond = await answered(source, "Beyond.");
    expect(await forked(source, { turnId: open })).toMatchObject({ status: 409, view: { code: "CONFLICT" } });
    const copy = await fork(source, { turnId: last });
    await running.open("go");
    await source.ended(open);
    const messages = JSON.stringify(await copy.messages());
    expect(messages).toContain("Kept.");
    expect(messages).not.toContain("Late.");
    expect(messages).not.toContain("Beyond.");
    expect(await turnOf(copy, stopped)).toBe(await turnOf(source, stopped));
    for (const id of [open, beyond]) expect((await request(`${copy.path}/turns/${id}`)).status).toBe(404);
    expect(await copy.view()).toMatchObject({ gate: "idle", status: "active" });
    await answered(copy, "On.");
    const { text } = await fileOf(copy);
    const again = await request("/api/conversations/import", { method: "POST", body: text });
    expect(again.status, await again.text()).toBe(201);
  });

  test("H7 FORK-5 with the same key is the same fork, and its people are those who may write", async () => {
    const source = await createConversation(handy);
    skipInvariants(source);
    expect(await forked(source)).toMatchObject({ status: 409, view: { code: "CONFLICT" } });
    const first = await answered(source, "One.");
    await answered(source, "Two.");
    const [one, same] = [
      await fork(source, { idempotencyKey: "k" }),
      await fork(source, { idempotencyKey: "k" }),
    ];
    expect(one.id).toBe(same.id);
    expect(await forked(source, { idempotencyKey: "k", turnId: first })).toMatchObject({
      status: 409,
      view: { code: "IDEMPOTENCY_CONFLICT" },
    });
    expect((await forked(source, {}, MEMBER)).status).toBe(404);
    expect((await forked(source, { atTurnId: first })).status).toBe(422);
    expect((await forked(source, { turnId: "turn_01JD0000000000000000000000" })).status).toBe(404);
  });

  test("H7 FORK-5 equal requests at once make one fork", async () => {
    const source = await createConversation(handy);
    skipInvariants(source);
    await answered(source, "One.");
    const both = await Promise.all([1, 2].map(() => forked(source, { idempotencyKey: "at once" })));
    const made = both.filter(({ status }) => status === 201);
    expect(both.map(({ status }) => status).filter((status) => status !== 201 && status !== 409)).toEqual([]);
    expect(made.length).toBeGreaterThan(0);
    const again = await fork(source, { idempotencyKey: "at once" });
    expect(new Set([again.id, ...made.map(({ view }) => view.id)]).size).toBe(1);
    expect((await again.messages()).map(({ role }) => role)).toEqual(["user", "agent"]);
  });

  test("H7 FORK-4 a repeated request for a deleted fork brings no attachment back", async () => {
    const source = await createConversation(handy);
    skipInvariants(source);
    const upload = { method: "POST", headers: { "content-type": "image/png" }, body: "an image" };
    const { url } = await (await request(`${source.path}/attachments`, upload)).json<{ url: string }>();
    const play = new Play({ replies: [[{ text: "Seen." }]] });
    const { turnId } = await source.say([
      { type: "text", text: play.content },
      { type: "image", url },
    ]);
    await source.ended(turnId);
    const copy = await fork(source, { idempotencyKey: "gone" });
    await expect.poll(objectsOfR2).toContain(copy.id);
    expect((await request(copy.path, { method: "DELETE" })).status).toBe(204);
    await expect.poll(objectsOfR2).not.toContain(copy.id);
    expect(await forked(source, { idempotencyKey: "gone" })).toMatchObject({ status: 409 });
    expect(await objectsOfR2()).not.toContain(copy.id);
  });

  test("H7 FORK-4 has no erased content", async () => {
    const source = await createConversation(handy);
    skipInvariants(source);
    const { turnId } = await source.play({ replies: [[{ text: "Secret ", times: 2 }]] });
    await source.ended(turnId);
    const erased = (await source.messages()).at(-1)?.id;
    expect((await request(`${source.path}/events/${erased}`, { method: "DELETE" })).status).toBe(204);
    const copy = await fork(source);
    expect(await copy.messages()).toEqual(await source.messages());
    expect((await fileOf(copy)).text).not.toContain("Secret Secret");
  });

  test("H7 FORK-6 leaves the conversations of earlier calls to its source", async () => {
    const post = async (path: string, body: object) => {
      const response = await request(path, { method: "POST", body: JSON.stringify(body) });
      expect(response.status, await response.clone().text()).toBe(201);
    };
    const identity = { systemPrompt: "You are a test.", modelProfileId: "test/scripted" };
    const helper = await createAgent({ identity });
    const tool = { id: "ask_forked", name: "ask_forked", description: "Asks.", target: { agent: helper } };
    await post("/api/libraries/forks/tools", tool);
    const source = await createConversation(
      await createAgent({ identity, tools: { toolIds: ["forks/ask_forked"] } }),
    );
    skipInvariants(source);
    const answer = new Play({ replies: [[{ text: "The helper knows." }]] });
    const { turnId } = await source.play({
      replies: [[{ call: "ask_forked", input: { message: answer.content } }], [{ text: "Done." }]],
    });
    await source.ended(turnId);
    const copy = await fork(source);
    const { moves } = await copy.turn(turnId);
    const [call] = moves.flatMap(({ toolCall }) => toolCall ?? []);
    const below = `/api/conversations/${call?.agent?.conversationId}`;
    const erased = await request(`${copy.path}/events/${call?.operationId}`, { method: "DELETE" });
    expect(erased.status).toBe(204);
    const file = await (await request(`${source.path}/export`)).text();
    const imported = await request("/api/conversations/import", { method: "POST", body: file });
    expect(imported.status, await imported.clone().text()).toBe(201);
    const restored = new TestConversation((await imported.json<{ id: string }>()).id);
    for (const { path } of [copy, restored])
      expect((await request(path, { method: "DELETE" })).status).toBe(204);
    await Promise.all([copy.wake(), restored.wake()]);
    expect((await request(below)).status).toBe(200);
    expect(JSON.stringify(await source.turn(turnId))).toContain("The helper knows.");
  });
});
