/** Conversations learn: from the turn to the memory of the agent, through the real mailboxes. */
import { exports } from "cloudflare:workers";
import { afterEach, expect, test } from "vitest";
import type { AgentApi } from "../../src/protocol/agent-api.ts";
import type { MemoryOperation, MemoryReader, MemoryWriter } from "../../src/protocol/memory.ts";
import type { Memory, MemoryOutcome } from "../../src/protocol/memory-schemas.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { isJsonObject } from "../../src/shared/json.ts";
import {
  ADA,
  checkInvariants,
  createAgent,
  createConversation,
  request,
  skipInvariants,
  type TestConversation,
} from "./world.ts";

afterEach(checkInvariants);

const READER: MemoryReader = { principal: ADA };
const WRITER: MemoryWriter = { reader: READER, author: { kind: "principal", subject: "ada" } };

function memoryOf(id: string): AgentApi {
  // SAFETY: the class of the export has the interface.
  return exports.Agent.getByName(`${ADA.tenant}:${id}`) as unknown as AgentApi;
}

const rowsOf = async (id: string): Promise<Memory[]> =>
  unwrap(await memoryOf(id).listMemories(READER, { limit: 200 })).items;
const textsOf = async (id: string) => (await rowsOf(id)).map(({ content }) => content);

/** The data of the entry that ends an extraction for good. */
async function noted(conversation: TestConversation, turnId: string) {
  const entry = async () =>
    (await conversation.journal()).find(
      ({ type, turnId: of }) => of === turnId && /^memory_extraction\.(applied|refused)$/.test(type),
    );
  await expect.poll(entry, { timeout: 20_000 }).toBeDefined();
  return entry();
}

/** Sends a message, and resolves with the outcome of the agent's learning. */
async function teach(conversation: TestConversation, content: string): Promise<MemoryOutcome[]> {
  const { turnId } = await conversation.say(content);
  await conversation.ended(turnId);
  const data = (await noted(conversation, turnId))?.data;
  // SAFETY: the entry's own data.
  return (isJsonObject(data) ? data.outcomes : undefined) as unknown as MemoryOutcome[];
}

/** Sends a message that makes the agent learn these operations. */
const order = (conversation: TestConversation, text: string, ...operations: MemoryOperation[]) =>
  teach(conversation, `${text} LEARN:${JSON.stringify(operations)}`);

test("A39 LEARNED-1 a turn leads to a row with its agent, its source and its user, and the turn shows the outcome", async () => {
  const agent = await createAgent("learning/listener");
  const conversation = await createConversation(agent);
  const { turnId } = await conversation.say("I love tea.");
  await conversation.ended(turnId);
  const entry = await noted(conversation, turnId);
  const [row] = await rowsOf(agent);
  const turn = await conversation.turn(turnId);
  expect(row).toMatchObject({
    agentId: agent,
    subject: { userId: "ada", conversationId: conversation.id },
    time: turn.createdAt,
    version: 1,
  });
  expect(row?.content).toMatch(/tea/);
  expect(entry).toMatchObject({
    type: "memory_extraction.applied",
    operationId: turn.memoryExtractionRunId,
    data: { outcomes: [{ status: "applied", memoryId: row?.id, version: 1 }] },
  });
  const why = unwrap(await memoryOf(agent).whyMemory(READER, row?.id ?? ""));
  expect(why.sources).toEqual([{ conversationId: conversation.id, turnId }]);
});

test("B9 a contradicting statement changes the memory, and the old text is history", async () => {
  const agent = await createAgent("learning/listener");
  const conversation = await createConversation(agent);
  await teach(conversation, "I love olives.");
  const [outcome] = await teach(conversation, "I hate olives.");
  const [row, ...others] = await rowsOf(agent);
  expect(others).toEqual([]);
  expect(outcome).toEqual({ status: "applied", memoryId: row?.id, version: 2 });
  expect(row?.content).toMatch(/(hates|dislikes|does not like) olives/);
  const why = unwrap(await memoryOf(agent).whyMemory(READER, row?.id ?? ""));
  expect(why.log[0]?.before?.content).toMatch(/loves olives/);
});

test("B6 EXTRACTED-2 a pure hook gets the memories that it may change, an invented id is refused, and both are shown", async () => {
  const agent = await createAgent("learning/obedient");
  const conversation = await createConversation(agent);
  const [written] = await order(conversation, "The heron is grey.", {
    op: "write",
    content: "The heron is grey.",
  });
  expect(written).toMatchObject({ status: "applied", version: 1 });
  const outcomes = await order(
    conversation,
    "The heron is white.",
    { op: "update", memoryId: "$0", content: "The heron is white. Before: $OFFERED" },
    { op: "delete", memoryId: "mem_invented" },
  );
  expect(outcomes).toEqual([
    { ...written, version: 2 },
    { status: "refused", code: "NOT_FOUND", message: "The extraction was not offered this memory." },
  ]);
  expect(await textsOf(agent)).toEqual(["The heron is white. Before: The heron is grey."]);
});

test("B6 MEMFORM-1 the older form with a store, a key and a value is applied: written, updated, archived and deleted", async () => {
  const agent = await createAgent("learning/obedient");
  const conversation = await createConversation(agent);
  const say = (text: string, ...operations: object[]) =>
    teach(conversation, `${text} LEARN:${JSON.stringify(operations)}`);
  const kept = async () => (await rowsOf(agent)).map(({ key, type, content }) => ({ key, type, content }));
  const written = await say(
    "First.",
    { op: "write", store: "structured", key: "diet", value: { vegan: true } },
    { op: "write", store: "semantic", key: "pet", value: "Ada has a cat." },
  );
  expect(written).toMatchObject(Array(2).fill({ status: "applied", version: 1 }));
  expect(await kept()).toEqual([
    { key: "diet", type: "structured", content: '{"vegan":true}' },
    { key: "pet", type: "semantic", content: "Ada has a cat." },
  ]);
  const [diet, pet] = written.map((outcome) => ("memoryId" in outcome ? outcome.memoryId : ""));
  const changed = await say(
    "Second.",
    { op: "update", store: "structured", key: "diet", value: { vegan: false } },
    { op: "archive", key: "pet" },
    { op: "delete", store: "semantic", key: "unknown" },
  );
  expect(changed).toMatchObject([
    { status: "applied", memoryId: diet, version: 2 },
    { status: "applied", memoryId: pet, version: 2 },
    { status: "refused", code: "NOT_FOUND" },
  ]);
  expect(await kept()).toEqual([{ key: "diet", type: "structured", content: '{"vegan":false}' }]);
  expect(await say("Third.", { op: "delete", store: "structured", key: "diet" })).toMatchObject([
    { status: "applied", memoryId: diet },
  ]);
  expect(await kept()).toEqual([]);
});

test("A41 EXTRACTED-3 two conversations that learn the same fact at once create one row with both sources, and ten repeats create no row", async () => {
  const agent = await createAgent("learning/obedient");
  const fact: MemoryOperation = { op: "write", content: "Ada keeps bees." };
  const [one, two] = [await createConversation(agent), await createConversation(agent)];
  await Promise.all([order(one, "Bees.", fact), order(two, "Bees!", fact)]);
  for (let turn = 0; turn < 10; turn += 1)
    expect(await order(one, `Again ${turn}.`, fact)).toMatchObject([{ status: "unchanged" }]);
  const [row, ...others] = await rowsOf(agent);
  expect(others).toEqual([]);
  expect(row?.version).toBe(1);
  const { sources } = unwrap(await memoryOf(agent).whyMemory(READER, row?.id ?? ""));
  expect(new Set(sources.map(({ conversationId }) => conversationId))).toEqual(new Set([one.id, two.id]));
});

test("EXTRACTED-4 an extraction does not restore an erased text", async () => {
  const agent = await createAgent("learning/obedient");
  const conversation = await createConversation(agent);
  const fact: MemoryOperation = { op: "write", content: "Ada keeps bees." };
  await order(conversation, "Bees.", fact);
  const [row] = await rowsOf(agent);
  unwrap(await memoryOf(agent).deleteMemory(WRITER, row?.id ?? ""));
  expect(await order(conversation, "Bees.", fact)).toMatchObject([{ status: "refused", code: "CONFLICT" }]);
  expect(await textsOf(agent)).toEqual([]);
});

test("A58 an extraction for a user does not see memories of another user", async () => {
  const agent = await createAgent("learning/obedient");
  unwrap(
    await memoryOf(agent).writeMemories(WRITER, [
      { content: "The heron of Bob.", subject: { userId: "bob" } },
      { content: "The heron of Ada.", subject: { userId: "ada" } },
    ]),
  );
  const conversation = await createConversation(agent);
  await order(conversation, "The heron?", { op: "write", content: "Offered: $OFFERED" });
  expect(await textsOf(agent)).toContain("Offered: The heron of Ada.");
});

test("HOOK-4 operations that are not valid reach no agent, and the turn stays completed", async () => {
  const agent = await createAgent("learning/obedient");
  const conversation = await createConversation(agent);
  const { turnId } = await conversation.say(`LEARN:${JSON.stringify([{ op: "write", content: "" }])}`);
  await conversation.ended(turnId);
  await expect
    .poll(async () => (await conversation.turn(turnId)).issues, { timeout: 20_000 })
    .toEqual({ memoryExtractionFailed: true });
  expect((await conversation.turn(turnId)).status).toBe("completed");
  expect(await rowsOf(agent)).toEqual([]);
});

test("H6 LEARNED-1 a conversation that is deleted during an extraction leaves no memory with its agent", async () => {
  const agent = await createAgent("learning/obedient");
  const [gone, kept] = [await createConversation(agent), await createConversation(agent)];
  await order(kept, "Kept.", { op: "write", content: "Ada keeps bees." });
  const { turnId } = await gone.say(
    `LEARN:${JSON.stringify([{ op: "write", content: "Ada keeps herons." }])}`,
  );
  await gone.ended(turnId);
  skipInvariants(gone);
  expect((await request(gone.path, { method: "DELETE" })).ok).toBe(true);
  // Once the index has no trace of the conversation, later messages of the same outbox have been delivered.
  await expect
    .poll(async () => (await request(`/api/agents/${agent}/conversations`)).text(), { timeout: 20_000 })
    .not.toContain(gone.id);
  await order(kept, "Still.", { op: "write", content: "Ada is well." });
  expect(await textsOf(agent)).toEqual(["Ada keeps bees.", "Ada is well."]);
});
