/** Claims of clients' tool calls, on the real Worker, with the real sessions of several tabs. */
import { afterEach, beforeAll, expect, onTestFinished, test } from "vitest";
import { MAX_CALLS_PER_REPLY } from "../../src/agents/conversation/core/conversation-limits.ts";
import { runClientTools } from "../../src/client/client-tools.ts";
import { ConversationSession } from "../../src/client/session.ts";
import type { Json } from "../../src/shared/json.ts";
import {
  checkInvariants,
  crash,
  createAgent,
  createConversation,
  request,
  type TestConversation,
} from "./world.ts";

const ASK = {
  name: "ask",
  description: "Asks the user.",
  inputSchema: { type: "object", properties: { question: { type: "string" } } },
};
const SCRIPT = { replies: [[{ call: "ask", input: { question: "Tea?" } }], [{ text: "Thank you." }]] };

let plain: string;

beforeAll(async () => {
  plain = await createAgent("test/plain");
});

afterEach(checkInvariants);

/** A conversation with a turn that waits for its client. */
async function waiting() {
  const conversation = await createConversation(plain);
  const client = await conversation.connect();
  await client.frame("snapshot");
  const { turnId } = await conversation.play(SCRIPT, { tools: [ASK] });
  await client.frame("turn.waiting");
  const { operationId = "" } = await client.frame("tool.requested");
  return { conversation, client, turnId, operationId };
}

/** A tab that runs the tool `ask`. */
async function openTab({ id }: TestConversation, ask: () => Promise<Json>) {
  const { webSocket } = await request(`/conversations/${id}`, { headers: { upgrade: "websocket" } });
  if (webSocket === null) throw new Error("No WebSocket.");
  const session = new ConversationSession();
  webSocket.addEventListener("message", ({ data }) => void session.received(data));
  webSocket.accept();
  session.opened({
    send: (text) => webSocket.send(text),
    close: () => webSocket.close(),
    reconnect: () => {},
  });
  const stop = runClientTools(session, { ask });
  const close = () => {
    stop();
    session.closed({ final: true });
    webSocket.close(1000);
  };
  onTestFinished(close);
  return { session, close };
}

test("G10 CLAIM-1 one connection claims a call, even twice; after it closes, another connection can claim the call, also after an eviction", async () => {
  const { conversation, client, turnId, operationId } = await waiting();
  const claim = { type: "tool.claim", operationId } as const;
  client.send(claim);
  expect(await client.frame("tool.claimed")).toMatchObject({ operationId, data: { granted: true } });
  const other = await conversation.connect();
  other.send(claim);
  expect((await other.frame("tool.claimed")).data).toEqual({ granted: false });
  await conversation.evict();
  other.send(claim);
  expect((await other.frame("tool.claimed", () => true, 2)).data).toEqual({ granted: false });
  client.send(claim);
  expect((await client.frame("tool.claimed", () => true, 2)).data).toEqual({ granted: true });
  client.close();
  await expect
    .poll(async () => {
      const { length } = other.framesOf("tool.claimed");
      other.send(claim);
      return (await other.frame("tool.claimed", () => true, length + 1)).data;
    })
    .toEqual({ granted: true });
  other.send({ type: "tool.result", operationId, result: "Yes" });
  await conversation.ended(turnId);
  other.send(claim);
  expect((await other.frame("error")).data).toMatchObject({ code: "CONFLICT", ref: operationId });
  other.send({ type: "tool.claim", operationId: "op_01JD0000000000000000000000" });
  expect((await other.frame("error", () => true, 2)).data).toMatchObject({ code: "NOT_FOUND" });
});

test("CLAIM-2 a claim is not stored: a crash ends it, and a result is accepted without a claim", async () => {
  const { conversation, client, turnId, operationId } = await waiting();
  const before = await conversation.journal();
  client.send({ type: "tool.claim", operationId });
  await client.frame("tool.claimed");
  expect(await conversation.journal()).toEqual(before);
  await crash();
  const back = await conversation.connect();
  back.send({ type: "tool.claim", operationId });
  expect((await back.frame("tool.claimed")).data).toEqual({ granted: true });
  const late = await conversation.connect();
  late.send({ type: "tool.result", operationId, result: "Yes" });
  await conversation.ended(turnId);
});

test("G10 CLAIM-1 two tabs and a reload with a client tool: one execution", async () => {
  const { conversation, turnId } = await waiting();
  const answer = Promise.withResolvers<Json>();
  let runs = 0;
  const ask = () => {
    runs += 1;
    return answer.promise;
  };
  await openTab(conversation, ask);
  const second = await openTab(conversation, ask);
  second.close();
  const reloaded = await openTab(conversation, ask);
  await expect.poll(() => reloaded.session.getSnapshot().turns.length).toBeGreaterThan(0);
  answer.resolve("Yes");
  expect(await conversation.ended(turnId)).toMatchObject({ status: "completed", answer: "Thank you." });
  expect(runs).toBe(1);
});

test("CLAIM-1 only users who may speak claim a call", async () => {
  const { conversation, client, operationId } = await waiting();
  const watcher = await conversation.connect({
    principal: { subject: "olga", tenant: "test", roles: ["operator"] },
  });
  await watcher.frame("snapshot");
  watcher.send({ type: "tool.claim", operationId });
  expect((await watcher.frame("error")).data).toMatchObject({ code: "FORBIDDEN" });
  client.send({ type: "tool.claim", operationId });
  expect((await client.frame("tool.claimed")).data).toEqual({ granted: true });
});

test("CLAIM-1 a connection claims all calls of the largest reply at once, and every claim of another connection is denied", async () => {
  const conversation = await createConversation(plain);
  const client = await conversation.connect();
  await client.frame("snapshot");
  const calls = Array.from({ length: MAX_CALLS_PER_REPLY }, (_, n) => ({
    call: "ask",
    input: { question: `${n}?` },
  }));
  const { turnId } = await conversation.play(
    { replies: [calls, [{ text: "Thank you." }]] },
    { tools: [ASK] },
  );
  await client.frame("turn.waiting");
  const ids = client.framesOf("tool.requested").map(({ operationId = "" }) => operationId);
  expect(ids).toHaveLength(MAX_CALLS_PER_REPLY);
  const answers = async (one: typeof client) => {
    for (const operationId of ids) one.send({ type: "tool.claim", operationId });
    await one.frame("tool.claimed", () => true, ids.length);
    return one.framesOf("tool.claimed").map(({ data }) => data.granted);
  };
  expect(new Set(await answers(client))).toEqual(new Set([true]));
  expect(new Set(await answers(await conversation.connect()))).toEqual(new Set([false]));
  for (const operationId of ids) client.send({ type: "tool.result", operationId, result: "Yes" });
  expect(await conversation.ended(turnId)).toMatchObject({ status: "completed" });
});

test("CLAIM-1 a client that runs a call claims it again as it reconnects", async () => {
  const { conversation, operationId } = await waiting();
  const holder = new ConversationSession();
  const sent: string[] = [];
  const open = () => {
    holder.opened({ send: (text) => void sent.push(text), close: () => {}, reconnect: () => {} });
  };
  const claimed = (id: string, granted: boolean) =>
    holder.received(
      JSON.stringify({
        v: 1,
        type: "tool.claimed",
        time: new Date(0).toISOString(),
        operationId: id,
        data: { granted },
      }),
    );
  const claimsIn = () =>
    sent.splice(0).flatMap((text) => {
      const { type, operationId: id } = JSON.parse(text);
      return type === "tool.claim" ? [id] : [];
    });
  open();
  const first = holder.claimTool(operationId);
  const second = holder.claimTool("op_other");
  claimed(operationId, true);
  claimed("op_other", false);
  expect(await Promise.all([first, second])).toEqual([true, false]);
  expect(claimsIn()).toEqual([operationId, "op_other"]);
  holder.closed({ final: false });
  open();
  expect(claimsIn()).toEqual([operationId]);
  claimed(operationId, true);
  holder.received(JSON.stringify(await (await conversation.connect()).frame("snapshot")));
  holder.submitToolResult(operationId, { result: "Yes" });
  holder.closed({ final: false });
  open();
  expect(claimsIn()).toEqual([]);
});
