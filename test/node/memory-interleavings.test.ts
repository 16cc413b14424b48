/** Changes of a memory between two steps of its copies, of an extraction or of its upkeep. */
import { setImmediate } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineLibrary } from "../../src/library/define/define.ts";
import { defineTask } from "../../src/library/define/define-task.ts";
import { LATE_MS } from "../../src/memory/corpus/copies.ts";
import { extractedSchema } from "../../src/memory/corpus/schemas.ts";
import type {
  ExtractedMemories,
  MemoryOperation,
  MemoryReader,
  MemoryWriter,
} from "../../src/protocol/memory.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import { EDITOR, MemoryWorld, WRITER } from "../support/memory-world.ts";
import { HOUR, UpkeepWorld } from "../support/upkeep-world.ts";

const LONG = "All that was said about the harbour. ".repeat(200);

describe("copies", () => {
  test("MEMCOPY-1 a change while a record is written keeps its mark, and is copied next", async () => {
    const world = new MemoryWorld();
    const [memory] = await world.corpus.write(WRITER, [{ content: "one" }]);
    const id = memory?.id ?? "";
    const write = world.records.write.bind(world.records);
    world.records.write = async (...given) => {
      await write(...given);
      world.records.write = write;
      await world.corpus.update(WRITER, id, { content: "two" });
    };
    await world.copies.bringUpToDate();
    expect(world.records.rows.get(id)).toMatchObject({ content: "one" });
    expect(world.copies.isBehind()).toBe(true);
    await world.copies.bringUpToDate();
    expect(world.records.rows.get(id)).toMatchObject({ content: "two", version: 2 });
    expect(world.copies.isBehind()).toBe(false);
  });

  test("MEMCOPY-4 a record that a late request writes after its deletion is deleted again", async () => {
    const world = new MemoryWorld();
    world.moods.records = "late";
    const [memory] = await world.corpus.write(WRITER, [{ content: "short" }]);
    await expect(world.copies.bringUpToDate()).rejects.toMatchObject({ code: "UNAVAILABLE" });
    await world.corpus.delete(WRITER, memory?.id ?? "");
    world.moods.records = "well";
    await expect(world.copies.bringUpToDate()).rejects.toMatchObject({ code: "UNAVAILABLE" });
    await world.settle();
    expect(world.records.rows.size).toBe(1);
    await world.clock.advance(LATE_MS);
    await world.copies.bringUpToDate();
    expect(world.records.rows.size).toBe(0);
    expect(world.copies.isBehind()).toBe(false);
  });

  test("MEMCOPY-2 at no time does a record refer to an object that is not there", async () => {
    const world = new MemoryWorld();
    const dangling = () => [...world.records.rows.values()].filter(({ ref }) => ref && !world.keys.has(ref));
    const seen: unknown[] = [];
    const write = world.records.write.bind(world.records);
    world.records.write = async (...given) => {
      await write(...given);
      seen.push(...dangling());
    };
    const put = world.objects.put.bind(world.objects);
    world.objects.put = async (...given) => {
      await setImmediate();
      await put(...given);
    };
    const [memory] = await world.corpus.write(WRITER, [{ content: LONG }]);
    const id = memory?.id ?? "";
    await world.copies.bringUpToDate();
    const first = world.records.rows.get(id)?.ref;
    expect([...world.keys]).toEqual([first]);
    await world.corpus.update(WRITER, id, { content: `${LONG}!` });
    world.moods.records = "down";
    await expect(world.copies.bringUpToDate()).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(world.keys.has(first ?? "")).toBe(true);
    world.moods.records = "well";
    await world.repair();
    expect(world.keys.has(first ?? "")).toBe(false);
    expect(world.records.rows.get(id)).toMatchObject({ version: 2, content: "" });
    expect([...seen, ...dangling()]).toEqual([]);
  });

  test("a change of an agent that is deleted during it is not stored", async () => {
    const { corpus } = new MemoryWorld();
    const writing = corpus.write(WRITER, [{ content: "one" }]);
    Object.assign(corpus.ports, {
      agent: () => {
        throw new DramatisError("NOT_FOUND", "The agent was deleted.");
      },
    });
    await expect(writing).rejects.toMatchObject({ code: "NOT_FOUND" });
    expect(corpus.exists).toBe(false);
  });
});

describe("extractions that update", () => {
  const reader: MemoryReader = { scope: "user", userId: "ada", conversationId: "conv_1" };

  async function extract(world: MemoryWorld, operationId: string, operations: MemoryOperation[], more = {}) {
    const given: ExtractedMemories = {
      ...{ operationId, scope: "user", time: "2025-06-01T10:00:00.000Z", used: [], operations },
      subject: { userId: "ada", conversationId: "conv_1" },
      source: { conversationId: "conv_1", turnId: "turn_1" },
      ...more,
    };
    const body = extractedSchema.parse(given);
    const prepared = await world.extractions.prepare(body);
    return world.corpus.ports.database.transaction(() => world.extractions.apply(body, prepared).outcomes);
  }

  test("MEMTAINT-1 taint if their turn is tainted, whatever they change", async () => {
    const world = new MemoryWorld();
    await extract(world, "op_1", [{ op: "write", content: "Ada likes tea." }]);
    const [offered] = await world.extractions.offer(reader, { operationId: "op_2", query: "tea" });
    const update: MemoryOperation = { op: "update", memoryId: offered?.id ?? "", type: "preference" };
    expect(await extract(world, "op_2", [update], { tainted: true })).toMatchObject([{ status: "applied" }]);
    expect((await world.corpus.list(EDITOR)).items).toMatchObject([{ type: "preference", tainted: true }]);
  });

  test("EXTRACTED-4 do not restore an erased text in another memory", async () => {
    const world = new MemoryWorld();
    await extract(world, "op_1", [
      { op: "write", content: "Ada likes tea." },
      { op: "write", content: "Ada has a cat." },
    ]);
    const [tea, cat] = (await world.corpus.list(EDITOR)).items;
    await world.corpus.delete(WRITER, tea?.id ?? "");
    await world.extractions.offer(reader, { operationId: "op_2", query: "cat" });
    const update: MemoryOperation = { op: "update", memoryId: cat?.id ?? "", content: "ada LIKES tea" };
    expect(await extract(world, "op_2", [update])).toMatchObject([{ status: "refused", code: "CONFLICT" }]);
    expect((await world.corpus.list(EDITOR)).items).toMatchObject([
      { content: "Ada has a cat.", version: 1 },
    ]);
  });
});

describe("upkeep", () => {
  type Part = { id: string; content: string };
  const editor: MemoryReader = { principal: { subject: "ann", tenant: "test", roles: ["author"] } };
  const writer: MemoryWriter = { reader: editor, author: { kind: "principal", subject: "ann" } };

  function joining(
    execute: (memories: Part[], call: number) => unknown,
    effect: "idempotent" | "once" = "idempotent",
  ) {
    let calls = 0;
    const join = defineTask({
      id: "join",
      input: z.looseObject({ memories: z.array(z.looseObject({ id: z.string(), content: z.string() })) }),
      effect,
      execute: ({ memories }) => execute(memories, ++calls),
    });
    const memory = { consolidation: { minimum: 3, by: { task: "my/join" } } };
    const world = new UpkeepWorld(memory, [defineLibrary("my", { tasks: [join] })]);
    return { world, calls: () => calls };
  }

  const episodes = ["Rome", "Oslo", "Bonn"].map((place) => ({
    content: `Went to ${place}.`,
    type: "episode",
  }));

  test("EXTRACTED-4 a consolidation does not restore an erased text, as a summary or as an update", async () => {
    const { world, calls } = joining(([first]) => [
      { op: "write", content: "ann WALKS" },
      { op: "update", memoryId: first?.id, content: "ann WALKS" },
    ]);
    const [erased] = await world.write({ content: "Ann walks." });
    await world.corpus.delete(writer, erased?.id ?? "");
    await world.write(...episodes);
    await world.pass(2 * HOUR);
    expect(calls()).toBe(1);
    const texts = await world.texts("current", "ended", "archived");
    expect(texts).toEqual(episodes.map(({ content }) => content).sort());
  });

  test.each([
    ["idempotent", 3],
    ["once", 1],
  ] as const)(
    "UPKEEP-2 UPKEEP-3 a crash uses an attempt up: a task that is %s has %i",
    async (effect, attempts) => {
      const { world, calls } = joining(() => new Promise(() => undefined), effect);
      await world.write(...episodes);
      world.now += 2 * HOUR;
      for (let attempt = 1; attempt <= attempts; attempt++) {
        world.upkeep.wake();
        await expect.poll(calls).toBe(attempt);
        world.restart();
      }
      world.upkeep.wake();
      const state = () => world.keyValue.get<{ run?: unknown }>("memory:upkeep") ?? {};
      await expect.poll(() => "run" in state()).toBe(false);
      expect(calls()).toBe(attempts);
      expect(await world.texts("current")).toHaveLength(3);
    },
  );

  test.each(["changed", "erased"] as const)(
    "REDERIVE-2 a summary with a part that is %s during its rewrite is rewritten again from the current parts",
    async (what) => {
      const { world, calls } = joining(async (memories, call) => {
        if (call === 2) {
          const { id } = await world.byText("Bonn.");
          if (what === "erased") await world.corpus.delete(writer, id);
          else await world.corpus.update(writer, id, { significance: 0.9 });
        }
        return [{ op: "write", content: memories.map(({ content }) => content).join(" ") }];
      });
      for (const [index, { content, type }] of episodes.entries())
        await world.learn(`turn_${index}`, [{ op: "write", content, type }]);
      await world.pass(2 * HOUR);
      world.eraseSources({ conversationId: "conv_1", turns: [{ turnId: "turn_1" }] });
      await world.pass(1_000);
      await world.pass(1_000);
      expect(calls()).toBe(3);
      expect(await world.found("went")).toContain(
        what === "erased" ? "Went to Rome." : "Went to Rome. Went to Bonn.",
      );
      expect(world.database.all("SELECT n FROM memory_rederive")).toEqual([]);
    },
  );
});
