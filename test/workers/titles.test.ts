/** Titles that conversations get from their first message. */
import { exports } from "cloudflare:workers";
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { D1Directory } from "../../src/d1/d1-directory.ts";
import { systemIds } from "../../src/ports/system.ts";
import type { ConversationApi } from "../../src/protocol/conversation-api.ts";
import { expectErased, rowsOfD1 } from "./everything.ts";
import { Play } from "./provider.ts";
import { ADA, checkInvariants, createAgent, request, TestConversation } from "./world.ts";

let agent: string;

beforeAll(async () => {
  agent = await createAgent("test/handy");
  const body = JSON.stringify({ projectIds: ["default", "titled", "broken"] });
  expect((await request(`/api/agents/${agent}`, { method: "PATCH", body })).status).toBe(200);
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
