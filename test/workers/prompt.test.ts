/** The requests of a turn to its models, by parts, on the real Worker. */
import { beforeAll, expect, test } from "vitest";
import type { ConversationApi } from "../../src/protocol/conversation-api.ts";
import type { TurnPrompt } from "../../src/protocol/prompt.ts";
import { unwrap } from "../../src/shared/errors.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { withNotes } from "../support/notes.ts";
import type { RequestRecord } from "../support/provider-script.ts";
import { Play } from "./provider.ts";
import { createAgent, createConversation, request, type TestConversation } from "./world.ts";

const OPERATOR: Principal = { subject: "olga", tenant: "test", roles: ["operator"] };
const WRITER: Principal = { subject: "ada", tenant: "test", roles: ["admin"] };
const ADA: Principal = { subject: "ada", tenant: "test", roles: ["member"] };

let handy: string;

beforeAll(async () => {
  handy = await createAgent("test/handy");
});

const read = ({ path }: TestConversation, turnId: string, principal = OPERATOR, call: unknown = "") =>
  request(`${path}/turns/${turnId}/prompt${call === "" ? "" : `?call=${call}`}`, {}, principal);

async function promptOf(
  conversation: TestConversation,
  turnId: string,
  call: number | "" = "",
): Promise<TurnPrompt> {
  const response = await read(conversation, turnId, OPERATOR, call);
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
  const prompt = await promptOf(conversation, turnId);
  const body = JSON.stringify(prompt.request);
  expect(prompt.missing).toEqual(["media"]);
  expect(body).toContain("[image]");
  expect(body).not.toContain(btoa("pixels"));
});

/** The prompts of the calls 1 to `count`. */
const promptsOf = (conversation: TestConversation, turnId: string, count: number): Promise<TurnPrompt[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => promptOf(conversation, turnId, index + 1)));

/** The bodies of prompts, as the provider records the bodies that it gets. */
const bodiesOf = (prompts: readonly TurnPrompt[]) =>
  prompts.map(({ request: body }) => {
    // SAFETY: the tests assert the rest of the body.
    const sent = body as unknown as RequestRecord["body"];
    return { ...sent, messages: withNotes(sent.messages) };
  });

const received = (requests: readonly RequestRecord[]) => requests.map(({ body }) => body);

test("G22 PROMPT-3 PROMPT-4 each call of a turn with tools has the body that the provider got, in the turn and after it", async () => {
  const conversation = await createConversation(handy);
  await conversation.ended((await conversation.play({ replies: [[{ text: "Hello." }]] })).turnId);
  const { play, turnId } = await conversation.play({
    replies: [
      [{ text: "One moment." }, { call: "double", input: { n: 2 } }],
      [
        { call: "double", input: { n: 4 } },
        { call: "look_up", input: { key: "k" } },
        { usage: { prompt_tokens: 90, completion_tokens: 9, total_tokens: 99 } },
      ],
      [{ gate: "end" }, { text: "Eight." }],
    ],
  });
  await play.reached("end");
  const sent = await play.requests(3);
  const active = await promptsOf(conversation, turnId, 3);
  expect(bodiesOf(active)).toEqual(received(sent));
  expect(active.map(({ call, calls, missing }) => [call, calls, missing])).toEqual([
    [1, 3, []],
    [2, 3, []],
    [3, 3, []],
  ]);
  expect(active.map(({ reply }) => reply !== undefined)).toEqual([true, true, false]);
  await play.open("end");
  await conversation.ended(turnId);
  await conversation.ended((await conversation.play({ replies: [[{ text: "Later." }]] })).turnId);
  await conversation.evict();
  const ended = await promptsOf(conversation, turnId, 3);
  expect(bodiesOf(ended)).toEqual(received(sent));
  expect(ended.map(({ missing }) => missing)).toEqual([[], [], []]);
  expect(ended.map(({ parts }) => parts.find(({ name }) => name === "moves")?.count)).toEqual([
    undefined,
    2,
    5,
  ]);
  const { moves } = await conversation.turn(turnId);
  expect(ended.map(({ reply }) => reply)).toEqual(moves.flatMap(({ raw }) => raw ?? []));
  expect(ended[1]?.reply).toMatchObject({
    toolCalls: [
      { name: "double", arguments: { n: 4 } },
      { name: "look_up", arguments: { key: "k" } },
    ],
    finishReason: "tool_calls",
    usage: { inputTokens: 90, outputTokens: 9 },
  });
});

test("G22 PROMPT-3 a call that was retried has one number, and a fallback of another provider has its own", async () => {
  const conversation = await createConversation(await createAgent("test/crossed"));
  const down = { status: 401, message: "No." };
  const { play, turnId } = await conversation.play({
    replies: [
      { attempts: [down, { status: 503, message: "Busy." }, [{ call: "double", input: { n: 1 } }]] },
      { attempts: [down, [{ text: "Two." }]] },
    ],
  });
  const { calls } = await conversation.ended(turnId);
  expect(calls.map(({ provider, outcome }) => [provider, outcome?.ok, outcome?.attempts])).toEqual([
    ["anthropic", false, 1],
    ["openai", true, 2],
    ["anthropic", false, 1],
    ["openai", true, 1],
  ]);
  const sent = received(await play.requests(5));
  expect(sent[2]).toEqual(sent[1]);
  const prompts = await promptsOf(conversation, turnId, 4);
  expect(bodiesOf(prompts)).toEqual([sent[0], sent[1], sent[3], sent[4]]);
  expect(prompts.map(({ model }) => model)).toEqual(calls.map(({ model }) => model));
  expect(prompts.flatMap(({ missing }) => missing)).toEqual([]);
  expect(prompts.map(({ reply }) => reply !== undefined)).toEqual([false, true, false, true]);
});

test("G22 PROMPT-4 the last call has no tools, and the limits of the message apply to each call", async () => {
  const conversation = await createConversation(await createAgent("test/brief"));
  const script = {
    replies: [[{ call: "double", input: { n: 1 } }], [{ call: "double", input: { n: 2 } }]],
    final: [{ text: "Done." }],
  };
  const more = { maxOutputTokens: 50, toolChoice: "required" } as const;
  const play = new Play(script);
  // SAFETY: the class behind the binding implements this.
  const actor = conversation.stub as unknown as ConversationApi;
  const { turnId } = unwrap(await actor.startTurn(WRITER, { content: play.content, ...more }));
  await conversation.ended(turnId);
  const sent = received(await play.requests(3));
  expect(sent.map(({ tool_choice }) => tool_choice)).toEqual(["required", "auto", "none"]);
  expect(sent.map((body) => Reflect.get(body, "max_tokens"))).toEqual([50, 50, 50]);
  expect(bodiesOf(await promptsOf(conversation, turnId, 3))).toEqual(sent);
});

test("G22 PROMPT-5 withdrawn answers are in the requests of an active turn, and missing after its end", async () => {
  const conversation = await createConversation(handy);
  const schema = { type: "object", properties: { total: { type: "number" } }, required: ["total"] };
  const replies = [
    [{ call: "double", input: { n: 1 } }],
    [{ text: "I cannot say." }],
    [{ text: "Nor now." }],
    [{ gate: "end" }, { text: '{"total": 3}' }],
  ];
  const { play, turnId } = await conversation.play({ replies }, { output: { name: "total", schema } });
  await play.reached("end");
  const sent = received(await play.requests(4));
  const active = await promptsOf(conversation, turnId, 4);
  expect(bodiesOf(active)).toEqual(sent);
  expect(active.flatMap(({ missing }) => missing)).toEqual([]);
  await play.open("end");
  await conversation.ended(turnId);
  const ended = await promptsOf(conversation, turnId, 4);
  expect(bodiesOf(ended).slice(0, 2)).toEqual(sent.slice(0, 2));
  expect(ended.map(({ missing }) => missing)).toEqual([[], [], ["withdrawn"], ["withdrawn"]]);
  expect(ended.map(({ reply }) => reply !== undefined)).toEqual([true, false, false, true]);
});

test("G22 PROMPT-5 a request that was cut to fit has its cut history, and earlier requests have all of it", async () => {
  const conversation = await createConversation(handy);
  for (const text of ["One.", "Two."])
    await conversation.ended((await conversation.play({ replies: [[{ text }]] })).turnId);
  const tooLong = { status: 400, message: "This model's maximum context length is 8192 tokens." };
  const { play, turnId } = await conversation.play({
    replies: [
      [{ call: "double", input: { n: 1 } }],
      { attempts: [tooLong, [{ call: "double", input: { n: 2 } }]] },
      [{ text: "Four." }],
    ],
  });
  await conversation.ended(turnId);
  const [first, whole, cut, last] = received(await play.requests(4));
  expect(cut?.messages.length).toBeLessThan(whole?.messages.length ?? 0);
  const prompts = await promptsOf(conversation, turnId, 3);
  expect(bodiesOf(prompts)).toEqual([first, cut, last]);
  expect(prompts.flatMap(({ missing }) => missing)).toEqual([]);
});

test("G22 PROMPT-5 a note on another active turn is missing after the end", async () => {
  const conversation = await createConversation(handy);
  const order = { order: "parallel" };
  await request(conversation.path, { method: "PATCH", body: JSON.stringify(order) });
  const other = await conversation.play({ replies: [[{ gate: "other" }, { text: "Slow." }]] });
  await other.play.reached("other");
  const { play, turnId } = await conversation.play({ replies: [[{ gate: "end" }, { text: "Fast." }]] });
  await play.reached("end");
  const [active] = await promptsOf(conversation, turnId, 1);
  expect(active).toMatchObject({
    missing: [],
    parts: expect.arrayContaining([{ name: "notes", count: 1, tokens: expect.any(Number) }]),
  });
  expect(bodiesOf(active ? [active] : [])).toEqual(received(await play.requests(1)));
  await play.open("end");
  await conversation.ended(turnId);
  expect((await promptOf(conversation, turnId)).missing).toEqual(["notes"]);
  await other.play.open("other");
  await conversation.ended(other.turnId);
  expect((await promptOf(conversation, other.turnId)).missing).toEqual([]);
});

test("G22 PROMPT-3 an unknown number names the numbers that exist, and a text that is no number is refused", async () => {
  const conversation = await createConversation(handy);
  const { turnId } = await conversation.play({ replies: [[{ text: "Hello." }]] });
  await conversation.ended(turnId);
  const answer = async (call: unknown) => {
    const response = await read(conversation, turnId, OPERATOR, call);
    const { code, detail } = await response.json<{ code: string; detail: string }>();
    return [response.status, code, detail];
  };
  expect(await answer(2)).toEqual([404, "NOT_FOUND", expect.stringContaining("numbers 1 to 1")]);
  for (const call of ["0", "x", "1.5", "-1"])
    expect((await answer(call)).slice(0, 2)).toEqual([422, "INVALID_INPUT"]);
  expect((await read(conversation, turnId, ADA, 1)).status).toBe(403);
});
