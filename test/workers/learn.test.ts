/** Learning on workerd: by the rules of the offline model, and by a model behind the real adapter. */
import { afterEach, expect, test } from "vitest";
import { checkInvariants, createAgent, createConversation, type TestConversation } from "./world.ts";

afterEach(checkInvariants);

const agentOf = (modelProfileId?: string) =>
  createAgent({
    identity: { systemPrompt: "You are a friend.", ...(modelProfileId !== undefined && { modelProfileId }) },
    memory: { scope: "user", extract: true, recall: false, memoryTools: false, timeZone: "Asia/Tokyo" },
  });

/** The operations of the conversation's extraction, once it has completed. */
async function learned(conversation: TestConversation) {
  const completed = async () =>
    (await conversation.journal()).find(({ type }) => type === "memory_extraction.completed")?.data;
  await expect.poll(completed, { timeout: 20_000 }).toBeDefined();
  const data = await completed();
  return typeof data === "object" && data !== null && "operations" in data ? data.operations : undefined;
}

test("LEARN-9 rules learn from a turn if the model is offline", async () => {
  const conversation = await createConversation(await agentOf());
  const { turnId } = await conversation.say(
    "My brother has a PhD. Do I like olives? I moved to Rome yesterday.",
  );
  await conversation.ended(turnId);
  const tokyo = new Date((await conversation.turn(turnId)).createdAt).getTime() + 9 * 3_600_000;
  const yesterday = new Date(tokyo - 24 * 3_600_000).toISOString().slice(0, 10);
  expect(await learned(conversation)).toMatchObject([
    { op: "write", content: "The user's brother has a PhD.", type: "fact" },
    { op: "write", content: "The user lives in Rome.", time: `${yesterday}T03:00:00.000Z` },
  ]);
});

test("B9 LEARN-5 a model gets the transcript as data, and is called again after an answer that changes an invented memory", async () => {
  const conversation = await createConversation(await agentOf("test/scripted"));
  const memory = {
    ...{ action: "add", id: null, content: "The user's brother has a PhD.", type: "fact", significance: 0.7 },
    ...{ speaker: "user", quote: "My brother has a PhD", when: null },
  };
  // The user's message has this script, too: there the words of the claim are written otherwise.
  const claim = { ...memory, content: "The user is a robot.", quote: "I am a robot" };
  const answer = (...memories: object[]) => [
    { text: JSON.stringify({ memories }).replaceAll("robot", "r\\u006fbot") },
  ];
  const { play, turnId } = await conversation.play({
    says: "My brother has a PhD.",
    replies: [[{ text: "I live in Rome." }]],
    extraction: [answer({ ...memory, action: "change", id: "mem_invented" }), answer(memory, claim)],
  });
  await conversation.ended(turnId);
  expect(await learned(conversation)).toMatchObject([{ op: "write", content: memory.content }]);
  const asked = (await play.requests(3)).filter(({ reply }) => reply === -2);
  expect(asked.map(({ attempt }) => attempt)).toEqual([0, 1]);
  expect(asked[0]?.body.messages.at(-1)?.content).toContain('{"speaker":"agent","text":"I live in Rome."}');
  const failed = (await conversation.journal()).filter(({ type }) => type === "memory_extraction.failed");
  expect(failed).toMatchObject([{ data: { attempt: 1, final: false } }]);
});
