/** The newest request of a turn to its model, by parts, on the real Worker. */
import { beforeAll, expect, test } from "vitest";
import type { TurnPrompt } from "../../src/protocol/prompt.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { Play } from "./provider.ts";
import { createAgent, createConversation, request, type TestConversation } from "./world.ts";

const OPERATOR: Principal = { subject: "olga", tenant: "test", roles: ["operator"] };
const ADA: Principal = { subject: "ada", tenant: "test", roles: ["member"] };

let handy: string;

beforeAll(async () => {
  handy = await createAgent("test/handy");
});

const read = ({ path }: TestConversation, turnId: string, principal = OPERATOR) =>
  request(`${path}/turns/${turnId}/prompt`, {}, principal);

async function promptOf(conversation: TestConversation, turnId: string): Promise<TurnPrompt> {
  const response = await read(conversation, turnId);
  expect(response.status, await response.clone().text()).toBe(200);
  return response.json();
}

test("G22 PROMPT-1 the request of a finished turn equals the request that the provider got, with its parts", async () => {
  const conversation = await createConversation(handy);
  const first = await conversation.play({ replies: [[{ text: "Hello." }]] });
  await conversation.ended(first.turnId);
  const script = [[{ call: "look_up", input: { key: "k" } }], [{ text: "Found." }]];
  const second = await conversation.play({ replies: script });
  await conversation.ended(second.turnId);
  const sent = await second.play.requests(2);
  const { request: body, parts, tokens, missing } = await promptOf(conversation, second.turnId);
  expect(body).toEqual(sent.at(-1)?.body);
  expect(missing).toEqual([]);
  expect(parts.map(({ name }) => name)).toEqual(["instructions", "tools", "history", "message", "moves"]);
  expect(parts.find(({ name }) => name === "history")?.count).toBe(2);
  expect(tokens).toBe(parts.reduce((sum, part) => sum + part.tokens, 0));
});

test("G22 PROMPT-1 a running call has its request, and only operators read it", async () => {
  const conversation = await createConversation(handy);
  const { play, turnId } = await conversation.play({ replies: [[{ text: "Half" }, { gate: "end" }]] });
  await play.reached("end");
  const [sent] = await play.requests(1);
  expect((await promptOf(conversation, turnId)).request).toEqual(sent?.body);
  expect((await read(conversation, turnId, ADA)).status).toBe(403);
  expect((await read(conversation, turnId, { ...OPERATOR, tenant: "globex" })).status).toBe(404);
  expect((await read(conversation, "turn_00000000000000000000000000")).status).toBe(404);
  await play.open("end");
  await conversation.ended(turnId);
});

test("G22 PROMPT-2 a finished turn names the withdrawn answers that its request had", async () => {
  const conversation = await createConversation(handy);
  const schema = { type: "object", properties: { total: { type: "number" } }, required: ["total"] };
  const replies = [[{ text: "I cannot say." }], [{ text: '{"total": 3}' }]];
  const { play, turnId } = await conversation.play({ replies }, { output: { name: "total", schema } });
  await conversation.ended(turnId);
  expect(await play.requests(2)).toHaveLength(2);
  const { missing, parts } = await promptOf(conversation, turnId);
  expect(missing).toEqual(["withdrawn"]);
  expect(parts.find(({ name }) => name === "output")?.tokens).toBeGreaterThan(10);
  const [message] = await conversation.messages();
  const replying = await conversation.play(
    { replies: [[{ text: "Yes." }]] },
    { replyToMessageId: message?.id ?? "" },
  );
  await conversation.ended(replying.turnId);
  expect((await promptOf(conversation, replying.turnId)).missing).toEqual(["notes"]);
});

test("G22 PROMPT-1 media are names in the request", async () => {
  const conversation = await createConversation(handy);
  const init = { method: "POST", headers: { "content-type": "image/png" }, body: "pixels" };
  const upload = await request(`${conversation.path}/attachments`, init);
  const { url } = await upload.json<{ url: string }>();
  const play = new Play({ replies: [[{ text: "Seen." }]] });
  const { turnId } = await conversation.say([
    { type: "image", url },
    { type: "text", text: play.content },
  ]);
  await conversation.ended(turnId);
  const body = JSON.stringify((await promptOf(conversation, turnId)).request);
  expect(body).toContain("[image]");
  expect(body).not.toContain(btoa("pixels"));
});
