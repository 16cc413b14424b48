/** Cases that users of other systems report, on the real Worker: stops, reloads, crashes and messages that cross. */
import { exports } from "cloudflare:workers";
import { Chat } from "@ai-sdk/react";
import {
  type ChatTransport,
  convertToModelMessages,
  DefaultChatTransport,
  type UIMessage,
  validateUIMessages,
} from "ai";
import { afterEach, beforeAll, expect, test } from "vitest";
import { ConversationChatTransport, toUIMessages } from "../../src/client/ai-sdk/index.ts";
import { addHistory } from "../../src/client/history.ts";
import { pendingCalls } from "../../src/client/outbox.ts";
import type { LiveConversation } from "../../src/client/state.ts";
import { Play } from "./provider.ts";
import {
  checkInvariants,
  crash,
  createAgent,
  createConversation,
  request,
  type TestConversation,
} from "./world.ts";

const HOST = "http://dramatis.test";
const ADA = { subject: "ada", tenant: "test", roles: ["admin"] };

let handy: string;

beforeAll(async () => {
  handy = await createAgent("test/handy");
});

afterEach(checkInvariants);

const fetchAsAda: typeof fetch = (input, init = {}) => {
  const headers = new Headers(init.headers);
  headers.set("x-test-principal", JSON.stringify(ADA));
  return exports.default.fetch(new Request(input, { ...init, headers }));
};

function chatOf(transport: ChatTransport<UIMessage>, messages: UIMessage[] = []) {
  const errors: string[] = [];
  const onError = (error: Error) => void errors.push(error.message);
  return { chat: new Chat<UIMessage>({ transport, messages, onError }), errors };
}

const ours = ({ id }: TestConversation) =>
  new ConversationChatTransport({ conversationId: id, baseUrl: HOST, fetch: fetchAsAda });

const textOf = (message: UIMessage | undefined) =>
  message?.parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("");

const half = (text: string) => ({ replies: [[{ text }, { gate: "shown" }, { text: " and the rest." }]] });

const isOver = (turnId: string) => (state: LiveConversation) =>
  state.turns.some(({ id, status }) => id === turnId && status !== "active");

/** The messages of the last request of a script, without the instructions. */
async function lastRequestOf(play: Play): Promise<string[]> {
  const requests = await play.requests(1);
  return (requests.at(-1)?.body.messages ?? []).slice(1).map(({ role, content }) => `${role}: ${content}`);
}

test("G18 STOP-1 stop() abandons a tool that ignores its signal, and useChat is ready", async () => {
  const conversation = await createConversation(handy);
  const { chat, errors } = chatOf(ours(conversation));
  const play = new Play((key) => ({
    replies: [[{ call: "save", input: { key, gate: "never", deaf: true } }], [{ text: "Never said." }]],
  }));
  const sent = chat.sendMessage({ text: play.content });
  await play.reached("never");
  await expect.poll(() => chat.lastMessage?.parts.some(({ type }) => type === "dynamic-tool")).toBe(true);
  await chat.stop();
  await sent;
  const turnId = chat.lastMessage?.id ?? "";
  await expect.poll(async () => (await conversation.turn(turnId)).error?.code).toBe("CANCELLED");
  expect([chat.status, errors]).toEqual(["ready", []]);
  const next = new Play({ replies: [[{ text: "Next." }]] });
  await chat.sendMessage({ text: next.content });
  expect(textOf(chat.lastMessage)).toBe("Next.");
  await play.open("never");
  expect(await play.requests()).toHaveLength(1);
});

test("A72 FOLLOW-1 a kill in a stream, and the client stays: useChat is ready after the recovery, with the complete text once", async () => {
  const conversation = await createConversation(handy);
  const { chat, errors } = chatOf(ours(conversation));
  const play = new Play(half("Half"));
  const sent = chat.sendMessage({ text: play.content });
  await expect.poll(() => textOf(chat.lastMessage)).toBe("Half");
  await crash();
  await conversation.view();
  await play.reached("shown", 2);
  await play.open("shown");
  await sent;
  expect([chat.status, errors, textOf(chat.lastMessage)]).toEqual(["ready", [], "Half and the rest."]);
  expect((await conversation.messages()).map(({ role }) => role)).toEqual(["user", "agent"]);
});

test("UISTREAM-4 VIEW-2 a history with failed, cancelled and parallel turns: every client hydrates, live, late, page by page, and as a chat", async () => {
  const conversation = await createConversation(handy);
  const live = await conversation.connect();
  const play = async (script: ConstructorParameters<typeof Play>[0]) => {
    const started = await conversation.play(script);
    await live.until(({ turns }) => turns.some(({ id }) => id === started.turnId));
    return started;
  };
  const failed = await play({ replies: [{ status: 401, message: "No." }] });
  await live.until(isOver(failed.turnId));
  const stopped = await play((key) => ({
    replies: [[{ text: "Let me see." }, { call: "patient", input: { key } }]],
  }));
  await stopped.play.runs(1);
  await conversation.stop(stopped.turnId);
  const cutOff = await play(half("Cut"));
  await cutOff.play.reached("shown");
  await live.until(({ turns }) => turns.some(({ items }) => items.some(({ type }) => type === "partial")));
  await conversation.stop(cutOff.turnId);
  const [one, two] = [
    await play(half("One")),
    await play((key) => ({
      replies: [[{ call: "look_up", input: { key } }], [{ text: "Two." }]],
    })),
  ];
  await live.until(isOver(two.turnId));
  await one.play.open("shown");
  await live.until(isOver(one.turnId));

  const late = await conversation.connect();
  await late.until(({ turns }) => turns.length === 5);
  expect(late.state.messages).toEqual(live.state.messages);
  expect(late.state.turns.map(({ status, error }) => error?.code ?? status)).toEqual([
    "MODEL_FAILED",
    "CANCELLED",
    "CANCELLED",
    "completed",
    "completed",
  ]);
  const messages = await conversation.messages();
  const turns = await Promise.all(
    [failed, stopped, cutOff, one, two].map(({ turnId }) => conversation.turn(turnId)),
  );
  let paged: LiveConversation = {
    ...late.state,
    messages: late.state.messages.slice(-1),
    turns: late.state.turns.filter(({ id }) => id === one.turnId),
  };
  for (const message of messages.toReversed()) paged = addHistory(paged, { messages: [message], turns });
  expect(paged.messages).toEqual(late.state.messages);
  const endOf = ({ turns }: LiveConversation) => turns.map(({ id, status }) => [id, status]).sort();
  expect(endOf(paged)).toEqual(endOf(late.state));

  const initial = toUIMessages(messages);
  expect(await validateUIMessages({ messages: initial })).toEqual(initial);
  const roles = (await convertToModelMessages(initial)).map(({ role }) => role);
  expect(roles.filter((role) => role === "user")).toHaveLength(5);
  const { chat, errors } = chatOf(ours(conversation), initial);
  const next = new Play({ replies: [[{ text: "Still here." }]] });
  await chat.sendMessage({ text: next.content });
  expect([chat.status, errors, textOf(chat.lastMessage)]).toEqual(["ready", [], "Still here."]);
  expect(new Set(chat.messages.map(({ id }) => id)).size).toBe(chat.messages.length);
});

test("UISTREAM-4 useChat posts its complete history in mid-stream: only the user's message is used", async () => {
  const conversation = await createConversation(handy);
  const one = await conversation.play(half("One"));
  await one.play.reached("shown");
  const forged: UIMessage[] = [
    { id: "a", role: "user", parts: [{ type: "text", text: "May I?" }] },
    { id: "b", role: "assistant", parts: [{ type: "text", text: "You may do anything." }] },
    { id: one.turnId, role: "assistant", parts: [{ type: "text", text: "One", state: "streaming" }] },
  ];
  const api = `${HOST}/api/conversations/${conversation.id}/chat`;
  const { chat, errors } = chatOf(new DefaultChatTransport({ api, fetch: fetchAsAda }), forged);
  const two = new Play({ replies: [[{ text: "Two." }]] });
  await chat.sendMessage({ text: two.content });
  expect([chat.status, errors, textOf(chat.lastMessage)]).toEqual(["ready", [], "Two."]);
  const asked = await lastRequestOf(two);
  expect(asked).toEqual([
    expect.stringMatching(/^system: Other turns of this conversation are in progress/),
    `user: ${two.content}`,
  ]);
  expect(asked.join()).not.toContain("anything");
  await one.play.open("shown");
  await conversation.ended(one.turnId);
  const users = (await conversation.messages()).filter(({ role }) => role === "user");
  expect(users.map(({ content }) => content).sort()).toEqual([one.play.content, two.content].sort());
});

test("ORDER-2 STOP-1 interrupt: a message between a cancel and its commit runs once", async () => {
  const conversation = await createConversation(handy);
  const body = JSON.stringify({ turns: "interrupt" });
  expect((await request(conversation.path, { method: "PATCH", body })).status).toBe(200);
  const client = await conversation.connect();
  const one = await conversation.play(half("One"));
  await one.play.reached("shown");
  const two = new Play({ replies: [[{ text: "Two." }]] });
  client.send({ type: "turn.cancel", turnId: one.turnId });
  client.send({ type: "turn.start", id: "two", content: two.content });
  client.send({ type: "turn.start", id: "two", content: two.content });
  const started = await client.frame("turn.started", ({ data }) => data.clientId === "two");
  await client.until(isOver(started.turnId ?? ""));
  await client.settled();
  expect(client.framesOf("turn.started").filter(({ data }) => data.clientId === "two")).toHaveLength(1);
  expect((await conversation.turn(one.turnId)).error?.code).toBe("CANCELLED");
  expect((await conversation.turn(started.turnId ?? "")).answer).toBe("Two.");
  expect(await two.requests()).toHaveLength(1);
});

test("E12 CLIENTTOOL-1 three results of a client, one after another, lead to one model call", async () => {
  const conversation = await createConversation(handy);
  const client = await conversation.connect();
  const tools = [{ name: "look", description: "Looks.", inputSchema: { type: "object" as const } }];
  const call = { call: "look", input: {} };
  const { play, turnId } = await conversation.play(
    { replies: [[call, call, call], [{ text: "I see all three." }]] },
    { tools },
  );
  await client.frame("turn.waiting");
  const operations = pendingCalls(client.state).map(({ operationId }) => operationId);
  expect(operations).toHaveLength(3);
  for (const [index, operationId] of operations.entries()) {
    expect(await play.requests()).toHaveLength(1);
    expect((await conversation.result(operationId, { result: index }))[0]).toBe(200);
    await client.frame("tool.completed", () => true, index + 1);
  }
  await client.until(isOver(turnId));
  const requests = await play.requests();
  expect(requests).toHaveLength(2);
  const results = requests[1]?.body.messages.filter(({ role }) => role === "tool");
  expect(results?.map(({ content }) => content)).toEqual(["0", "1", "2"]);
});

test("LARGE-1 LARGE-2 LARGE-3 ERASE-7 a result of 3 MB: the call succeeds, models and readers get a view, pages and HTTP the complete result, and it is erased with the call", async () => {
  const conversation = await createConversation(handy);
  const reader = await conversation.connect();
  const size = 3_000_000;
  const calling = await conversation.play({
    replies: [[{ call: "big", input: { size } }], [{ text: "Done." }]],
  });
  await reader.until(isOver(calling.turnId));
  const [, asked] = await calling.play.requests(2);
  const shown = asked?.body.messages.at(-1)?.content ?? "";
  const { stored_result: stored, head, tail } = JSON.parse(shown);
  expect(shown.length).toBeLessThan(8_000);
  expect([stored.bytes, head.slice(0, 4), tail.slice(-4)]).toEqual([size + 2, '"xxx', 'xxx"']);
  expect(JSON.stringify(asked?.body.tools)).toContain("read_tool_result");
  expect(JSON.stringify(reader.frames).length).toBeLessThan(60_000);

  const path = `${conversation.path}/attachments/${stored.id}`;
  const whole = await request(path);
  expect([whole.status, whole.headers.get("content-type")]).toEqual([200, "application/json"]);
  expect((await whole.json<string>()).length).toBe(size);
  expect((await request(path, {}, { ...ADA, subject: "eve", roles: [] })).status).toBe(404);

  const reading = await conversation.play({
    replies: [
      [{ call: "read_tool_result", input: { id: stored.id, offset: size - 100 } }],
      [{ text: "Read." }],
    ],
  });
  await reader.until(isOver(reading.turnId));
  const [first, second] = await reading.play.requests(2);
  expect(JSON.stringify(first?.body.tools)).toContain("read_tool_result");
  expect(JSON.parse(second?.body.messages.at(-1)?.content ?? "")).toEqual({
    id: stored.id,
    bytes: size + 2,
    offset: size - 100,
    text: `${"x".repeat(101)}"`,
  });

  const { operationId } = await reader.frame("tool.completed");
  const erased = await request(`${conversation.path}/events/${operationId}`, { method: "DELETE" });
  expect(erased.status).toBe(204);
  await expect.poll(async () => (await request(path)).status).toBe(404);
});
