/** Conversations over long times. This file needs its own runtime, because it moves the clock forward and later ids would be in the past. */
import { expect, onTestFinished, test, vi } from "vitest";
import { createAgent, createConversation } from "./world.ts";

const DAY_MS = 86_400_000;

test("A24 after 60 days without a message the conversation answers the next message with its history", async () => {
  const conversation = await createConversation(await createAgent("test/plain"));
  const first = await conversation.play({ replies: [[{ text: "Hi." }]] });
  await conversation.ended(first.turnId);
  await conversation.evict();
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 60 * DAY_MS });
  onTestFinished(() => void vi.useRealTimers());
  const second = await conversation.play({ replies: [[{ text: "Yes." }]] });
  const turn = await conversation.ended(second.turnId);
  const before = await conversation.turn(first.turnId);
  expect(turn.answer).toBe("Yes.");
  expect(Date.parse(turn.createdAt) - Date.parse(before.createdAt)).toBeGreaterThanOrEqual(60 * DAY_MS);
  const [request] = await second.play.requests(1);
  const texts = request?.body.messages.map(({ content }) => content);
  expect(texts?.slice(-3)).toEqual([first.play.content, "Hi.", second.play.content]);
});
