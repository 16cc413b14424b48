import { describe, expect, test } from "vitest";
import { eraseSources } from "../../src/memory/corpus/erasures.ts";
import type { ErasedSources } from "../../src/memory/corpus/schemas.ts";
import { extractedSchema } from "../../src/memory/corpus/schemas.ts";
import type { ExtractedMemories, MemoryOperation, MemoryReader } from "../../src/protocol/memory.ts";
import { EDITOR, MemoryWorld, WRITER } from "../support/memory-world.ts";

const TIME = "2025-06-01T10:00:00.000Z";
const reader: MemoryReader = { scope: "user", userId: "ada", conversationId: "conv_1" };

function handOver(operations: MemoryOperation[], more: Partial<ExtractedMemories> = {}): ExtractedMemories {
  return {
    operationId: "op_1",
    scope: "user",
    subject: { userId: "ada", conversationId: "conv_1" },
    source: { conversationId: "conv_1", turnId: "turn_1" },
    time: TIME,
    used: [],
    operations,
    ...more,
  };
}

/** Applies an extraction of a conversation, as the mailbox does. */
async function extract(world: MemoryWorld, given: ExtractedMemories) {
  const body = extractedSchema.parse(JSON.parse(JSON.stringify(given)));
  const prepared = await world.extractions.prepare(body);
  return world.corpus.ports.database.transaction(() => world.extractions.apply(body, prepared).outcomes);
}

const erase = (world: MemoryWorld, erased: ErasedSources) =>
  world.corpus.ports.database.transaction(() => void eraseSources(world.corpus, erased));

const TEA: MemoryOperation = { op: "write", content: "Ada likes tea." };

describe("EXTRACTED-1 once, each with an outcome", () => {
  test("a repeated extraction applies once, and has the same outcomes", async () => {
    const world = new MemoryWorld();
    const operations: MemoryOperation[] = [TEA, { op: "delete", memoryId: "mem_x" }];
    const first = await extract(world, handOver(operations));
    expect(first).toMatchObject([
      { status: "applied", version: 1 },
      { status: "refused", code: "NOT_FOUND" },
    ]);
    expect(await extract(world, handOver(operations))).toEqual(first);
    const { items } = await world.corpus.list(EDITOR);
    expect(items).toMatchObject([
      {
        content: "Ada likes tea.",
        time: TIME,
        validFrom: TIME,
        subject: { userId: "ada", conversationId: "conv_1" },
      },
    ]);
    expect(await world.corpus.why(reader, items[0]?.id ?? "")).toMatchObject({
      sources: [{ conversationId: "conv_1", turnId: "turn_1" }],
      log: [{ change: "written", by: { kind: "extraction", conversationId: "conv_1", turnId: "turn_1" } }],
    });
  });

  test.each<[string, unknown, string]>([
    ["an unknown operation", { op: "replace", content: "x" }, "INVALID_INPUT"],
    ["no operation", "write", "INVALID_INPUT"],
    ["an empty text", { op: "write", content: " " }, "INVALID_INPUT"],
    ["a text above 256 KiB", { op: "write", content: "x".repeat(256 * 1024 + 1) }, "TOO_LARGE"],
    ["a made-up id", { op: "update", memoryId: "mem_01ARZ3NDEKRRFFQ69G50000001", content: "x" }, "NOT_FOUND"],
    [
      "a memory derived from a memory that was not offered",
      { op: "write", content: "y", derivedFrom: ["mem_1"] },
      "NOT_FOUND",
    ],
  ])("%s is refused, and the others apply", async (_, operation, code) => {
    const world = new MemoryWorld();
    // SAFETY: what is not valid is the subject of the test.
    const outcomes = await extract(world, handOver([operation as MemoryOperation, TEA]));
    expect(outcomes).toMatchObject([{ status: "refused", code }, { status: "applied" }]);
    expect((await world.corpus.list(EDITOR)).items).toHaveLength(1);
  });

  test("an extraction from a document is marked as tainted", async () => {
    const world = new MemoryWorld();
    await extract(world, handOver([TEA], { tainted: true }));
    expect((await world.corpus.list(EDITOR)).items).toMatchObject([{ tainted: true }]);
  });
});

describe("EXTRACTED-2 offered memories", () => {
  async function offered() {
    const world = new MemoryWorld();
    const subject = { userId: "ada" };
    const [tea, dog] = await world.corpus.write(WRITER, [
      { content: "Ada likes tea.", subject },
      { content: "Ada has a dog.", subject },
    ]);
    const offer = await world.extractions.offer(reader, { operationId: "op_1", query: "tea" });
    expect(offer).toMatchObject([{ id: tea?.id, version: 1, content: "Ada likes tea.", type: "fact" }]);
    return { world, tea: tea?.id ?? "", dog: dog?.id ?? "" };
  }

  test("changes at the version that was seen apply, one after another too", async () => {
    const { world, tea } = await offered();
    const outcomes = await extract(
      world,
      handOver([
        {
          op: "update",
          memoryId: tea,
          content: "Ada hates tea.",
          time: TIME,
          validFrom: "2026-01-01T00:00:00Z",
        },
        { op: "update", memoryId: tea, significance: 0.9 },
        { op: "archive", memoryId: tea },
      ]),
    );
    expect(outcomes.map(({ status }) => status)).toEqual(["applied", "applied", "applied"]);
    expect(await world.corpus.read(EDITOR, tea)).toMatchObject({
      content: "Ada hates tea.",
      significance: 0.9,
      state: "archived",
      version: 4,
    });
  });

  test("memories that were not offered are not changed, though they are there", async () => {
    const { world, dog } = await offered();
    expect(await extract(world, handOver([{ op: "delete", memoryId: dog }]))).toMatchObject([
      { status: "refused", code: "NOT_FOUND" },
    ]);
    expect(await world.corpus.read(EDITOR, dog)).toMatchObject({ version: 1 });
  });

  test("a version that somebody has changed since is refused", async () => {
    const { world, tea } = await offered();
    await world.corpus.update(WRITER, tea, { content: "Ada likes green tea." });
    expect(await extract(world, handOver([{ op: "update", memoryId: tea, content: "No." }]))).toMatchObject([
      { status: "refused", code: "CONFLICT" },
    ]);
    expect(await world.corpus.read(EDITOR, tea)).toMatchObject({ content: "Ada likes green tea." });
  });

  test("a repeated offer is the same, without later changes", async () => {
    const { world, tea } = await offered();
    await world.corpus.write(WRITER, [{ content: "More about tea.", subject: { userId: "ada" } }]);
    const again = () => world.extractions.offer(reader, { operationId: "op_1", query: "tea" });
    expect((await again()).map(({ id }) => id)).toEqual([tea]);
    await world.corpus.update(WRITER, tea, { content: "Changed." });
    expect(await again()).toEqual([]);
  });

  test("no memory of another user is offered", async () => {
    const { world } = await offered();
    const bob: MemoryReader = { scope: "user", userId: "bob" };
    expect(await world.extractions.offer(bob, { operationId: "op_2", query: "tea dog Ada" })).toEqual([]);
  });
});

describe("EXTRACTED-3 one fact", () => {
  const from = (index: number, scope: "agent" | "user" | "conversation" = "user") => ({
    operationId: `op_${index}`,
    scope,
    subject: { userId: "ada", conversationId: `conv_${index}` },
    source: { conversationId: `conv_${index}`, turnId: `turn_${index}` },
  });

  test("20 conversations at once give one row with 20 sources", async () => {
    const world = new MemoryWorld();
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        extract(
          world,
          handOver([{ op: "write", content: index % 2 ? "Ada likes tea." : " ada  likes TEA" }], from(index)),
        ),
      ),
    );
    const statuses = outcomes.flat().map(({ status }) => status);
    expect(statuses.sort()).toEqual(["applied", ...Array.from({ length: 19 }, () => "unchanged")]);
    const { items } = await world.corpus.list(EDITOR);
    expect(items).toHaveLength(1);
    expect((await world.corpus.why(EDITOR, items[0]?.id ?? "")).sources).toHaveLength(20);
  });

  test("users do not share a row, and in the scope of conversations each conversation has its own row", async () => {
    const world = new MemoryWorld();
    await extract(world, handOver([TEA], from(1, "conversation")));
    await extract(world, handOver([TEA], from(2, "conversation")));
    await extract(world, handOver([TEA], { ...from(3), subject: { userId: "bob" } }));
    expect((await world.corpus.list(EDITOR)).items).toHaveLength(3);
  });

  test("a key is one memory of its user, and an older statement does not end a newer statement", async () => {
    const world = new MemoryWorld();
    const home = (content: string): MemoryOperation => ({ op: "write", key: "home", content });
    await extract(world, handOver([home("Rome")], { ...from(1), time: "2025-03-01T00:00:00Z" }));
    const older = await extract(
      world,
      handOver([home("Oslo")], { ...from(2), time: "2024-03-01T00:00:00Z" }),
    );
    expect(older).toMatchObject([{ status: "applied", version: 2 }]);
    const { items } = await world.corpus.list(EDITOR);
    expect(items).toMatchObject([{ content: "Rome" }]);
    expect((await world.corpus.why(EDITOR, items[0]?.id ?? "")).log[0]).toMatchObject({
      change: "ended",
      before: { content: "Oslo", validTo: "2025-03-01T00:00:00.000Z" },
    });
  });
});

describe("EXTRACTED-4 erased texts", () => {
  async function erased() {
    const world = new MemoryWorld();
    await extract(world, handOver([TEA]));
    const id = (await world.corpus.list(EDITOR)).items[0]?.id ?? "";
    await world.corpus.delete(WRITER, id);
    return { world, id };
  }

  test("an extraction does not restore it, but the user's own words do", async () => {
    const { world } = await erased();
    const again = handOver(
      [
        { op: "write", content: "ADA likes tea" },
        { op: "write", content: "Ada has a cat." },
      ],
      {
        operationId: "op_2",
      },
    );
    expect(await extract(world, again)).toMatchObject([
      { status: "refused", code: "CONFLICT" },
      { status: "applied" },
    ]);
    const bobs = handOver([TEA], { operationId: "op_3", subject: { userId: "bob" } });
    expect(await extract(world, bobs)).toMatchObject([{ status: "applied" }]);
    await world.corpus.write({ ...WRITER, subject: { userId: "ada" } }, [{ content: "Ada likes tea." }]);
    expect(
      (await world.corpus.list({ scope: "user", userId: "ada" })).items.map(({ content }) => content),
    ).toEqual(["Ada has a cat.", "Ada likes tea."]);
  });

  test("blocks all that a turn says if it recalled the memory", async () => {
    const { world, id } = await erased();
    const later = handOver([{ op: "write", content: "Something else." }], {
      operationId: "op_2",
      used: [id],
    });
    expect(await extract(world, later)).toMatchObject([{ status: "refused", code: "CONFLICT" }]);
    expect((await world.corpus.list(EDITOR)).items).toEqual([]);
  });
});

describe("MEMSRC-1 MEMSRC-3 sources that are erased", () => {
  const sourcesIn = (conversationId: string, turnId: string, entries?: number[]) => ({
    operationId: `op_${conversationId}_${turnId}`,
    subject: { userId: "ada", conversationId },
    source: { conversationId, turnId, ...(entries && { entries }) },
  });

  test("a memory with no source left is erased; one with another leaves searches until it is derived again", async () => {
    const world = new MemoryWorld();
    await extract(
      world,
      handOver([TEA, { op: "write", content: "Ada has a tea shop." }], sourcesIn("conv_1", "turn_1")),
    );
    await extract(world, handOver([TEA], sourcesIn("conv_2", "turn_2")));
    const [tea, shop] = (await world.corpus.list(EDITOR)).items;
    erase(world, { conversationId: "conv_1" });
    await expect(world.corpus.read(EDITOR, shop?.id ?? "")).rejects.toMatchObject({ code: "NOT_FOUND" });
    expect((await world.corpus.search(EDITOR, { query: "tea" })).matches).toEqual([]);
    expect(world.rows("memory_sources")).toMatchObject([{ conversation_id: "conv_2", turn_id: "turn_2" }]);
    for (const way of ["read", "why"] as const)
      await expect(world.corpus[way](EDITOR, tea?.id ?? "")).rejects.toMatchObject({ code: "NOT_FOUND" });
    expect((await world.corpus.list(EDITOR)).items, "MEMSRC-3").toEqual([]);
    await world.repair();
    expect([...world.records.rows], "MEMSRC-3").toEqual([]);
    expect(world.rows("memory_rederive")).toHaveLength(1);
    erase(world, { conversationId: "conv_2" });
    expect((await world.corpus.list(EDITOR)).items).toEqual([]);
    expect(world.rows("memory_log")).toEqual([]);
  });

  test("entries of a turn affect the memories that come from them, or from the turn as a whole", async () => {
    const world = new MemoryWorld();
    await extract(world, handOver([{ op: "write", content: "a" }], sourcesIn("conv_1", "turn_1", [1, 2])));
    await extract(world, handOver([{ op: "write", content: "b" }], sourcesIn("conv_1", "turn_2", [1, 3])));
    await extract(world, handOver([{ op: "write", content: "c" }], sourcesIn("conv_1", "turn_3")));
    await extract(world, handOver([{ op: "write", content: "d" }], sourcesIn("conv_2", "turn_3")));
    erase(world, {
      conversationId: "conv_1",
      turns: [
        { turnId: "turn_1", entries: [3] },
        { turnId: "turn_2", entries: [3] },
        { turnId: "turn_3", entries: [9] },
      ],
    });
    expect((await world.corpus.list(EDITOR)).items.map(({ content }) => content)).toEqual(["a", "d"]);
  });

  test("a memory derived from an erased memory is removed with it, unless other parts remain", async () => {
    const world = new MemoryWorld();
    await extract(world, handOver([{ op: "write", content: "part one" }], sourcesIn("conv_1", "turn_1")));
    await extract(world, handOver([{ op: "write", content: "part two" }], sourcesIn("conv_2", "turn_2")));
    const parts = (await world.extractions.offer(EDITOR, { operationId: "op_join", query: "part" })).map(
      ({ id }) => id,
    );
    const join = handOver([{ op: "write", content: "the whole", derivedFrom: parts }], {
      operationId: "op_join",
    });
    expect(
      await extract(world, { ...join, source: { conversationId: "conv_1", turnId: "turn_9" } }),
    ).toMatchObject([{ status: "applied" }]);
    const whole = (await world.corpus.search(EDITOR, { query: "whole" })).matches[0]?.memory.id ?? "";
    const why = await world.corpus.why(EDITOR, whole);
    expect([...why.derivedFrom].sort()).toEqual([...parts].sort());
    erase(world, { conversationId: "conv_1" });
    expect((await world.corpus.search(EDITOR, { query: "whole" })).matches).toEqual([]);
    expect(world.rows("memories")).toMatchObject([
      { content: "part two" },
      { content: "the whole", hidden: 1 },
    ]);
    erase(world, { conversationId: "conv_2" });
    await expect(world.corpus.read(EDITOR, whole)).rejects.toMatchObject({ code: "NOT_FOUND" });
  });
});
