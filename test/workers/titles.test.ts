/** Titles that conversations get from their first message. */
import { exports } from "cloudflare:workers";
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { D1Directory } from "../../src/d1/d1-directory.ts";
import { systemIds } from "../../src/ports/system.ts";
import type { ConversationApi } from "../../src/protocol/conversation-api.ts";
import type { AttemptScript } from "../support/provider-script.ts";
import { expectErased, rowsOfD1 } from "./everything.ts";
import { Play } from "./provider.ts";
import { ADA, checkInvariants, createAgent, request, TestConversation } from "./world.ts";

let agent: string;
/** Its titles are by a model. */
let titler: string;

beforeAll(async () => {
  agent = await createAgent("test/handy");
  titler = await createAgent("test/titler");
  const body = JSON.stringify({ projectIds: ["default", "titled", "broken"] });
  for (const id of [agent, titler])
    expect((await request(`/api/agents/${id}`, { method: "PATCH", body })).status).toBe(200);
});

afterEach(checkInvariants);

async function begin(members: object = {}): Promise<TestConversation> {
  const id = `conv_${systemIds.ulid()}`;
  // SAFETY: the class of the export has this interface.
  const stub = exports.Conversation.getByName(`test:${id}`) as unknown as ConversationApi;
  const created = await stub.create(ADA, { id, agentId: agent, projectId: "titled", ...members });
  expect(created, JSON.stringify(created)).toMatchObject({ ok: true });
  return new TestConversation(id);
}

/** Plays a turn with a message that begins with a text. The title of a failed turn is as good. */
async function play(of: TestConversation, says: string): Promise<{ turnId: string; messageId: string }> {
  const script = new Play({ replies: [[{ text: "Yes." }]] });
  const texts = [says, script.content].map((text) => ({ type: "text" as const, text }));
  const { turnId, messageId } = await of.say(texts);
  await of.ended(turnId);
  return { turnId, messageId };
}

const titleOf = async (of: TestConversation) => (await of.view()).title;

async function listed({ id }: TestConversation): Promise<string | null | undefined> {
  const response = await request("/api/conversations?order=desc&limit=200");
  const { conversations } = await response.json<{ conversations: { id: string; title: string | null }[] }>();
  return conversations.find((one) => one.id === id)?.title;
}

const rename = (of: TestConversation, title: string | null) =>
  request(of.path, { method: "PATCH", body: JSON.stringify({ title }) });

test("G24 a title of a person loses the marks that change the direction of text, and a title of such marks is refused", async () => {
  const marked = "\u202eTrip\u202c to \u2067Oslo\u2069";
  const conversation = await begin({ title: marked });
  expect(await titleOf(conversation)).toBe("Trip to Oslo");
  expect((await rename(conversation, `${marked} again`)).status).toBe(200);
  expect(await titleOf(conversation)).toBe("Trip to Oslo again");
  expect((await rename(conversation, "\u202e\u2066")).status).toBe(422);
});

describe("G24 automatic titles", () => {
  test("G24 TITLE-4 the first message gives a title, with its commit, to readers, lists and the journal; later messages change nothing", async () => {
    const conversation = await begin();
    const reader = await conversation.connect();
    const text = `Plan\u0007 my\n trip\u202e to ${"Vienna and ".repeat(20)}`;
    await play(conversation, text);
    const title = await titleOf(conversation);
    expect(title).toMatch(/^Plan my trip to Vienna and .*…$/);
    expect(title?.length).toBeLessThanOrEqual(80);
    expect((await reader.frame("conversation.updated")).data).toMatchObject({ title });
    await expect.poll(() => listed(conversation)).toBe(title);
    const [entry] = (await conversation.journal()).filter(({ type }) => type === "conversation.updated");
    expect(entry?.data).toEqual({ title, by: { type: "user", userId: "ada" }, automatic: true });
    await play(conversation, "Another matter.");
    expect(await titleOf(conversation)).toBe(title);
    await rename(conversation, null);
    await play(conversation, "A third matter.");
    expect(await titleOf(conversation), "at most once").toBeNull();
  });

  test("G24 TITLE-4 a title of a person stays; unlisted conversations get none", async () => {
    const named = await begin({ title: "Mine" });
    await play(named, "Something else.");
    expect(await titleOf(named)).toBe("Mine");
    const renamed = await begin();
    await play(renamed, "Something else.");
    await rename(renamed, "Mine now");
    await play(renamed, "More.");
    expect(await titleOf(renamed)).toBe("Mine now");
    const unlisted = await begin({ listed: false });
    await play(unlisted, "In no list.");
    expect(await titleOf(unlisted)).toBeNull();
    await request(unlisted.path, { method: "PATCH", body: JSON.stringify({ title: "Named" }) });
    await expect.poll(() => titleOf(unlisted)).toBe("Named");
    expect(await rowsOfD1()).not.toContain(unlisted.id);
  });

  test("G24 TITLE-5 a project may opt out, and a broken policy gives no title", async () => {
    for (const projectId of ["default", "broken"]) {
      const conversation = await begin({ projectId });
      await play(conversation, "Without a title.");
      expect(await titleOf(conversation)).toBeNull();
    }
  });

  test("G24 TITLE-4 ERASE-7 the erasure of the first message removes its title everywhere, also in a fork", async () => {
    const secret = `titled-${crypto.randomUUID()}`;
    const conversation = await begin();
    const { turnId, messageId } = await play(conversation, `I am ${secret}, hello.`);
    expect(await titleOf(conversation)).toContain(secret);
    const forked = await request(`${conversation.path}/fork`, {
      method: "POST",
      body: JSON.stringify({ turnId }),
    });
    const { id, detail } = await forked.json<{ id: string; detail?: string }>();
    expect(detail).toBeUndefined();
    const fork = new TestConversation(id);
    expect(await titleOf(fork)).toContain(`Fork of I am ${secret}`);
    for (const one of [conversation, fork]) {
      const erased = await request(`${one.path}/events/${messageId}`, { method: "DELETE" });
      expect(erased.status).toBe(204);
      expect(await titleOf(one)).toBeNull();
      await expectErased(one.stub, secret);
    }
    await expect.poll(rowsOfD1).not.toContain(secret);
    await play(conversation, "Again.");
    expect(await titleOf(conversation), "at most once").toBeNull();
  });

  test("H5 TITLE-4 a title costs one put of the list's row, in the first turn only", async () => {
    const puts = vi.spyOn(D1Directory.prototype, "putConversation");
    for (const projectId of ["default", "titled"]) {
      const conversation = await begin({ projectId });
      await expect.poll(() => listed(conversation)).toBeNull();
      puts.mockClear();
      await play(conversation, "How much is it?");
      if (projectId === "titled") await expect.poll(() => listed(conversation)).toMatch(/^How/);
      await play(conversation, "And now?");
      expect(puts).toHaveBeenCalledTimes(projectId === "titled" ? 1 : 0);
    }
    puts.mockRestore();
  });
});

describe("G24 titles by a model", () => {
  /** A script with the attempts for a title. */
  const titling = (...title: AttemptScript[]) => new Play({ replies: [[{ text: "Yes." }]], title });
  const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 };
  const answer = async (of: TestConversation, script: Play) => {
    const { turnId, messageId } = await of.say(script.content);
    expect((await of.ended(turnId)).status).toBe("completed");
    return { turnId, messageId };
  };
  const forkOf = async (of: TestConversation, at: { turnId: string }) => {
    const forked = await request(`${of.path}/fork`, { method: "POST", body: JSON.stringify(at) });
    return new TestConversation((await forked.json<{ id: string }>()).id);
  };
  const types = async (of: TestConversation) => (await of.journal()).map(({ type }) => type);

  test("G24 TITLE-6 TITLE-7 replaces the beginning of the message for readers, lists and the journal, after the answer, once", async () => {
    const conversation = await begin({ agentId: titler });
    const reader = await conversation.connect();
    const script = titling({ status: 500, message: "Try again." }, [
      { text: '"Trips to Vienna."' },
      { usage },
    ]);
    const { turnId } = await answer(conversation, script);
    await expect.poll(() => titleOf(conversation)).toBe("Trips to Vienna");
    await expect.poll(() => listed(conversation)).toBe("Trips to Vienna");
    const titles = reader.frames.flatMap(({ type, data }) =>
      type === "conversation.updated" && "title" in data ? [data.title] : [],
    );
    expect(titles.at(-1)).toBe("Trips to Vienna");
    const journal = await conversation.journal();
    expect(
      journal.filter(({ type }) => type.includes("title") || type === "conversation.updated"),
    ).toMatchObject([
      { data: { title: expect.stringMatching(/^\{"key":/), automatic: true } },
      { type: "conversation.title.started", data: { agentId: titler, turnId } },
      { type: "conversation.title.failed", data: { attempt: 1, final: false, code: "MODEL_FAILED" } },
      { data: { title: "Trips to Vienna", by: { type: "agent", agentId: titler, turnId }, automatic: true } },
    ]);
    const at = (entry: string) => journal.findIndex(({ type }) => type === entry);
    expect(at("conversation.title.started")).toBeGreaterThan(at("turn.completed"));
    expect((await conversation.view()).usage).toMatchObject({ calls: 2, inputTokens: 100 });
    await answer(conversation, titling([{ text: "Another" }]));
    expect(await titleOf(conversation)).toBe("Trips to Vienna");
    expect((await script.requests()).filter(({ reply }) => reply === -3)).toHaveLength(2);
  });

  test("FORK-2 TITLE-2 a fork before the turn that the title of a model describes has no title", async () => {
    const conversation = await begin({ agentId: titler });
    const first = await answer(conversation, new Play({ replies: [[{ text: "" }]] }));
    const described = await answer(conversation, titling([{ text: "About the second" }]));
    await expect.poll(() => titleOf(conversation)).toBe("About the second");
    expect(await titleOf(await forkOf(conversation, { turnId: first.turnId }))).toBeNull();
    expect(await titleOf(await forkOf(conversation, { turnId: described.turnId }))).toBe(
      "Fork of About the second",
    );
  });

  test("FORK-2 TITLE-7 a fork during the call keeps the title of the message, and asks no model for another", async () => {
    const conversation = await begin({ agentId: titler });
    const script = titling([{ gate: "title" }, { text: "Late" }]);
    const { turnId } = await answer(conversation, script);
    await script.reached("title");
    const fork = await forkOf(conversation, { turnId });
    const title = await titleOf(fork);
    expect(title).toMatch(/^Fork of \{"key":/);
    const starts = async () => (await types(fork)).filter((type) => type === "conversation.title.started");
    expect(await starts(), "of the original").toHaveLength(1);
    const next = titling([{ text: "Another" }]);
    await answer(fork, next);
    expect(await starts()).toHaveLength(1);
    await script.open("title");
    await expect.poll(() => titleOf(conversation)).toBe("Late");
    expect([await titleOf(fork), (await next.requests()).length]).toEqual([title, 1]);
  });

  test("G24 TITLE-1 TITLE-4 a person decides for no title before the first message", async () => {
    const conversation = await begin({ agentId: titler });
    expect((await rename(conversation, null)).status).toBe(200);
    const script = titling([{ text: "Another" }]);
    await answer(conversation, script);
    expect([await titleOf(conversation), (await script.requests()).length]).toEqual([null, 1]);
    await expect.poll(() => listed(conversation)).toBeNull();
  });

  test("G24 TITLE-9 a person's title wins over a running call; an export waits for the call", async () => {
    const conversation = await begin({ agentId: titler });
    const script = titling([{ gate: "title" }, { text: "Late" }]);
    await answer(conversation, script);
    await script.reached("title");
    expect((await request(`${conversation.path}/export`)).status).toBe(409);
    await rename(conversation, "Mine");
    await script.open("title");
    await answer(conversation, titling([{ text: "Another" }]));
    expect(await titleOf(conversation)).toBe("Mine");
    expect(await types(conversation)).toContain("conversation.title.failed");
    expect((await request(`${conversation.path}/export`)).status).toBe(200);
  });

  test("G24 TITLE-2 TITLE-6 ERASE-7 an erasure in the first turn removes its title everywhere, also in a fork, which writes no title of its own", async () => {
    const secret = `titled-${crypto.randomUUID()}`;
    const conversation = await begin({ agentId: titler });
    // The script in the message has no text of the title: JSON escapes the tab.
    const script = titling([{ text: `On\t${secret}` }]);
    const { turnId, messageId } = await answer(conversation, script);
    await expect.poll(() => titleOf(conversation)).toBe(`On ${secret}`);
    const fork = await forkOf(conversation, { turnId });
    expect(await titleOf(fork)).toBe(`Fork of On ${secret}`);
    await answer(fork, titling([{ text: "Another" }]));
    expect(await titleOf(fork)).toBe(`Fork of On ${secret}`);
    const second = await forkOf(fork, { turnId });
    expect(await titleOf(second)).toBe(`Fork of Fork of On ${secret}`);
    await rename(conversation, "Mine");
    for (const [one, left] of [
      [conversation, "Mine"],
      [fork, null],
      [second, null],
    ] as const) {
      expect((await request(`${one.path}/events/${messageId}`, { method: "DELETE" })).status).toBe(204);
      expect(await titleOf(one)).toBe(left);
      await expectErased(one.stub, secret);
    }
    await expect.poll(rowsOfD1).not.toContain(secret);
  });

  test("G24 TITLE-9 ERASE-5 an erasure in the first turn ends the running call", async () => {
    const conversation = await begin({ agentId: titler });
    const script = titling([{ gate: "title" }, { text: "Late" }]);
    const { messageId } = await answer(conversation, script);
    await script.reached("title");
    expect((await request(`${conversation.path}/events/${messageId}`, { method: "DELETE" })).status).toBe(
      204,
    );
    await script.open("title");
    await answer(conversation, titling([{ text: "Another" }]));
    expect(await titleOf(conversation)).toBeNull();
  });

  test("G24 TITLE-4 TITLE-6 a conversation that a call opens gets no title", async () => {
    const tool = { id: "ask_titler", name: "ask_titler", description: "Asks.", target: { agent: titler } };
    const posted = await request("/api/libraries/titles/tools", {
      method: "POST",
      body: JSON.stringify(tool),
    });
    expect(posted.status).toBe(201);
    const agentId = await createAgent({
      identity: { systemPrompt: "You ask.", modelProfileId: "test/scripted" },
      tools: { toolIds: ["titles/ask_titler"] },
    });
    const body = JSON.stringify({ projectIds: ["titled"] });
    expect((await request(`/api/agents/${agentId}`, { method: "PATCH", body })).status).toBe(200);
    const conversation = await begin({ agentId });
    const called = titling([{ text: "Another" }]);
    const { turnId } = await answer(
      conversation,
      new Play({
        replies: [[{ call: "ask_titler", input: { message: called.content } }], [{ text: "Done." }]],
      }),
    );
    const { moves } = await conversation.turn(turnId);
    const [id = ""] = moves.flatMap(({ toolCall }) => toolCall?.agent?.conversationId ?? []);
    const room = new TestConversation(id);
    expect(await room.view()).toMatchObject({ status: "completed", title: null, projectId: "titled" });
    expect(await types(room)).not.toContain("conversation.title.started");
    expect(await called.requests()).toHaveLength(1);
  });

  test("G24 TITLE-6 ERASE-7 the erasure of the first message before the first answer removes its title for good", async () => {
    const conversation = await begin({ agentId: titler });
    const { messageId } = await answer(conversation, new Play({ replies: [[{ text: "" }]] }));
    expect(await titleOf(conversation)).not.toBeNull();
    const erased = await request(`${conversation.path}/events/${messageId}`, { method: "DELETE" });
    expect(erased.status).toBe(204);
    await answer(conversation, titling([{ text: "Another" }]));
    expect(await titleOf(conversation)).toBeNull();
    expect(await types(conversation)).not.toContain("conversation.title.started");
  });

  test("G24 TITLE-7 a persona with an unknown profile or without a profile is refused", async () => {
    const persona = (modelProfileId: string) => ({
      identity: { systemPrompt: "You answer." },
      titles: { modelProfileId },
    });
    const create = (given: object) =>
      request("/api/agents", { method: "POST", body: JSON.stringify({ persona: given }) });
    expect((await create(persona("test/missing"))).status).toBe(422);
    expect((await create({ ...persona("test/priced"), titles: {} })).status).toBe(422);
  });
});
