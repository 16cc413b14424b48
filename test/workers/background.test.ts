/** Tools that run in the background, on the real Worker: over its entrances, through crashes, and as other clients see them. */
import { exports } from "cloudflare:workers";
import { Chat } from "@ai-sdk/react";
import type { UIMessage } from "ai";
import OpenAI from "openai";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { LATE_RESULT_MS } from "../../src/agents/conversation/core/conversation-limits.ts";
import { ConversationChatTransport } from "../../src/client/ai-sdk/index.ts";
import type { LiveConversation } from "../../src/client/state.ts";
import { cancelledOperations } from "./library.ts";
import { Play } from "./provider.ts";
import { checkInvariants, crash, createAgent, createConversation, request } from "./world.ts";

const ADA = { subject: "ada", tenant: "test", roles: ["admin"] };

let busy: string;

beforeAll(async () => {
  busy = await createAgent("test/busy");
});

afterEach(checkInvariants);

/** A turn that calls `tool` once per gate, answers, and sends a text for each further cycle. */
const work =
  (tool: string, gates: string[], ...then: string[]) =>
  (key: string) => ({
    replies: [
      gates.map((gate) => ({ call: tool, input: { key, gate } })),
      [{ text: "I'm on it." }],
      ...then.map((text) => [{ text }]),
    ],
  });

const turnIn = ({ turns }: LiveConversation, turnId: string) => turns.find(({ id }) => id === turnId);
const operationsIn = (state: LiveConversation, turnId: string) =>
  turnIn(state, turnId)?.items.flatMap((item) => (item.type === "tool" ? [item.operation] : [])) ?? [];

test("A16 A17 A18 A19 B10 ASYNC-2 a client sees the turn wait, its progress, and a message for each result; other turns continue", async () => {
  const conversation = await createConversation(busy);
  const client = await conversation.connect();
  const { play, turnId } = await conversation.play(work("research", ["a", "b"], "A is there.", "B, too."));
  await client.frame("turn.waiting", ({ data }) => data.reason === "operations");
  await client.frame("tool.progress", () => true, 2);
  expect(turnIn(client.state, turnId)).toMatchObject({ status: "active", phase: "waiting" });
  expect(operationsIn(client.state, turnId)).toMatchObject([
    { state: "running", async: true, progress: { waits: "a" } },
    { state: "running", async: true, progress: { waits: "b" } },
  ]);
  expect(await conversation.turn(turnId)).toMatchObject({ phase: "waiting", answer: null });
  const late = await conversation.connect();
  await late.until((state) => turnIn(state, turnId)?.phase === "waiting");
  expect(operationsIn(late.state, turnId)).toMatchObject([{ async: true }, { async: true }]);

  const other = await conversation.play({ replies: [[{ text: "Hello." }]] });
  expect((await conversation.ended(other.turnId)).answer).toBe("Hello.");
  const noted = (await other.play.requests())[0]?.body.messages.map(({ content }) => content).join("\n");
  expect(noted?.match(/research\(/g)).toHaveLength(2);

  await play.open("a");
  await client.frame("turn.waiting", () => true, 2);
  await play.open("b");
  const turn = await conversation.ended(turnId);
  expect(turn).toMatchObject({ status: "completed", answer: "B, too." });
  expect(turn.phase).toBeUndefined();
  const texts = (await conversation.messages()).filter((message) => message.turnId === turnId);
  expect(texts.map(({ content }) => content)).toEqual([play.content, "I'm on it.", "A is there.", "B, too."]);
  await client.until((state) => turnIn(state, turnId)?.status === "completed");
  expect(turnIn(client.state, turnId)?.phase).toBeUndefined();
});

test("A72 EFFECT-4 a crash while the turn waits: an idempotent operation runs again, and its result continues the turn", async () => {
  const conversation = await createConversation(busy);
  const client = await conversation.connect();
  const { play, turnId } = await conversation.play(work("research", ["a"], "There."));
  await client.frame("turn.waiting");
  await play.reached("a");
  await crash();
  await client.whenClosed();
  expect(await conversation.wake(), "a wake-up is armed").toBe(true);
  await play.reached("a", 2);
  await play.open("a");
  expect(await conversation.ended(turnId)).toMatchObject({ status: "completed", answer: "There." });
  const runs = await play.runs();
  expect(new Set(runs.map(({ operationId }) => operationId)).size).toBe(1);
  expect(await play.requests()).toHaveLength(3);
});

test("RECOVER-3 a crash under a `once` operation: its run continues, and its result is accepted until its time limit", async () => {
  const conversation = await createConversation(busy);
  const client = await conversation.connect();
  const { play, turnId } = await conversation.play(work("deliver", ["a"], "Delivered."));
  await client.frame("turn.waiting");
  await play.reached("a");
  await crash();
  await client.whenClosed();
  expect(await conversation.wake()).toBe(true);
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + LATE_RESULT_MS + 1_000 });
  try {
    await conversation.wake();
    expect((await conversation.turn(turnId)).phase, "31 s later").toBe("waiting");
  } finally {
    vi.useRealTimers();
  }
  await play.open("a");
  const turn = await conversation.ended(turnId);
  expect(turn).toMatchObject({ status: "completed", answer: "Delivered." });
  expect(turn.issues).toBeUndefined();
  expect(await play.runs()).toHaveLength(1);
});

test("RECOVER-3 ASYNC-3 without a result in that time, a cycle of the turn tells the model that the outcome is unknown", async () => {
  const conversation = await createConversation(busy);
  const client = await conversation.connect();
  const { play, turnId } = await conversation.play(work("deliver", ["a"], "I do not know."));
  await client.frame("turn.waiting");
  await play.reached("a");
  await crash();
  await client.whenClosed();
  expect(await conversation.wake()).toBe(true);
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 60_000 + LATE_RESULT_MS + 1_000 });
  try {
    await conversation.wake();
    expect(await conversation.ended(turnId)).toMatchObject({ status: "completed", answer: "I do not know." });
  } finally {
    vi.useRealTimers();
  }
  const asked = (await play.requests()).at(-1)?.body.messages.at(-1);
  expect(asked?.content).toContain("Outcome unknown");
  await play.open("a");
});

test("STOP-1 a stop of the turn cancels its operations at their target, each once", async () => {
  const conversation = await createConversation(busy);
  const client = await conversation.connect();
  const { play, turnId } = await conversation.play(work("deliver", ["a", "b"]));
  await client.frame("turn.waiting");
  const runs = await play.runs(2);
  const [status] = await conversation.stop(turnId);
  expect(status).toBe(200);
  await vi.waitFor(
    () => expect(runs.every(({ operationId }) => cancelledOperations.has(operationId))).toBe(true),
    1_000,
  );
  expect(
    client
      .framesOf("tool.cancelled")
      .map(({ operationId }) => operationId)
      .sort(),
  ).toEqual(runs.map(({ operationId }) => operationId).sort());
});

const fetchAsAda = (input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> => {
  const headers = new Headers(init.headers);
  headers.set("x-test-principal", JSON.stringify(ADA));
  return exports.default.fetch(new Request(input, { ...init, headers }));
};

test("UISTREAM-5 CURSOR-3 a long job runs, and Stop in turn B: useChat was ready, and the job continues; a resume shows the whole turn", async () => {
  const conversation = await createConversation(busy);
  const transport = new ConversationChatTransport({
    conversationId: conversation.id,
    baseUrl: "http://dramatis.test",
    fetch: fetchAsAda,
  });
  const chat = new Chat<UIMessage>({ transport, messages: [] });
  const texts = () =>
    chat.lastMessage?.parts.flatMap((part) => (part.type === "text" ? [part.text] : [])) ?? [];
  const play = new Play(work("deliver", ["a"], "Delivered."));
  await chat.sendMessage({ text: play.content });
  expect([chat.status, texts()]).toEqual(["ready", ["I'm on it."]]);
  const turnId = chat.lastMessage?.id ?? "";

  const other = new Play({ replies: [[{ text: "Half" }, { gate: "shown" }, { text: "." }]] });
  const sent = chat.sendMessage({ text: other.content });
  await expect.poll(texts).toEqual(["Half"]);
  await chat.stop();
  await sent;
  const stopped = chat.lastMessage?.id ?? "";
  await expect.poll(async () => (await conversation.turn(stopped)).error?.code).toBe("CANCELLED");
  expect(await conversation.turn(turnId)).toMatchObject({ status: "active", phase: "waiting" });

  const reloaded = new Chat<UIMessage>({ transport, messages: [] });
  await reloaded.resumeStream();
  expect([reloaded.status, reloaded.lastMessage?.id]).toEqual(["ready", turnId]);
  await play.open("a");
  expect(await conversation.ended(turnId)).toMatchObject({ answer: "Delivered." });

  // The same message again: the whole turn, including the part after its wait.
  const again = new Chat<UIMessage>({ transport, messages: [] });
  await again.sendMessage({
    id: chat.messages[0]?.id ?? "",
    role: "user",
    parts: [{ type: "text", text: play.content }],
  });
  const said = again.lastMessage?.parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
  expect(said).toEqual(["I'm on it.", "Delivered."]);
});

test("ASYNC-6 a client of the OpenAI protocol gets one answer, with the result", async () => {
  const client = new OpenAI({
    baseURL: "http://dramatis.test/v1",
    apiKey: "none",
    maxRetries: 0,
    fetch: fetchAsAda,
  });
  const play = new Play((key) => ({
    replies: [[{ call: "research", input: { key, gate: "a" } }], [{ text: "Here it is." }]],
  }));
  const asked = client.chat.completions.create({
    model: busy,
    messages: [{ role: "user", content: play.content }],
  });
  await play.open("a");
  expect((await asked).choices[0]?.message.content).toBe("Here it is.");
  expect((await play.requests()).at(-1)?.body.messages.at(-1)).toMatchObject({
    role: "tool",
    content: '"Result of a."',
  });
});

test("A1 a posted tool says for itself that it runs in the background", async () => {
  const body = {
    id: "look",
    name: "look",
    description: "Looks.",
    target: { task: "test/double" },
    async: true,
  };
  const response = await request("/api/libraries/posted-jobs/tools", {
    method: "POST",
    body: JSON.stringify(body),
  });
  expect([response.status, await response.json()]).toMatchObject([201, { definition: { async: true } }]);
});
