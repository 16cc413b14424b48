/** Erased sources, with notices and learned memories in any order, and the amount that one commit erases. */
import { describe, expect, test } from "vitest";
import { Mailbox } from "../../src/agents/base/mailbox/mailbox.ts";
import type { MailboxPorts } from "../../src/agents/base/mailbox/ports.ts";
import { eraseMore, eraseSources } from "../../src/memory/corpus/erasures.ts";
import type { ErasedSources } from "../../src/memory/corpus/schemas.ts";
import { erasedSourcesSchema, extractedSchema } from "../../src/memory/corpus/schemas.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import type { ActorAddress, Envelope } from "../../src/protocol/envelope.ts";
import type { Answer } from "../../src/protocol/mailbox-api.ts";
import {
  type ExtractedMemories,
  MEMORY_EXTRACTED,
  MEMORY_SOURCES_ERASED,
  type MemoryWriter,
} from "../../src/protocol/memory.ts";
import type { MemoryOutcome, MemorySource } from "../../src/protocol/memory-schemas.ts";
import type { Json } from "../../src/shared/json.ts";
import { operationIdAt } from "../support/mail-world.ts";
import { EDITOR, MemoryWorld, WRITER } from "../support/memory-world.ts";

const ONE: MemorySource = { conversationId: "conv_1", turnId: "turn_1" };
const REFUSED = { code: "CONFLICT", message: expect.stringContaining("was erased") };

function learned(content: string, source: MemorySource = ONE, operationId = "op_1"): ExtractedMemories {
  return {
    ...{ operationId, scope: "user", source, used: [], time: "2025-06-01T10:00:00.000Z" },
    subject: { userId: "ada", conversationId: source.conversationId },
    operations: [{ op: "write", content }],
  };
}

async function extract(world: MemoryWorld, given: ExtractedMemories): Promise<MemoryOutcome[]> {
  const body = extractedSchema.parse(given);
  const prepared = await world.extractions.prepare(body);
  return world.corpus.ports.database.transaction(() => world.extractions.apply(body, prepared).outcomes);
}

const erase = (world: MemoryWorld, erased: ErasedSources) =>
  world.corpus.ports.database.transaction(() => void eraseSources(world.corpus, erased));

const from = (...sources: MemorySource[]): MemoryWriter => ({ ...WRITER, sources });

/** The mailbox of a conversation, and the mailbox of an agent with the memory of a world. */
function mailboxes(world: MemoryWorld) {
  const received: string[] = [];
  const answers: Answer[] = [];
  const lost: string[] = [];
  const ports = (self: ActorAddress): MailboxPorts => {
    const database = new NodeSqlDatabase();
    return {
      ...{ database, keyValue: new NodeKeyValue(database), clock: world.clock, self: () => self },
      checkStorage: () => undefined,
      whenArmed: async () => undefined,
      arm: async () => undefined,
      directory: () => null,
      deliver: async (envelope, attempt) => {
        if (lost.shift() === envelope.type) throw new Error("The connection is broken.");
        received.push(envelope.type);
        const answer = await agent.receive(structuredClone(envelope), { ...attempt });
        answers.push(answer);
        return answer;
      },
    };
  };
  const { database, keyValue } = world.corpus.ports;
  const to: ActorAddress = { kind: "agent", tenant: "acme", id: "keeper" };
  const agent = new Mailbox({ ...ports(to), database, keyValue });
  agent.receivesAfter(
    MEMORY_EXTRACTED,
    extractedSchema,
    (body) => world.extractions.prepare(body),
    // SAFETY: outcomes are plain data.
    (body, _, prepared) => world.extractions.apply(body, prepared).outcomes as unknown as Json,
  );
  agent.receives(MEMORY_SOURCES_ERASED, erasedSourcesSchema, (body) => {
    void eraseSources(world.corpus, body);
    return null;
  });
  const conversation = new Mailbox(ports({ kind: "conversation", tenant: "acme", id: "conv_1" }));
  const send = (type: Envelope["type"], body: object, tail: string) =>
    // SAFETY: the bodies of these tests are plain data.
    conversation.send({ operationId: operationIdAt(world.clock.now(), tail), to, type, body: body as Json });
  return { conversation, send, received, answers, lost };
}

describe("MEMSRC-5 content from an erased source", () => {
  test.each([0, 1])(
    "with %i memories before, an extraction that arrives after the notice of the deletion teaches no memory",
    async (before) => {
      const world = new MemoryWorld();
      if (before > 0) await world.corpus.write(WRITER, [{ content: "Ada has a dog." }]);
      const { conversation, send, received, answers, lost } = mailboxes(world);
      lost.push(MEMORY_EXTRACTED);
      await send(MEMORY_EXTRACTED, learned("Ada likes tea."), "A");
      await send(MEMORY_SOURCES_ERASED, { conversationId: "conv_1" }, "B");
      await expect
        .poll(async () => {
          await world.clock.advance(10_000);
          conversation.wake();
          return received;
        })
        .toEqual([MEMORY_SOURCES_ERASED, MEMORY_EXTRACTED]);
      await expect.poll(() => answers).toHaveLength(2);
      expect(answers[1]).toMatchObject({ type: "done", result: [{ status: "refused", ...REFUSED }] });
      expect((await world.corpus.list(EDITOR)).items).toHaveLength(before);
    },
  );

  test("is refused in every write, and content from other sources is accepted", async () => {
    const world = new MemoryWorld();
    const [memory] = await world.corpus.write(WRITER, [{ content: "Ada likes tea." }]);
    const id = memory?.id ?? "";
    const two = { conversationId: "conv_2", turnId: "turn_2" };
    erase(world, { conversationId: "conv_1" });
    erase(world, { conversationId: "conv_2", turns: [{ turnId: "turn_2", entries: [4, 5] }] });
    for (const sources of [
      [ONE],
      [two],
      [{ ...two, entries: [3, 5] }],
      [{ ...two, turnId: "turn_3" }, ONE],
    ]) {
      const writer = from(...sources);
      await expect(world.corpus.write(writer, [{ content: "x" }])).rejects.toMatchObject(REFUSED);
      await expect(world.corpus.update(writer, id, { content: "x" })).rejects.toMatchObject(REFUSED);
      await expect(world.corpus.archive(writer, id)).rejects.toMatchObject(REFUSED);
    }
    expect(await extract(world, learned("x", two))).toMatchObject([{ status: "refused", ...REFUSED }]);
    for (const source of [
      { ...two, entries: [3] },
      { ...two, turnId: "turn_3" },
    ])
      await world.corpus.write(from(source), [{ content: "x" }]);
    erase(world, {
      conversationId: "conv_2",
      turns: [{ turnId: "turn_2", entries: [3] }, { turnId: "turn_4" }],
    });
    for (const source of [
      { ...two, entries: [3] },
      { ...two, turnId: "turn_4", entries: [1] },
    ])
      await expect(world.corpus.write(from(source), [{ content: "x" }])).rejects.toMatchObject(REFUSED);
    expect(world.rows("memory_erased")).toHaveLength(3);
  });
});

describe("MEMSRC-4 erasing many memories", () => {
  const COUNT = 350;

  async function filled() {
    const world = new MemoryWorld();
    for (let at = 0; at < COUNT; at += 50) {
      const inputs = Array.from({ length: 50 }, (_, n) => ({
        content: `Ada's harbour number ${at + n}.`,
        key: `${at + n}`,
      }));
      await world.corpus.write(from(ONE), inputs);
    }
    await world.corpus.write(from(ONE, { conversationId: "conv_2", turnId: "turn_2" }), [
      { content: "Ada's harbour." },
    ]);
    return world;
  }

  test("they are unreadable from the first commit on, and each commit erases a hundred", async () => {
    const world = await filled();
    const { corpus } = world;
    const { items } = await corpus.list(EDITOR, { limit: 200 });
    const erased: number[] = [];
    const left = () => world.rows("memories").length;
    erase(world, { conversationId: "conv_1" });
    erased.push(COUNT + 1 - left());
    expect((await corpus.list(EDITOR)).items).toEqual([]);
    expect((await corpus.search(EDITOR, { query: "harbour" })).matches).toEqual([]);
    await expect(corpus.read(EDITOR, items[120]?.id ?? "")).rejects.toMatchObject({ code: "NOT_FOUND" });
    const [again] = await corpus.write(WRITER, [{ content: "Another text.", key: "300" }]);
    expect(again?.version).toBe(1);
    world.wake();
    for (let more = true; more; ) {
      const before = left();
      more = await eraseMore(world.corpus);
      erased.push(before - left());
    }
    expect(erased).toEqual([100, 100, 100, 50]);
    expect(world.rows("memories").map(({ content, hidden }) => [content, hidden])).toEqual([
      ["Ada's harbour.", 1],
      ["Another text.", 0],
    ]);
    expect(world.rows("memory_tombstones")).toHaveLength(COUNT);
    expect(world.rows("memory_rederive")).toHaveLength(1);
    expect(await eraseMore(world.corpus)).toBe(false);
  });
});

test("MEMSRC-4 memories that wait for their erasure do not displace search results", async () => {
  const world = new MemoryWorld();
  const { corpus } = world;
  const about = (n: number) => ({ content: `Ada's harbour number ${n}, a harbour.` });
  for (let at = 0; at < 150; at += 50)
    await corpus.write(
      from(ONE),
      Array.from({ length: 50 }, (_, n) => about(at + n)),
    );
  await corpus.write(WRITER, [{ content: "Some of the ships of her family are in the other harbour." }]);
  const query = { query: "harbour number", limit: 5 };
  expect((await corpus.search(EDITOR, query)).matches).toHaveLength(5);
  erase(world, { conversationId: "conv_1" });
  expect(corpus.rows.memories.hasCondemned()).toBe(true);
  const { matches } = await corpus.search(EDITOR, query);
  expect(matches.map(({ memory }) => memory.content)).toEqual([
    "Some of the ships of her family are in the other harbour.",
  ]);
  expect((await corpus.search(EDITOR, { ...query, type: "note" })).matches).toEqual([]);
});

test("MEMSRC-1 entries of one turn that are named twice all go", async () => {
  for (const entries of [[1], [5]]) {
    const world = new MemoryWorld();
    await world.corpus.write(from({ ...ONE, entries }), [{ content: "Ada likes tea." }]);
    erase(world, {
      conversationId: "conv_1",
      turns: [
        { turnId: "turn_1", entries: [1] },
        { turnId: "turn_1", entries: [5] },
      ],
    });
    expect((await world.corpus.list(EDITOR)).items).toEqual([]);
  }
});

test("MEMSRC-1 a chain of thousands of summaries is removed with the first", async () => {
  const world = new MemoryWorld();
  const { corpus } = world;
  const derived: MemoryWriter = { ...WRITER, author: { kind: "consolidation" } };
  const memories = await corpus.write({ ...derived, sources: [ONE] }, [{ content: "Ada's harbour." }]);
  for (let at = 0; at < 5_000; at += 100) {
    const inputs = Array.from({ length: 100 }, (_, n) => ({ content: `A summary, ${at + n}.` }));
    memories.push(...(await corpus.write(derived, inputs)));
  }
  corpus.ports.database.transaction(() => {
    for (const [n, { id }] of memories.entries())
      if (n < 5_000) corpus.rows.memories.addPart(n + 2, { n: n + 1, id });
  });
  erase(world, { conversationId: "conv_1" });
  expect(world.rows("memories")).toEqual([]);
  expect(world.rows("memory_tombstones")).toHaveLength(5_001);
});

test("MEMSRC-2 the older texts of a log are blanked once, however many sources go", async () => {
  const world = new MemoryWorld();
  const sources = Array.from({ length: 6 }, (_, n) => ({ ...ONE, turnId: `turn_${n}` }));
  const [memory] = await world.corpus.write(from(...sources), [{ content: "Text 0." }]);
  const id = memory?.id ?? "";
  for (let n = 1; n <= 150; n++) await world.corpus.update(WRITER, id, { content: `Text ${n}.` });
  const { log } = await world.corpus.why(EDITOR, id);
  expect([log.length, log[0]?.version, log.at(-1)?.version]).toEqual([100, 151, 52]);
  const { database } = world.corpus.ports;
  const changes = () => database.all<{ n: number }>("SELECT total_changes() AS n")[0]?.n ?? 0;
  const rows = sources.map(({ turnId }) => {
    const before = changes();
    erase(world, { conversationId: "conv_1", turns: [{ turnId }] });
    return changes() - before;
  });
  expect(rows[0]).toBeGreaterThan(150);
  expect(Math.max(...rows.slice(1))).toBeLessThan(20);
  expect(JSON.stringify(world.rows("memory_log"))).not.toContain("Text 9");
});
