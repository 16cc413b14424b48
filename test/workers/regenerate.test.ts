/** New answers and edited messages over HTTP and WebSocket on the real Worker. */
import { beforeAll, describe, expect, test } from "vitest";
import { createClient } from "../../src/client/http.ts";
import type { TurnView } from "../../src/protocol/conversation-schemas.ts";
import type { TurnRecord } from "../../src/protocol/turn-records.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { Play } from "./provider.ts";
import { crash, createAgent, createConversation, request, TestConversation } from "./world.ts";

const MALLORY: Principal = { subject: "mallory", tenant: "test", roles: ["member"] };

let handy: string;

beforeAll(async () => {
  handy = await createAgent("test/handy");
});

type Started = { turnId: string; messageId: string; code: string };

const post = async (
  conversation: TestConversation,
  path: string,
  body: object = {},
  principal?: Principal,
): Promise<[number, Started]> => {
  const init = { method: "POST", body: JSON.stringify(body) };
  const response = await request(`${conversation.path}/turns/${path}`, init, principal);
  return [response.status, await response.json<Started>()];
};

const started = async (conversation: TestConversation, path: string, body?: object): Promise<string> => {
  const [status, answer] = await post(conversation, path, body);
  expect(status, JSON.stringify(answer)).toBe(202);
  return answer.turnId;
};

/** The texts of a request, as the provider got them. */
const textOf = (sent: { body: { messages: unknown } } | undefined) => JSON.stringify(sent?.body.messages);

describe("a new answer", () => {
  test("G9 REPLACE-1 REPLACE-3 REPLACE-8 RECORDS-6 takes over the calls, and later turns see only the newest version", async () => {
    const conversation = await createConversation(handy);
    const first = new Play({ replies: [[{ text: "Before." }]] });
    await conversation.ended((await conversation.say(first.content)).turnId);
    const play = new Play((key) => ({
      replies: [
        [{ text: "I pay. " }, { call: "charge", input: { key } }],
        { attempts: [[{ text: "Draft", times: 2 }], [{ text: "Final", times: 2 }]] },
      ],
    }));
    const { turnId: old } = await conversation.say(play.content);
    await conversation.ended(old);
    const later = new Play({ replies: [[{ text: "Later", times: 2 }]] });
    await conversation.ended((await conversation.say(later.content)).turnId);
    const client = await conversation.connect();
    await client.frame("snapshot");
    const again = await started(conversation, `${old}/regenerate`);
    const frame = await client.frame("turn.started");
    expect(frame.data).toMatchObject({ regenerates: old });
    const turn = await conversation.ended(again);
    expect(turn).toMatchObject({ regenerates: old, versions: [old, again], status: "completed" });
    const records = async () =>
      (await (await request(`/api/turns?conversation=${conversation.id}`)).json<{ turns: TurnRecord[] }>())
        .turns;
    await expect.poll(async () => (await records()).find(({ id }) => id === old)?.replacedBy).toBe(again);
    expect((await records()).filter(({ replacedBy }) => replacedBy !== undefined)).toHaveLength(1);
    expect(turn.input).toBe(play.content);
    expect(turn.moves.map(({ toolCall }) => toolCall?.name)).toEqual(["charge", undefined]);
    expect(turn.spent).toMatchObject({ toolCalls: 0, modelCalls: 1 });
    const { data } = await (await conversation.connect()).frame("snapshot");
    expect(data.operations.map(({ turnId }) => turnId)).toEqual([old]);
    expect(await play.runs()).toHaveLength(1);
    const sent = textOf((await play.requests()).at(-1));
    expect(sent).toContain("Before.");
    expect(sent).toContain("charge");
    expect(sent).not.toContain("DraftDraft");
    expect(sent).not.toContain("LaterLater");
    expect(await conversation.turn(old)).toMatchObject({
      answer: "DraftDraft",
      replacedBy: again,
      versions: [old, again],
    });

    await conversation.evict();
    const next = new Play({ replies: [[{ text: "Next." }]] });
    await conversation.ended((await conversation.say(next.content)).turnId);
    const seen = textOf((await next.requests()).at(-1));
    expect(seen).toContain("FinalFinal");
    expect(seen).not.toContain("DraftDraft");
    expect(seen).not.toContain("LaterLater");
    const entries = await conversation.journal();
    expect(entries.filter(({ type, turnId }) => type === "turn.started" && turnId === again)).toMatchObject([
      { data: { regenerates: old } },
    ]);
  });

  test("G9 REPLACE-2 is refused while a turn is active, for replaced turns and for strangers", async () => {
    const conversation = await createConversation(handy);
    const play = new Play({
      replies: [{ attempts: [[{ text: "One." }], [{ gate: "go" }, { text: "Two." }]] }],
    });
    const { turnId: old } = await conversation.say(play.content);
    await conversation.ended(old);
    const again = await started(conversation, `${old}/regenerate`, { idempotencyKey: "again" });
    await play.reached("go");
    expect(await post(conversation, `${old}/regenerate`)).toMatchObject([409, { code: "CONFLICT" }]);
    expect(await post(conversation, `${again}/regenerate`)).toMatchObject([409, { code: "CONFLICT" }]);
    expect(await started(conversation, `${old}/regenerate`, { idempotencyKey: "again" })).toBe(again);
    expect(
      await post(conversation, `${old}/edit`, { content: "Other", idempotencyKey: "again" }),
    ).toMatchObject([409, { code: "IDEMPOTENCY_CONFLICT" }]);
    expect((await post(conversation, `${old}/regenerate`, {}, MALLORY))[0]).toBe(404);
    expect((await post(conversation, "turn_01JD0000000000000000000000/regenerate"))[0]).toBe(404);
    await play.open("go");
    await conversation.ended(again);
    expect(await post(conversation, `${old}/regenerate`)).toMatchObject([409, { code: "CONFLICT" }]);
    const third = await started(conversation, `${again}/regenerate`);
    expect((await conversation.ended(third)).versions).toEqual([old, again, third]);
  });

  test("G9 REPLACE-3 retries a failed turn", async () => {
    const conversation = await createConversation(handy);
    const play = new Play({
      replies: [{ attempts: [{ status: 401, message: "No." }, [{ text: "Now." }]] }],
    });
    const { turnId } = await conversation.say(play.content);
    expect((await conversation.ended(turnId)).status).toBe("failed");
    const again = await conversation.ended(await started(conversation, `${turnId}/regenerate`));
    expect(again).toMatchObject({ status: "completed", answer: "Now." });
    expect(textOf((await play.requests()).at(-1))).not.toContain("failed before its answer");
  });
});

test("G9 REPLACE-1 turns of other agents leave the context, too", async () => {
  const conversation = await createConversation(handy);
  const other = await createAgent("test/plain");
  const add = { method: "POST", body: JSON.stringify({ type: "agent", id: other }) };
  expect((await request(`${conversation.path}/participants`, add)).status).toBe(200);
  const say = async (text: string, to: string) => {
    const play = new Play({ replies: [[{ text, times: 2 }]] });
    const { turnId } = await conversation.say(play.content, { to });
    await conversation.ended(turnId);
    return { turnId, sent: textOf((await play.requests()).at(-1)) };
  };
  const { turnId: first } = await say("Kept", other);
  const { turnId: old } = await say("First", handy);
  await say("Other", other);
  await conversation.ended(await started(conversation, `${old}/edit`, { content: "Anew" }));
  const { sent } = await say("Next", other);
  expect(sent).toContain("KeptKept");
  expect(sent).not.toContain("OtherOther");
  expect(sent).not.toContain("FirstFirst");
  const { sent: own } = await say("Last", handy);
  expect(own).not.toContain("OtherOther");
  expect(own).not.toContain("FirstFirst");
  expect((await conversation.turn(first)).versions).toBeUndefined();
});

test("G9 REPLACE-3 a crash during the new answer repeats no call", async () => {
  const conversation = await createConversation(handy);
  const play = new Play((key) => ({
    replies: [
      [{ call: "charge", input: { key } }],
      { attempts: [[{ text: "One." }], [{ gate: "go" }, { text: "Two." }], [{ text: "Three." }]] },
    ],
  }));
  const { turnId: old } = await conversation.say(play.content);
  await conversation.ended(old);
  const again = await started(conversation, `${old}/regenerate`);
  await play.reached("go");
  await crash();
  const turn = await conversation.ended(again);
  expect(turn).toMatchObject({ status: "completed", answer: "Three.", regenerates: old });
  expect(turn.moves).toHaveLength(2);
  expect(await play.runs()).toHaveLength(1);
});

test("G9 H7 FORK-1 a fork at a replaced turn continues that version", async () => {
  const conversation = await createConversation(handy);
  const attempts = [[{ text: "Old", times: 2 }], [{ text: "New", times: 2 }]];
  const { turnId: old } = await conversation.play({ replies: [{ attempts }] });
  await conversation.ended(old);
  await conversation.ended(await started(conversation, `${old}/regenerate`));
  const init = { method: "POST", body: JSON.stringify({ turnId: old }) };
  const { id } = await (await request(`${conversation.path}/fork`, init)).json<{ id: string }>();
  const copy = new TestConversation(id);
  expect(await copy.turn(old)).not.toHaveProperty("replacedBy");
  const next = new Play({ replies: [[{ text: "On." }]] });
  await copy.ended((await copy.say(next.content)).turnId);
  expect(textOf((await next.requests()).at(-1))).toContain("OldOld");
  const again = await copy.ended(await started(copy, `${old}/regenerate`));
  expect(again.versions).toEqual([old, again.id]);
});

test("G9 REPLACE-6 a replaced turn is in no summary: summaries that may contain it are dropped", async () => {
  const agent = await createAgent({
    identity: { systemPrompt: "You are a test.", modelProfileId: "test/scripted" },
    memory: { contextTokens: 2_000 },
  });
  const conversation = await createConversation(agent);
  const types = async () => (await conversation.journal()).map(({ type }) => type);
  const turns: string[] = [];
  while (!(await types()).includes("context.compaction.started")) {
    expect(turns.length).toBeLessThan(8);
    const { turnId } = await conversation.play({
      replies: [[{ text: "word ", times: 300 }]],
      summary: [{ text: "They talked of words." }],
    });
    turns.push(turnId);
    await conversation.ended(turnId);
  }
  await expect.poll(types).toContain("context.compacted");
  const edited = new Play({ replies: [[{ text: "Anew." }]] });
  const first = turns[0] ?? expect.fail("no turn");
  await conversation.ended(await started(conversation, `${first}/edit`, { content: edited.content }));
  const sent = textOf((await edited.requests()).at(-1));
  expect(sent).not.toContain("They talked of words.");
  expect(sent).not.toContain("word word");
});

test("G9 REPLACE-5 an erasure of a message or a call also erases its copies in other versions", async () => {
  const conversation = await createConversation(handy);
  const play = new Play({
    replies: [[{ call: "double", input: { n: 700133 } }], [{ text: "Done." }]],
  });
  const { turnId: old, messageId } = await conversation.say(play.content);
  await conversation.ended(old);
  const again = await conversation.ended(await started(conversation, `${old}/regenerate`));
  const call = again.moves[0]?.toolCall?.operationId;
  for (const id of [call, messageId]) {
    const erased = await request(`${conversation.path}/events/${id}`, { method: "DELETE" });
    expect(erased.status).toBe(204);
  }
  for (const id of [old, again.id]) {
    const { input, moves } = await conversation.turn(id);
    expect(input).toBe("[erased]");
    expect(JSON.stringify(moves)).not.toContain("700133");
    expect(JSON.stringify(moves)).not.toContain("1400266");
  }
});

describe("an edited message", () => {
  test("G9 REPLACE-1 REPLACE-4 replaces the turn, and the model learns about the calls that were made", async () => {
    const conversation = await createConversation(handy);
    const play = new Play((key) => ({
      replies: [[{ call: "charge", input: { key } }], [{ text: "Paid", times: 2 }]],
    }));
    const { turnId: old } = await conversation.say(play.content);
    await conversation.ended(old);
    const edited = new Play({ replies: [[{ text: "Understood." }]] });
    const turnId = await started(conversation, `${old}/edit`, { content: edited.content });
    const turn: TurnView = await conversation.ended(turnId);
    expect(turn).toMatchObject({ edits: old, answer: "Understood.", versions: [old, turnId] });
    expect(turn.moves).toHaveLength(1);
    const sent = textOf((await edited.requests()).at(-1));
    expect(sent).toContain("Do not repeat them");
    expect(sent).toContain("charge(");
    expect(sent).not.toContain("PaidPaid");
    expect(await play.runs()).toHaveLength(1);
    expect((await post(conversation, `${old}/edit`, { content: " " }))[0]).toBe(422);
  });

  test("G9 REPLACE-4 the note has the calls of all versions, without inputs that were erased", async () => {
    const conversation = await createConversation(handy);
    const play = new Play((key) => ({
      replies: [[{ call: "charge", input: { key, n: 700_133 } }], [{ text: "Paid", times: 2 }]],
    }));
    const { turnId: old } = await conversation.say(play.content);
    const paid = await conversation.ended(old);
    const again = await started(conversation, `${old}/regenerate`);
    await conversation.ended(again);
    const noteOf = async (id: string) => {
      const edited = new Play({ replies: [[{ text: "Understood." }]] });
      const turnId = await started(conversation, `${id}/edit`, { content: edited.content });
      await conversation.ended(turnId);
      return { turnId, sent: textOf((await edited.requests()).at(-1)) };
    };
    const second = await noteOf(again);
    expect(second.sent.match(/charge\(/g)).toHaveLength(1);
    const third = await noteOf(second.turnId);
    expect(third.sent.match(/charge\(/g)).toHaveLength(1);
    expect(third.sent).toContain("700133");
    const call = paid.moves[0]?.toolCall?.operationId;
    expect((await request(`${conversation.path}/events/${call}`, { method: "DELETE" })).status).toBe(204);
    const later = new Play({ replies: [[{ text: "Later." }]] });
    await conversation.ended((await conversation.say(later.content)).turnId);
    const sent = textOf((await later.requests()).at(-1));
    expect(sent).toContain("charge([erased])");
    expect(sent).not.toContain("700133");
    expect(await play.runs()).toHaveLength(1);
  });

  test("G9 REPLACE-7 only the author of a message replaces its turn", async () => {
    const conversation = await createConversation(handy);
    const add = { method: "POST", body: JSON.stringify({ type: "user", id: "mallory" }) };
    expect((await request(`${conversation.path}/participants`, add)).status).toBe(200);
    const play = new Play({ replies: [[{ text: "Done." }]] });
    const { turnId } = await conversation.say(play.content);
    await conversation.ended(turnId);
    for (const path of ["regenerate", "edit"])
      expect(
        (
          await post(
            conversation,
            `${turnId}/${path}`,
            path === "edit" ? { content: "Pay Eve." } : {},
            MALLORY,
          )
        )[0],
      ).toBe(403);
  });
});

test("G9 REPLACE-4 the session of another agent has a note about the calls of this agent", async () => {
  const conversation = await createConversation(handy);
  const other = await createAgent("test/handy");
  const add = { method: "POST", body: JSON.stringify({ type: "agent", id: other }) };
  expect((await request(`${conversation.path}/participants`, add)).status).toBe(200);
  const first = new Play({ replies: [[{ text: "First." }]] });
  const { turnId: old } = await conversation.say(first.content);
  await conversation.ended(old);
  const paying = new Play((key) => ({
    replies: [[{ call: "charge", input: { key } }], [{ text: "Paid." }]],
  }));
  const paid = await conversation.say(paying.content, { to: other });
  await conversation.ended(paid.turnId);
  const edited = new Play({ replies: [[{ text: "Understood." }]] });
  await conversation.ended(await started(conversation, `${old}/edit`, { content: edited.content }));
  const later = new Play({ replies: [[{ text: "Later." }]] });
  const { turnId } = await conversation.say(later.content, { to: other });
  await conversation.ended(turnId);
  const sent = textOf((await later.requests()).at(-1));
  expect(sent.match(/charge\(/g)).toHaveLength(1);
  expect(sent).not.toContain("Paid.");
});

test("H3 H7 G9 G22 the client library forks, regenerates, edits and replays", async () => {
  const conversation = await createConversation(handy);
  const play = new Play({
    replies: [{ attempts: [[{ text: "Draft." }], [{ text: "Final." }]] }],
  });
  const { turnId: old } = await conversation.say(play.content);
  await conversation.ended(old);
  const client = createClient({
    baseUrl: "http://dramatis.test",
    fetch: (url, init) => request(new URL(url).pathname + new URL(url).search, init),
  });
  const { turnId } = await client.turns.regenerate(conversation.id, old);
  expect((await conversation.ended(turnId)).answer).toBe("Final.");
  expect(await client.turns.replay(conversation.id, turnId)).toEqual({ calls: 0, divergence: null });
  expect(await client.turns.recording(conversation.id, turnId)).toMatchObject({ turn: { regenerates: old } });
  expect((await client.turns.prompt(conversation.id, turnId)).parts.length).toBeGreaterThan(1);
  const other = new Play({ replies: [[{ text: "Other." }]] });
  const edited = await client.turns.edit(conversation.id, turnId, { content: other.content });
  expect((await conversation.ended(edited.turnId)).answer).toBe("Other.");
  const fork = await client.conversations.fork(conversation.id, { turnId });
  expect(fork.forkedFrom).toEqual({ conversationId: conversation.id, turnId });
  await client.conversations.update(fork.id, { title: "A fork" });
  expect((await client.conversations.get(fork.id)).title).toBe("A fork");
});

test("G9 REPLACE-5 an erasure after an interruption reaches all versions", async () => {
  const conversation = await createConversation(handy);
  const play = new Play({
    replies: [[{ call: "double", input: { n: 700133 } }], [{ text: "Done.", times: 4 }]],
  });
  const { turnId: first } = await conversation.say(play.content);
  const ids = [first];
  for (let version = 1; version < 4; version++) {
    const { turnId } = { turnId: ids.at(-1) ?? "" };
    await conversation.ended(turnId);
    ids.push(await started(conversation, `${turnId}/regenerate`));
  }
  await conversation.ended(ids.at(-1) ?? "");
  const messages = await conversation.messages();
  const ofTurn = (id: string | undefined) => messages.find(({ turnId }) => turnId === id)?.id ?? "";
  // The middle version alone is erased, as after an interruption: its copies are out of reach for a chain of equal texts.
  const call = (await conversation.turn(first)).moves[0]?.toolCall?.operationId;
  for (const id of [ofTurn(ids[1]), ofTurn(first), call])
    expect((await request(`${conversation.path}/events/${id}`, { method: "DELETE" })).status).toBe(204);
  for (const id of ids) {
    const turn = await conversation.turn(id);
    expect([id, turn.input]).toEqual([id, "[erased]"]);
    expect(JSON.stringify(turn.moves)).not.toContain("700133");
  }
});
