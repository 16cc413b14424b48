/** Erasing entries of a conversation on the real Worker: all of their content is removed, and everything else stays. */
import { runInDurableObject } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { type DeadLetter, deadLetterView } from "../../src/agents/base/mailbox/dead-letter.ts";
import type { Mailbox } from "../../src/agents/base/mailbox/mailbox.ts";
import { newOperationId } from "../../src/agents/base/mailbox/operation-id.ts";
import { AttachmentStore } from "../../src/attachments/attachment-store.ts";
import { RESULT_TYPE } from "../../src/attachments/large-result.ts";
import { D1DeadLetters } from "../../src/d1/dead-letters.ts";
import { R2ObjectStore } from "../../src/ports/workers/r2-object-store.ts";
import type { AgentApi } from "../../src/protocol/agent-api.ts";
import type { ErasedCallApi, TaskResultApi } from "../../src/protocol/executor-api.ts";
import { resultAttachmentId } from "../../src/protocol/ids.ts";
import { PROJECTIONS } from "../../src/protocol/projection-schemas.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { expectErased, objectsOfR2, rowsOfD1, storageOf } from "./everything.ts";
import { Play } from "./provider.ts";
import { ADA, checkInvariants, createAgent, createConversation, request, TestConversation } from "./world.ts";

const MEMBER: Principal = { subject: "mel", tenant: "test", roles: ["member"] };
const PLACEHOLDER = "[erased]";

let handy: string;

beforeAll(async () => {
  handy = await createAgent("test/handy");
});

afterEach(checkInvariants);

const erase = async ({ path }: TestConversation, id: string, principal = ADA) => {
  const response = await request(`${path}/events/${id}`, { method: "DELETE" }, principal);
  await response.body?.cancel();
  return response.status;
};

/** Everything that a reader of the conversation gets. */
async function projections(conversation: TestConversation): Promise<string> {
  const messages = await conversation.messages();
  const turns = await Promise.all(
    [...new Set(messages.map(({ turnId }) => turnId))].map((id) => conversation.turn(id)),
  );
  const paths = [
    ...turns.map(({ id }) => `${conversation.path}/turns/${id}/trace`),
    ...PROJECTIONS.map((name) => `${conversation.path}/projections/${name}`),
    ...["incidents", "journal/2/causes?direction=forward"].map((path) => `${conversation.path}/${path}`),
  ];
  const traces = await Promise.all(paths.map(async (path) => (await request(path)).text()));
  const { data } = await (await conversation.connect()).frame("snapshot");
  return JSON.stringify([
    messages,
    turns,
    await conversation.journal(),
    traces,
    data,
    await conversation.view(),
  ]);
}

/** A turn with texts to erase in its message, answer and call. */
async function turnWithSecrets(conversation: TestConversation, filler = "") {
  const secrets = { answer: `answer-${crypto.randomUUID()}`, call: `call-${crypto.randomUUID()}` };
  const { play, turnId } = await conversation.play({
    replies: [
      [{ text: "I look it up. " }, { call: "double", input: { n: secrets.call } }],
      [{ text: `It is ${secrets.answer}. ${filler}` }],
    ],
  });
  await expect.poll(async () => (await conversation.turn(turnId)).status).toBe("completed");
  const messages = (await conversation.messages()).filter((message) => message.turnId === turnId);
  const operation = (await conversation.turn(turnId)).moves.find(({ toolCall }) => toolCall !== undefined);
  return {
    turnId,
    key: play.key,
    secrets,
    message: messages[0]?.id ?? expect.fail("no message"),
    answer: messages.at(-1)?.id ?? expect.fail("no answer"),
    operation: operation?.id ?? expect.fail("no operation"),
  };
}

describe("an erased entry", () => {
  test.each([
    ["short", ""],
    ["long", "x".repeat(20_000)],
  ])(
    "G8 H6 E17 ERASE-1 ERASE-3 ERASE-6 PROJ-2 removes all of a %s answer, its question and its call, and the rest stays",
    async (_, filler) => {
      const conversation = await createConversation(handy);
      const told = await turnWithSecrets(conversation, filler);
      const other = await turnWithSecrets(conversation, filler);
      const live = await conversation.connect();
      await live.frame("snapshot");
      const before = await conversation.journal();
      const usage = (await conversation.turn(told.turnId)).usage;
      expect(await erase(conversation, told.message, MEMBER)).toBe(404);
      for (const id of [told.message, told.answer, told.operation, told.answer])
        expect([id, await erase(conversation, id)]).toEqual([id, 204]);

      for (const secret of [told.key, told.secrets.answer, told.secrets.call]) {
        expect(await projections(conversation)).not.toContain(secret);
        await expectErased(conversation.stub, secret);
        expect(await rowsOfD1()).not.toContain(secret);
      }
      await conversation.evict();
      expect(await projections(conversation)).toContain(other.secrets.answer);
      expect(await projections(conversation)).toContain(other.secrets.call);
      const messages = await conversation.messages();
      const erased = messages.filter(({ content }) => content === PLACEHOLDER).map(({ id }) => id);
      expect(erased).toEqual([told.message, told.answer]);
      const journal = await conversation.journal();
      expect(journal.slice(0, before.length).map(({ seq, type }) => [seq, type])).toEqual(
        before.map(({ seq, type }) => [seq, type]),
      );
      expect(journal.slice(before.length).map(({ type }) => type)).toEqual(Array(3).fill("entry.erased"));
      expect((await conversation.turn(told.turnId)).usage).toEqual(usage);
      await live.until(({ messages: shown }) => !JSON.stringify(shown).includes(told.secrets.answer));
    },
  );

  test("H6 MAIL-24 is erased with the dead letter of its turn's extraction, in the actor and in the directory", async () => {
    const AUTHOR: Principal = { ...ADA, roles: ["author"] };
    const memory = { memoryExtraction: { task: "test/remember" } };
    const identity = { systemPrompt: "Test.", modelProfileId: "test/scripted" };
    const id = `p${crypto.randomUUID()}`;
    const persona = { method: "POST", body: JSON.stringify({ id, identity, memory }) };
    const made = await request("/api/libraries/erased/personas", persona, AUTHOR);
    await made.body?.cancel();
    expect(made.status).toBe(201);
    const conversation = await createConversation(await createAgent(`erased/${id}`));
    const { play, turnId } = await conversation.play({ replies: [[{ text: "Yes." }]] });
    await play.closes(1);
    const types = async () => (await conversation.journal()).map(({ type }) => type);
    await expect.poll(types, { timeout: 10_000 }).toContain("memory_extraction.applied");
    const secret = `letter-${crypto.randomUUID()}`;
    const extraction =
      (await conversation.turn(turnId)).memoryExtractionRunId ?? expect.fail("no extraction");
    const letter: DeadLetter = {
      ...{ status: "failed", attempt: 1, unanswered: false, diedAt: Date.now() },
      error: { code: "NOT_FOUND", message: secret, retriable: false },
      envelope: {
        ...{ operationId: extraction, type: "memory.extracted", sentAt: Date.now() },
        body: { operations: [secret] },
        from: { kind: "conversation", tenant: ADA.tenant, id: conversation.id },
        to: { kind: "agent", tenant: ADA.tenant, id },
      },
    };
    await runInDurableObject(conversation.stub, (_, { storage }) => {
      storage.sql.exec(
        "CREATE TABLE mailbox_dead_letters (operation_id TEXT PRIMARY KEY, letter TEXT NOT NULL) WITHOUT ROWID",
      );
      const insert = "INSERT INTO mailbox_dead_letters (operation_id, letter) VALUES (?, ?)";
      storage.sql.exec(insert, extraction, JSON.stringify(letter));
    });
    // The actor has read that it has no such table.
    await conversation.evict();
    await new D1DeadLetters(env.DB).put(ADA.tenant, deadLetterView(letter));
    expect(await rowsOfD1()).toContain(secret);
    const [message] = await conversation.messages();
    expect(await erase(conversation, message?.id ?? "")).toBe(204);
    await expectErased(conversation.stub, secret);
    await expect.poll(rowsOfD1, { timeout: 10_000 }).not.toContain(secret);
  });

  test("ERASE-1 is no longer sent to the model", async () => {
    const conversation = await createConversation(handy);
    const told = await turnWithSecrets(conversation);
    for (const id of [told.message, told.answer, told.operation]) await erase(conversation, id);
    const { play } = await conversation.play({ replies: [[{ text: "Yes." }]] });
    const [sent] = await play.requests(1);
    const texts = JSON.stringify(sent?.body.messages);
    expect(texts).toContain(PLACEHOLDER);
    for (const secret of [told.key, told.secrets.answer, told.secrets.call])
      expect(texts).not.toContain(secret);
    await play.closes(1);
  });

  test("MAIL-24 is erased with the messages in transit to other actors that name its call", async () => {
    const conversation = await createConversation(handy);
    const told = await turnWithSecrets(conversation);
    const secret = `letter-${crypto.randomUUID()}`;
    await runInDurableObject(conversation.stub, async (instance) => {
      // SAFETY: the mailbox of an actor is its own. The receiver does not exist, so the message stays in transit.
      const { mailbox } = instance as unknown as { mailbox: Mailbox };
      const to = { kind: "agent", tenant: "test", id: "nobody" } as const;
      const body = { of: told.operation, secret };
      await mailbox.send({ operationId: newOperationId(), to, type: "test.nothing", body });
    });
    expect(await storageOf(conversation.stub)).toContain(secret);
    expect(await erase(conversation, told.operation)).toBe(204);
    await expectErased(conversation.stub, secret);
  });

  test("ERASE-2 is erased with its quotes in replies", async () => {
    const conversation = await createConversation(handy);
    const told = await turnWithSecrets(conversation);
    const { play } = await conversation.play(
      { replies: [[{ text: "I agree." }]] },
      { replyToMessageId: told.answer },
    );
    await play.closes(1);
    await expect.poll(async () => JSON.stringify(await conversation.messages())).toContain("I agree.");
    for (const id of [told.message, told.answer, told.operation]) await erase(conversation, id);
    await expectErased(conversation.stub, told.secrets.answer);
  });

  test("ERASE-5 is refused while its turn is active, and for unknown ids", async () => {
    const conversation = await createConversation(handy);
    const { play, turnId } = await conversation.play({ replies: [[{ text: "Half" }, { gate: "end" }]] });
    await play.reached("end");
    const [message] = await conversation.messages();
    expect(await erase(conversation, message?.id ?? "")).toBe(409);
    for (const id of [turnId, "msg_x", "1", `${message?.id}0`])
      expect([id, await erase(conversation, id)]).toEqual([id, 404]);
    await play.open("end");
    await play.closes(1);
    await expect.poll(() => erase(conversation, message?.id ?? "")).toBe(204);
  });

  test("ERASE-7 is erased with its attachment and the title that contains it", async () => {
    const secret = `attached-${crypto.randomUUID()}`;
    const created = await request("/api/conversations", {
      method: "POST",
      body: JSON.stringify({ agentId: handy, title: `Say ${secret}` }),
    });
    const conversation = new TestConversation((await created.json<{ id: string }>()).id);
    const upload = async () => {
      const init = { method: "POST", headers: { "content-type": "image/png" }, body: secret };
      return (await request(`${conversation.path}/attachments`, init)).json<{ id: string; url: string }>();
    };
    const [once, twice] = [await upload(), await upload()];
    const play = new Play({ replies: [[{ text: "Seen." }]] });
    const image = ({ url }: { url: string }) => ({ type: "image" as const, url });
    const text = { type: "text" as const, text: `Say  ${secret} please.` };
    const content = { type: "text" as const, text: play.content };
    const first = await conversation.say([text, image(once), image(twice), content]);
    await expect.poll(async () => (await conversation.turn(first.turnId)).status).not.toBe("active");
    const second = await conversation.say([image(twice), content]);
    await expect.poll(async () => (await conversation.turn(second.turnId)).status).not.toBe("active");
    expect(await erase(conversation, first.messageId)).toBe(204);
    await expect.poll(objectsOfR2).not.toContain(once.id);
    expect(await objectsOfR2()).toContain(twice.id);
    expect((await conversation.view()).title).toBeNull();
    await expectErased(conversation.stub, secret);
    await expect.poll(rowsOfD1).not.toContain(secret);
  });

  test("ERASE-7 TITLE-2 erases titles that came from the message, also former titles", async () => {
    const secret = `titled-${crypto.randomUUID()}`;
    const conversation = await createConversation(handy);
    const play = new Play({ replies: [[{ text: "Noted." }]] });
    const texts = [`Remember ${secret}.`, play.content].map((text) => ({ type: "text" as const, text }));
    const { turnId } = await conversation.say(texts);
    await expect.poll(async () => (await conversation.turn(turnId)).status).not.toBe("active");
    for (const title of [`remember ${secret}`, "Another title"]) {
      const renamed = await request(conversation.path, { method: "PATCH", body: JSON.stringify({ title }) });
      expect(renamed.status).toBe(200);
    }
    const [message] = await conversation.messages();
    expect(await erase(conversation, message?.id ?? "")).toBe(204);
    expect((await conversation.view()).title).toBe("Another title");
    await expectErased(conversation.stub, secret);
    await expect.poll(rowsOfD1).not.toContain(secret);
    const titles = (await conversation.journal()).filter(({ type }) => type === "conversation.updated");
    expect(titles.map(({ data }) => data)).toMatchObject([{ title: null }, { title: "Another title" }]);
  });

  test("ERASE-7 erases a call with a result that names a user's file, and keeps the file", async () => {
    const conversation = await createConversation(handy);
    const upload = async () => {
      const init = { method: "POST", headers: { "content-type": "image/png" }, body: "A picture." };
      return (await request(`${conversation.path}/attachments`, init)).json<{ id: string; url: string }>();
    };
    const [file, later] = [await upload(), await upload()];
    const play = new Play({
      replies: [[{ call: "locate", input: {} }], [{ text: "Done." }], [{ text: "Seen." }]],
    });
    const content = ({ url }: { url: string }) => [
      { type: "image" as const, url },
      { type: "text" as const, text: play.content },
    ];
    const tools = [{ name: "locate", description: "Locates.", inputSchema: { type: "object" } }];
    const { turnId } = await conversation.say(content(file), { tools });
    const call = async () =>
      (await conversation.turn(turnId)).moves.find(({ toolCall }) => toolCall !== undefined)?.id;
    await expect.poll(call).toBeDefined();
    const operation = (await call()) ?? "";
    const [status] = await conversation.result(operation, { result: { stored_result: { id: file.id } } });
    expect(status).toBe(200);
    await conversation.ended(turnId);
    const last = await conversation.say(content(later));
    await conversation.ended(last.turnId);
    expect(await erase(conversation, operation)).toBe(204);
    expect(await erase(conversation, last.messageId)).toBe(204);
    await expect.poll(objectsOfR2).not.toContain(later.id);
    expect(await objectsOfR2()).toContain(file.id);
  });

  test("ERASE-9 OP-6 a stopped call takes no result after its erasure", async () => {
    const conversation = await createConversation(handy);
    const { play, turnId } = await conversation.play((key) => ({
      replies: [[{ call: "charge", input: { key, gate: "paid", deaf: true } }]],
    }));
    const [run] = await play.runs(1);
    const operationId = run?.operationId ?? "";
    await conversation.stop(turnId);
    await conversation.ended(turnId);
    // SAFETY: the class implements both.
    const actor = conversation.stub as unknown as TaskResultApi & ErasedCallApi;
    expect(await actor.isErased(operationId)).toEqual({ ok: true, value: false });
    expect(await erase(conversation, operationId)).toBe(204);
    expect(await actor.isErased(operationId)).toEqual({ ok: true, value: true });
    const secret = `late-${crypto.randomUUID()}`;
    const result = { tool_call_id: "call_0", success: true, result: secret };
    expect((await actor.handleTaskResult({ operationId, attempt: 1, result })).ok).toBe(true);
    await play.open("paid");
    const next = await conversation.play({ replies: [[{ text: "Yes." }]] });
    await conversation.ended(next.turnId);
    expect(JSON.stringify(await next.play.requests(1))).not.toContain(secret);
    expect((await conversation.journal()).map(({ type }) => type)).not.toContain("tool.late");
    await expectErased(conversation.stub, secret);
  });

  test("ERASE-9 LARGE-2 a stopped call leaves no stored result after its erasure", async () => {
    const conversation = await createConversation(handy);
    const { play, turnId } = await conversation.play((key) => ({
      replies: [[{ call: "big", input: { size: 2_000_000, key, gate: "full" } }]],
    }));
    await play.reached("full");
    const operationId = (await conversation.turn(turnId)).moves[0]?.toolCall?.operationId ?? "";
    await conversation.stop(turnId);
    await conversation.ended(turnId);
    expect(await erase(conversation, operationId)).toBe(204);
    await play.open("full");
    // The result is stored, then deleted.
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    const id = resultAttachmentId(operationId, 1);
    const attachments = new AttachmentStore(new R2ObjectStore(env.BUCKET));
    const owner = { tenant: "test", conversationId: conversation.id };
    const keys = async () => (await env.BUCKET.list()).objects.map(({ key }) => key).join();
    await expect.poll(keys).not.toContain(id);
    // SAFETY: the class implements both.
    const actor = conversation.stub as unknown as TaskResultApi & ErasedCallApi;
    const late = { tool_call_id: "call_0", success: true, result: "Late." };
    const arrivals: (() => Promise<{ ok: boolean }>)[] = [
      () => actor.isErased(operationId),
      () => actor.handleTaskResult({ operationId, attempt: 1, result: late }),
    ];
    for (const arrive of arrivals) {
      // A result that its executor could not delete.
      await attachments.put(owner, { id, mediaType: RESULT_TYPE, bytes: new Uint8Array(1) });
      expect(await keys()).toContain(id);
      expect((await arrive()).ok).toBe(true);
      await expect.poll(keys).not.toContain(id);
    }
  });

  test("ERASE-4 is erased with the summary that contains it, and the history without it is sent again", async () => {
    const agent = await createAgent({
      identity: { systemPrompt: "You are a test.", modelProfileId: "test/scripted" },
      memory: { contextTokens: 2_000 },
    });
    const conversation = await createConversation(agent);
    const secret = `summary-${crypto.randomUUID()}`;
    const text = Array.from({ length: 300 }, () => "word").join(" ");
    const usage = { prompt_tokens: 1_000, completion_tokens: 20, total_tokens: 1_020 };
    const turns: string[] = [];
    const types = async () => (await conversation.journal()).map(({ type }) => type);
    while (!(await types()).includes("context.compaction.started")) {
      expect(turns.length).toBeLessThan(8);
      const { turnId } = await conversation.play({
        replies: [[{ text }]],
        summary: [{ text: `They talked of ${secret}.` }, { usage }],
      });
      await expect.poll(async () => (await conversation.turn(turnId)).status).toBe("completed");
      turns.push(turnId);
    }
    await expect.poll(types).toContain("context.compacted");
    for (const { id, role } of await conversation.messages())
      if (role === "user") await expect.poll(() => erase(conversation, id)).toBe(204);
    await expectErased(conversation.stub, secret);
    const { play } = await conversation.play({ replies: [[{ text: "Yes." }]] });
    const [sent] = await play.requests(1);
    expect(JSON.stringify(sent?.body.messages)).not.toContain("They talked of");
    expect(JSON.stringify(sent?.body.messages)).toContain("word word");
    await play.closes(1);
  });

  test("H6 ERASE-8 is erased with the memories that the agent learned only from it", async () => {
    const agent = await createAgent("test/plain");
    const conversation = await createConversation(agent);
    const { play, turnId } = await conversation.play({ replies: [[{ text: "Noted." }]] });
    await play.closes(1);
    await expect.poll(async () => (await conversation.turn(turnId)).status).toBe("completed");
    const actor = exports.Agent.getByName(`test:${agent}`);
    // SAFETY: the class of the export has this interface.
    const memory = actor as unknown as AgentApi;
    const secret = `learned-${crypto.randomUUID()}`;
    const [message] = await conversation.messages();
    const written = await memory.writeMemories(
      {
        reader: { scope: "agent" },
        author: { kind: "tool", conversationId: conversation.id, turnId },
        sources: [{ conversationId: conversation.id, turnId }],
      },
      [{ content: secret }],
    );
    expect(written.ok).toBe(true);
    expect(await storageOf(actor)).toContain(secret);
    expect(await erase(conversation, message?.id ?? "")).toBe(204);
    await expectErased(actor, secret);
    await expect.poll(rowsOfD1).not.toContain(secret);
  });
});
