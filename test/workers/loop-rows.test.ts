/** The loop of a conversation on the real Worker: order of its steps, failures in the background, windows, replies, overflow. */
import { afterEach, beforeAll, expect, test } from "vitest";
import type { ConversationApi } from "../../src/protocol/conversation-api.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { post } from "./http-client.ts";
import { Play } from "./provider.ts";
import { ADA, checkInvariants, createAgent, createConversation, request } from "./world.ts";

const AUTHOR: Principal = { subject: "ann", tenant: "test", roles: ["author"] };

let plain: string;
let hooked: string;

beforeAll(async () => {
  plain = await createAgent("test/plain");
  const persona = {
    id: "hooked",
    identity: { systemPrompt: "Test.", modelProfileId: "test/scripted" },
    tools: { toolIds: ["test/double"] },
    memory: {
      contextAssembly: { task: "test/replay_recent" },
      memoryExtraction: { task: "test/remember" },
      recentTurnsLimit: 3,
    },
  };
  expect((await post("/api/libraries/loop/personas", persona, AUTHOR)).status).toBe(201);
  hooked = await createAgent("loop/hooked");
});

afterEach(checkInvariants);

/** The contents of the messages of a play's request. */
async function contentsOf(play: Play, index = 0): Promise<unknown[]> {
  const { body } = (await play.requests(index + 1))[index] ?? expect.fail("no request");
  return body.messages.map(({ content }) => content);
}

test("A11 the journal has a turn's steps in the fixed order, extraction after its end", async () => {
  const conversation = await createConversation(hooked);
  const { turnId } = await conversation.play({
    replies: [[{ call: "double", input: { n: 1 } }], [{ text: "Two." }]],
  });
  await conversation.ended(turnId);
  const STEPS = [
    "turn.started",
    "message.user",
    "context_assembly.completed",
    "message.started",
    "message.completed",
    "tool.requested",
    "tool.completed",
    "message.started",
    "message.completed",
    "turn.completed",
    "memory_extraction.completed",
    "turn.finalized",
  ];
  const steps = async () =>
    (await conversation.journal())
      .filter((entry) => entry.turnId === turnId && STEPS.includes(entry.type))
      .map(({ type }) => type);
  await expect.poll(steps).toEqual(STEPS);
});

test("A22 E10 a background tool that fails makes one more model call in its turn, a message, and one tool failure", async () => {
  const tool = {
    id: "fails",
    name: "fails_later",
    description: "Fails.",
    target: { task: "test/fails" },
    async: true,
  };
  expect((await post("/api/libraries/failing/tools", tool, AUTHOR)).status).toBe(201);
  const persona = {
    id: "failing",
    identity: { systemPrompt: "Test.", modelProfileId: "test/scripted" },
    tools: { toolIds: ["failing/fails"] },
  };
  expect((await post("/api/libraries/failing/personas", persona, AUTHOR)).status).toBe(201);
  const conversation = await createConversation(await createAgent("failing/failing"));
  const { play, turnId } = await conversation.play((key) => ({
    replies: [
      [{ call: "fails_later", input: { key, retriable: false } }],
      [{ text: "I am looking." }],
      [{ text: "It failed." }],
    ],
  }));
  const turn = await conversation.ended(turnId);
  expect(turn).toMatchObject({ status: "completed", answer: "It failed.", issues: { toolFailures: 1 } });
  expect(JSON.stringify(await contentsOf(play, 2))).toContain("The shelf is empty.");
  const texts = (await conversation.messages()).filter((message) => message.turnId === turnId);
  expect(texts.map(({ content }) => content)).toEqual([play.content, "I am looking.", "It failed."]);
  const failed = (await conversation.journal()).filter(({ type }) => type === "tool.failed");
  expect(failed).toMatchObject([{ turnId }]);
});

test("A30 the model gets the message that another message replies to, outside its window too", async () => {
  const conversation = await createConversation(plain);
  const first = await conversation.play({ replies: [[{ text: "The code is 4711." }]] });
  await conversation.ended(first.turnId);
  const answer = (await conversation.messages()).find(({ role }) => role === "agent") ?? expect.fail();
  const second = await conversation.play({ replies: [[{ text: "Yes." }]] }, { replyToMessageId: answer.id });
  expect((await conversation.ended(second.turnId)).replyToMessageId).toBe(answer.id);
  expect(
    (await contentsOf(second.play)).filter(
      (content) => `${content}`.includes("The code is 4711.") && content !== first.play.content,
    ),
  ).toHaveLength(2);
});

test("A34 with a limit of 3 and 5 turns the assembly gets the last 3 turns, and lists an older active turn", async () => {
  const conversation = await createConversation(hooked);
  const open = await conversation.play({ replies: [[{ text: "Wait" }, { gate: "open" }, { text: "ed." }]] });
  await open.play.reached("open");
  for (const text of ["One.", "Two.", "Three.", "Four."])
    await conversation.ended((await conversation.play({ replies: [[{ text }]] })).turnId);
  const last = await conversation.play({ replies: [[{ text: "Five." }]] });
  await conversation.ended(last.turnId);
  const [seen] = await contentsOf(last.play);
  expect(JSON.parse(`${seen}`)).toEqual({
    recent: ["Two.", "Three.", "Four."],
    active: [open.turnId],
  });
  await open.play.open("open");
  expect((await conversation.ended(open.turnId)).answer).toBe("Waited.");
});

test("E5 a signal beyond the queue is dropped with an entry that names it, and a resend succeeds later", async () => {
  const conversation = await createConversation(plain);
  // SAFETY: the stub is that of a conversation.
  const rpc = conversation.stub as unknown as ConversationApi;
  const plays = Array.from(
    { length: 54 },
    () => new Play({ replies: [[{ gate: "go" }, { text: "x".repeat(1_000_000) }]] }),
  );
  const signals = plays.map(({ content }, index) => ({
    id: `signal ${index}`,
    type: "conversation.user.message",
    data: { content },
  }));
  const dropped: (typeof signals)[number][] = [];
  for (let index = 0; index < signals.length; index += 6) {
    const batch = signals.slice(index, index + 6);
    const answer = await rpc.ingest(ADA, batch);
    const results = answer.ok ? answer.value : expect.fail("the batch is refused");
    dropped.push(
      ...batch.filter((_, place) => {
        const result = results[place];
        return result?.ok === false && result.error.code === "QUEUE_OVERFLOW";
      }),
    );
  }
  expect(dropped.length).toBeGreaterThan(0);
  const overflow = (await conversation.journal()).filter(
    ({ type }) => type === "conversation.queue.overflow",
  );
  expect(overflow.flatMap(({ data }) => (data as { ids: string[] }).ids)).toContain(dropped[0]?.id);
  await request(`${conversation.path}/cancel`, { method: "POST", body: "{}" });
  await request(`${conversation.path}/resume`, { method: "POST", body: "{}" });
  const isTaken = async () => {
    const again = await rpc.ingest(ADA, dropped.slice(0, 1));
    return again.ok && again.value[0]?.ok;
  };
  await expect.poll(isTaken).toBe(true);
  await conversation.gate("cancel");
});
