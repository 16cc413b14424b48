/** Recall on the real Worker: the memories that turns receive, and the tools of memory end to end. */
import { runInDurableObject } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import { afterEach, describe, expect, test } from "vitest";
import { RECALL_TIMEOUT_MS } from "../../src/agents/conversation/effects/recall.ts";
import { RECALLED } from "../../src/library/memory/shown-memory.ts";
import type { AgentApi } from "../../src/protocol/agent-api.ts";
import type { Persona } from "../../src/protocol/definitions.ts";
import type { MemoryReader, MemoryWriter } from "../../src/protocol/memory.ts";
import type { MemoryInput } from "../../src/protocol/memory-requests.ts";
import { unwrap } from "../../src/shared/errors.ts";
import type { Principal } from "../../src/shared/principal.ts";
import type { Script } from "../support/provider-script.ts";
import { get, post } from "./http-client.ts";
import { Play } from "./provider.ts";
import { ADA, checkInvariants, createAgent, createConversation, type TestConversation } from "./world.ts";

afterEach(checkInvariants);

const identity = { systemPrompt: "You are a test.", modelProfileId: "test/scripted" };
const READER: MemoryReader = { principal: ADA };
const WRITER: MemoryWriter = { reader: READER, author: { kind: "principal", subject: "ada" } };
const FACT = "Ada's favourite colour is teal.";
const QUESTION = "What is Ada's favourite colour?";

/** The scripts of the provider are in the messages, and no question is as short as its relevance is high. */
const newAgent = (memory: Persona["memory"] = { scope: "agent", recall: { minRelevance: 0 } }) =>
  createAgent({ identity, memory });

function stubOf(agent: string): AgentApi {
  // SAFETY: the class of the export has the interface.
  return exports.Agent.getByName(`${ADA.tenant}:${agent}`) as unknown as AgentApi;
}

async function write(agent: string, inputs: MemoryInput[], tainted = false) {
  return unwrap(await stubOf(agent).writeMemories({ ...WRITER, tainted }, inputs));
}

/** The memory notes in the requests of a script, one per request; empty if absent. */
async function notesOf(play: Play): Promise<string[]> {
  return (await play.requests()).map(({ body: { messages } }) =>
    messages.flatMap(({ content }) => (content?.includes(RECALLED) ? content : [])).join(""),
  );
}

/** Asks a question in a turn that the provider answers. */
async function ask(
  conversation: TestConversation,
  says: string,
  replies: Script["replies"] = [[{ text: "Done." }]],
) {
  const { play, turnId } = await conversation.play({ says, replies });
  return { turn: await conversation.ended(turnId), play };
}

describe("recall", () => {
  test("A5 RECALL-2 two conversations of an agent share its memory, by notes and by tools, and each use is recorded", async () => {
    const agent = await newAgent();
    const one = await createConversation(agent);
    const stored = await ask(one, "Please keep it.", [
      [{ call: "remember", input: { content: FACT } }],
      [{ text: "I keep it." }],
    ]);
    expect(stored.turn.moves[0]?.toolResult).toMatchObject({ success: true });
    const two = await createConversation(agent);
    const { turn, play } = await ask(two, QUESTION, [
      [{ call: "recall", input: { query: QUESTION } }],
      [{ text: "Teal." }],
    ]);
    const [first, second] = await notesOf(play);
    expect(first).toContain(FACT);
    expect(second).toBe(first);
    const { items } = unwrap(await stubOf(agent).listMemories(READER));
    expect(items).toHaveLength(1);
    expect(turn.memories).toEqual([{ id: items[0]?.id, version: 1 }]);
    expect(turn.moves[0]?.toolResult).toMatchObject({ result: { memories: [{ content: FACT }] } });
    const recalled = (await two.journal()).filter(({ type }) => type === "memory.recalled");
    expect(recalled).toMatchObject([{ turnId: turn.id, data: { memories: turn.memories } }]);
  });

  test("SAMETEXT-1 WORDS-4 a fact that two conversations remember in other forms is one memory with two sources", async () => {
    const agent = await newAgent({ scope: "user", recall: false });
    const forms = ["Ada lives in the Königstraße 🏡", "ada lives in the KO\u0308NIGSTRASSE 🏡."];
    for (const content of forms)
      await ask(await createConversation(agent), "Please keep it.", [
        [{ call: "remember", input: { content } }],
        [{ text: "I keep it." }],
      ]);
    await write(agent, [{ content: forms[1] ?? "", subject: { userId: ADA.subject } }]);
    const { items } = unwrap(await stubOf(agent).listMemories(READER));
    expect(items).toMatchObject([{ content: forms[0] }]);
    const why = unwrap(await stubOf(agent).whyMemory(READER, items[0]?.id ?? ""));
    expect(why.sources).toHaveLength(2);
    for (const query of ["königstrasse", "🏡"])
      expect(unwrap(await stubOf(agent).searchMemories(READER, { query })).matches).toHaveLength(1);
  });

  test("A74 the tools of memory end to end: a forgotten memory is not recalled, and `history` reads older turns", async () => {
    const agent = await newAgent({ scope: "agent", recall: false });
    const conversation = await createConversation(agent);
    const resultOf = async (call: string, input: object) => {
      const { turn } = await ask(conversation, "Go on.", [[{ call, input }], [{ text: "Done." }]]);
      return turn.moves[0]?.toolResult;
    };
    const written = await resultOf("remember", { content: FACT, key: "colour" });
    expect(written).toMatchObject({ success: true, result: { remembered: { version: 1 } } });
    const { items } = unwrap(await stubOf(agent).listMemories(READER));
    expect(await resultOf("recall", { query: QUESTION })).toMatchObject({
      result: { memories: [{ id: items[0]?.id, content: FACT }] },
    });
    expect(await resultOf("forget", { id: items[0]?.id })).toMatchObject({ result: { forgotten: true } });
    expect(await resultOf("recall", { query: QUESTION })).toMatchObject({ result: { memories: [] } });
    const past = await resultOf("history", {});
    expect(past).toMatchObject({ result: { turns: expect.arrayContaining([expect.anything()]) } });
  });

  test("RECALL-1 in the scope `user`, the secret of a user is in no recall, note or `why` of another user", async () => {
    const agent = await newAgent({ scope: "user", recall: { minRelevance: 0 } });
    const bob: Principal = { subject: "bob", tenant: ADA.tenant, roles: ["member"] };
    const [secret] = await write(agent, [
      { content: "Ada's favourite colour is secret-teal.", subject: { userId: "ada" } },
    ]);
    const own = await ask(await createConversation(agent), QUESTION);
    expect((await notesOf(own.play))[0]).toContain("secret-teal");
    const { status, body } = await post("/api/conversations", { agentId: agent }, bob);
    expect(status).toBe(201);
    const path = `/api/conversations/${String(Reflect.get(body, "id"))}`;
    const play = new Play({
      says: QUESTION,
      replies: [[{ call: "recall", input: { query: QUESTION } }], [{ text: "I do not know." }]],
    });
    const started = await post(`${path}/turns`, { content: play.content }, bob);
    const turnPath = `${path}/turns/${String(Reflect.get(started.body, "turnId"))}`;
    await expect.poll(async () => Reflect.get((await get(turnPath, bob)).body, "status")).toBe("completed");
    expect(JSON.stringify(await play.requests())).not.toContain("secret-teal");
    const turn = await get(turnPath, bob);
    expect(turn.body).not.toHaveProperty("memories");
    expect(JSON.stringify(turn.body)).not.toContain("secret-teal");
    expect((await get(`/api/agents/${agent}/memories/${secret?.id}/why`, bob)).status).toBe(404);
  });

  test.each(["user", "agent"] as const)(
    "MEMCHANGE-1 in the scope `%s` a conversation recalls shared memories, and `forget` and `remember` leave them unchanged",
    async (scope) => {
      const agent = await newAgent({ scope, recall: false });
      const [shared] = await write(agent, [{ content: FACT, key: "colour" }]);
      const conversation = await createConversation(agent);
      const { turn } = await ask(conversation, "Go on.", [
        [{ call: "recall", input: { query: QUESTION } }],
        [{ call: "forget", input: { id: shared?.id } }],
        [{ call: "remember", input: { content: "Ada's favourite colour is red.", key: "colour" } }],
        [{ text: "Done." }],
      ]);
      expect(turn.moves.map(({ toolResult }) => toolResult)).toMatchObject([
        { result: { memories: [{ id: shared?.id }] } },
        { result: { forgotten: false, message: expect.stringContaining(shared?.id ?? "") } },
        { success: true },
        undefined,
      ]);
      const { items } = unwrap(await stubOf(agent).listMemories(READER, { order: "asc" }));
      expect(items).toHaveLength(2);
      expect(items[0]).toEqual(shared);
    },
  );

  test("A35 RECALL-3 a context hook gets the memories as `memories`, instead of the note, and the turn names them", async () => {
    const agent = await newAgent({
      ...{ scope: "agent", recall: { minRelevance: 0 } },
      contextAssembly: { task: "learning/remind" },
    });
    const [fact] = await write(agent, [{ content: FACT, key: "colour" }]);
    const { turn, play } = await ask(await createConversation(agent), QUESTION);
    const [request] = await play.requests();
    const [memories, message] = request?.body.messages ?? [];
    expect(JSON.parse(memories?.content ?? "")).toEqual([
      { id: fact?.id, version: 1, type: "fact", content: FACT, key: "colour", time: fact?.createdAt },
    ]);
    expect(message?.content).toBe(play.content);
    expect(JSON.stringify(request?.body)).not.toContain(RECALLED);
    expect(turn.memories).toEqual([{ id: fact?.id, version: 1 }]);
  });

  test("RECALL-2 RECALL-8 a second cycle recalls again: its note has the newly learned memories, and the turn names both", async () => {
    const agent = await createAgent({
      identity,
      memory: { scope: "agent", recall: { minRelevance: 0 } },
      tools: { toolIds: ["test/research"] },
    });
    const [fact] = await write(agent, [{ content: FACT }]);
    const conversation = await createConversation(agent);
    const client = await conversation.connect();
    const { play, turnId } = await conversation.play((key) => ({
      says: QUESTION,
      replies: [
        [{ call: "research", input: { key, gate: "a" } }],
        [{ text: "I'm on it." }],
        [{ text: "Teal, now navy." }],
      ],
    }));
    await client.frame("turn.waiting");
    await play.reached("a");
    const changed = "Ada's favourite colour is navy.";
    const other = "Ada's favourite colour for doors is plum.";
    unwrap(await stubOf(agent).updateMemory(WRITER, fact?.id ?? "", { content: changed }));
    const [door] = await write(agent, [{ content: other }]);
    await play.open("a");
    const turn = await conversation.ended(turnId);
    const [first, second, third, ...more] = await notesOf(play);
    expect(more).toEqual([]);
    expect(first).toContain(FACT);
    expect(second, "a later call of a cycle has the note of its first").toBe(first);
    expect(third).toContain(changed);
    expect(third).toContain(other);
    expect(third).not.toContain(FACT);
    const used = turn.memories ?? [];
    expect(used[0]).toEqual({ id: fact?.id, version: 1 });
    expect(used).toHaveLength(3);
    expect(used).toEqual(
      expect.arrayContaining([
        { id: fact?.id, version: 2 },
        { id: door?.id, version: 1 },
      ]),
    );
    const recalled = (await conversation.journal()).filter(({ type }) => type === "memory.recalled");
    expect(recalled.map(({ data }) => data)).toEqual([
      { memories: used.slice(0, 1) },
      { memories: expect.arrayContaining(used.slice(1)) },
    ]);
  });

  test("RECALL-2 with the default floor of relevance, a natural question finds its answer, and small talk finds no memory", async () => {
    const agent = await createAgent({
      identity: { systemPrompt: "You are a friend." },
      memory: { scope: "user", extract: true },
    });
    const answerOf = async (conversation: TestConversation, text: string) =>
      conversation.ended((await conversation.say(text)).turnId);
    const past = await createConversation(agent);
    await answerOf(past, "Remember that my cat is called Miso.");
    await write(agent, [
      { content: "The user works at a bakery in Lyon.", subject: { userId: "ada" } },
      { content: "The user is allergic to peanuts.", subject: { userId: "ada" } },
    ]);
    const conversation = await createConversation(agent);
    const asked = await answerOf(conversation, "What is the name of my cat?");
    expect(asked.answer).toBe('Offline model: I remember: "The user\'s cat is called Miso."');
    expect(asked.memories).toHaveLength(1);
    const said = await answerOf(conversation, "Good morning!");
    expect(said).not.toHaveProperty("memories");
    const forgotten = await answerOf(conversation, "Forget that my cat is called Miso.");
    expect(forgotten.answer).toBe("Offline model: I have forgotten that.");
    const again = await answerOf(await createConversation(agent), "What is the name of my cat?");
    expect(again.answer).not.toContain("I remember");
  });

  test("B4 RECALL-3 the note follows the history: requests of two turns begin with the same messages, and it is not in the history", async () => {
    const agent = await newAgent();
    await write(agent, [{ content: FACT }]);
    const conversation = await createConversation(agent);
    const first = await ask(conversation, QUESTION);
    const second = await ask(conversation, `Again: ${QUESTION}`);
    const [before] = await first.play.requests();
    const [after] = await second.play.requests();
    const stable = (before?.body.messages ?? []).filter(({ content }) => !content?.includes(RECALLED));
    expect(after?.body.messages.slice(0, stable.length)).toEqual(stable);
    expect((await notesOf(second.play))[0]?.split(FACT)).toHaveLength(2);
  });

  test("recall stores no memory in ten turns, and no row besides the rows of the turn", async () => {
    const rowsOf = async (agent: string) => {
      const conversation = await createConversation(agent);
      const { turn } = await ask(conversation, QUESTION);
      const rows = await runInDurableObject(conversation.stub, (_, { storage: { sql } }) => {
        const tables = sql
          .exec<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table'")
          .toArray();
        const count = (name: string) => Number(sql.exec(`SELECT count(*) AS n FROM "${name}"`).one().n);
        return tables.filter(({ name }) => !name.startsWith("_cf")).map(({ name }) => [name, count(name)]);
      });
      return { turn, rows };
    };
    const agent = await newAgent();
    await write(agent, [{ content: FACT }]);
    const conversation = await createConversation(agent);
    for (let turn = 0; turn < 10; turn++) await ask(conversation, QUESTION);
    expect(unwrap(await stubOf(agent).listMemories(READER)).items).toMatchObject([{ version: 1 }]);
    const told = await rowsOf(agent);
    expect(told.turn.memories).toHaveLength(1);
    const untold = await rowsOf(await newAgent({}));
    expect(untold.turn).not.toHaveProperty("memories");
    expect(told.rows).toEqual(untold.rows);
  });

  test("RECALL-3 an unconfirmed memory is marked, and taints the turn's own memories", async () => {
    const agent = await newAgent();
    await write(agent, [{ content: FACT }], true);
    const conversation = await createConversation(agent);
    const { play } = await ask(conversation, QUESTION, [
      [{ call: "remember", input: { content: "Ada painted the wall teal." } }],
      [{ text: "Done." }],
    ]);
    expect((await notesOf(play))[0]).toContain('"tainted":true');
    const { items } = unwrap(await stubOf(agent).listMemories(READER));
    expect(items.map(({ tainted }) => tainted)).toEqual([true, true]);
  });

  test.each([
    ["double", { n: 2 }],
    ["fails", { key: "taint", retriable: false }],
  ])(
    "RECALL-8 a result of `%s` in an earlier turn taints a memory, also for other conversations",
    async (call, input) => {
      const agent = await createAgent({
        identity,
        memory: { scope: "agent", recall: { minRelevance: 0 } },
        tools: { toolIds: [`test/${call}`] },
      });
      const conversation = await createConversation(agent);
      const remember: Script["replies"] = [
        [{ call: "remember", input: { content: FACT } }],
        [{ text: "I keep it." }],
      ];
      await ask(conversation, "Please keep it.", remember);
      const before = unwrap(await stubOf(agent).listMemories(READER)).items;
      expect(before).toHaveLength(1);
      expect(before[0]).not.toHaveProperty("tainted");
      await ask(conversation, "Go on.", [[{ call, input }], [{ text: "Done." }]]);
      const other: Script["replies"] = [
        [{ call: "remember", input: { content: "Ada's favourite tree is the oak." } }],
        [{ text: "I keep it." }],
      ];
      await ask(conversation, "Please keep that.", other);
      const { play } = await ask(await createConversation(agent), QUESTION);
      const lines = (await notesOf(play))[0]?.split("\n") ?? [];
      const tainted = lines.filter((line) => line.includes('"tainted":true'));
      expect(tainted).toHaveLength(1);
      expect(tainted[0]).toContain("oak");
    },
  );

  test("RECALL-5 a turn continues without a silent memory, and its record states it", async () => {
    const agent = await newAgent();
    await write(agent, [{ content: FACT }]);
    const conversation = await createConversation(agent);
    const seen = { isSilent: false, isOver: false };
    const silence = runInDurableObject(exports.Agent.getByName(`${ADA.tenant}:${agent}`), (_, state) =>
      state.blockConcurrencyWhile(async () => {
        seen.isSilent = true;
        await scheduler.wait(2 * RECALL_TIMEOUT_MS);
        seen.isOver = true;
      }),
    );
    await expect.poll(() => seen.isSilent).toBe(true);
    const { turn, play } = await ask(conversation, QUESTION);
    expect(seen.isOver).toBe(false);
    await silence;
    expect(turn).toMatchObject({ status: "completed", answer: "Done.", memoryError: "UNAVAILABLE" });
    expect(await notesOf(play)).toEqual([""]);
    const recalled = (await conversation.journal()).filter(({ type }) => type === "memory.recalled");
    expect(recalled).toMatchObject([{ data: { memories: [], code: "UNAVAILABLE" } }]);
  });
});
