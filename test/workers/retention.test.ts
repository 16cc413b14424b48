/** Conversations over long times, on the real Worker: they answer, or are deleted after a time without activity. */
import { runInDurableObject } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import { afterAll, expect, test, vi } from "vitest";
import type { ConversationApi } from "../../src/protocol/conversation-api.ts";
import { DAY_MS } from "../../src/shared/time.ts";
import { expectErased, rowsOfD1 } from "./everything.ts";
import { RETENTION_DAYS } from "./worker.ts";
import { ADA, crash, createAgent, createConversation, request, TestConversation } from "./world.ts";

// Ids are made in order of time, so the clock only advances.
afterAll(() => void vi.useRealTimers());

async function begin(members: object): Promise<TestConversation> {
  const plain = await createAgent("test/plain");
  const body = JSON.stringify({ projectIds: ["default", "brief", "later", "broken", "zero"] });
  expect((await request(`/api/agents/${plain}`, { method: "PATCH", body })).status).toBe(200);
  const id = `conv_${crypto.randomUUID().replaceAll("-", "").slice(0, 26).toUpperCase()}`;
  // SAFETY: the class of the export has this interface.
  const stub = exports.Conversation.getByName(`test:${id}`) as unknown as ConversationApi;
  const created = await stub.create(ADA, { id, agentId: plain, ...members });
  expect(created, JSON.stringify(created)).toMatchObject({ ok: true });
  return new TestConversation(id);
}

function pass(days: number): void {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + days * DAY_MS });
}

/** Wakes the conversation after a number of days. */
function wakeAfter(conversation: TestConversation, days: number): Promise<boolean> {
  pass(days);
  return conversation.wake();
}

const status = async ({ path }: TestConversation) => (await request(path)).status;

test("G24 LASTING-1 a conversation of a project with a retention is deleted after it, and no data remain", async () => {
  const secret = `kept-for-a-week-${crypto.randomUUID()}`;
  const conversation = await begin({ projectId: "brief", title: secret });
  const { turnId } = await conversation.play({ replies: [[{ text: `I keep ${secret}.` }]] });
  await conversation.ended(turnId);
  await expect.poll(rowsOfD1).toContain(conversation.id);
  // The end of the turn leaves only the wake-up of the retention.
  const daysLeft = async () => {
    const alarm = await runInDurableObject(conversation.stub, (_, { storage }) => storage.getAlarm());
    return ((alarm ?? 0) - Date.now()) / DAY_MS;
  };
  await expect.poll(daysLeft).toBeGreaterThan(6.9);
  expect(await wakeAfter(conversation, 7.1)).toBe(true);
  await expect.poll(() => status(conversation)).toBe(404);
  await expectErased(conversation.stub, secret);
  await expect.poll(rowsOfD1).not.toContain(conversation.id);
});

test("G24 LASTING-1 a message extends the time, and a read does not", async () => {
  const conversation = await begin({ projectId: "brief" });
  pass(5);
  const { turnId } = await conversation.play({ replies: [[{ text: "Here." }]] });
  await conversation.ended(turnId);
  pass(2.1);
  expect(await conversation.wake()).toBe(true);
  expect(await status(conversation)).toBe(200);
  pass(5);
  expect(await conversation.wake()).toBe(true);
  await expect.poll(() => status(conversation)).toBe(404);
});

test("G24 LASTING-2 a conversation with an active turn stays until the turn has ended", async () => {
  const conversation = await begin({ projectId: "brief" });
  const { play, turnId } = await conversation.play({ replies: [[{ text: "Half" }, { gate: "end" }]] });
  await play.reached("end");
  await wakeAfter(conversation, 8);
  expect((await conversation.turn(turnId)).status).toBe("active");
  await play.open("end");
  await conversation.ended(turnId);
  await wakeAfter(conversation, 8);
  await expect.poll(() => status(conversation)).toBe(404);
});

test("G24 LASTING-1 conversations that lists leave out are deleted after 30 days, and others stay", async () => {
  const [unlisted, listed] = [await begin({ listed: false }), await begin({})];
  await crash();
  expect([await status(unlisted), await status(listed)]).toEqual([200, 200]);
  await wakeAfter(unlisted, 30.1);
  await listed.wake();
  await expect.poll(() => status(unlisted)).toBe(404);
  expect(await status(listed)).toBe(200);
});

test("G24 LASTING-3 a later policy counts from the next start of the actor", async () => {
  const conversation = await begin({ projectId: "later" });
  RETENTION_DAYS.later = 3;
  await crash();
  expect(await status(conversation)).toBe(200);
  expect(await wakeAfter(conversation, 3.1)).toBe(true);
  await expect.poll(() => status(conversation)).toBe(404);
});

test.each(["broken", "zero"])(
  "G24 LASTING-4 a conversation works and stays if the policy fails (%s)",
  async (projectId) => {
    RETENTION_DAYS.zero = 0;
    const conversation = await begin({ projectId });
    await crash();
    const { turnId } = await conversation.play({ replies: [[{ text: "Here." }]] });
    expect((await conversation.ended(turnId)).answer).toBe("Here.");
    await wakeAfter(conversation, 40);
    expect(await status(conversation)).toBe(200);
  },
);

test("A24 after 60 days without a message the conversation answers the next message with its history", async () => {
  const conversation = await createConversation(await createAgent("test/plain"));
  const first = await conversation.play({ replies: [[{ text: "Hi." }]] });
  await conversation.ended(first.turnId);
  await conversation.evict();
  pass(60);
  const second = await conversation.play({ replies: [[{ text: "Yes." }]] });
  const turn = await conversation.ended(second.turnId);
  const before = await conversation.turn(first.turnId);
  expect(turn.answer).toBe("Yes.");
  expect(Date.parse(turn.createdAt) - Date.parse(before.createdAt)).toBeGreaterThanOrEqual(60 * DAY_MS);
  const [request] = await second.play.requests(1);
  const texts = request?.body.messages.map(({ content }) => content);
  expect(texts?.slice(-3)).toEqual([first.play.content, "Hi.", second.play.content]);
});
