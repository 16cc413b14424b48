/** Retention, consolidation, and memories that lost a source: on a real database and executor, with a clock that tests set. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineLibrary } from "../../src/library/define/define.ts";
import { defineTask } from "../../src/library/define/define-task.ts";
import { ToolError } from "../../src/library/tools/tool-error.ts";
import type { MemoryReader } from "../../src/protocol/memory.ts";
import type { MemoryInput } from "../../src/protocol/memory-requests.ts";
import { ALL, DAY, HOUR, UpkeepWorld } from "../support/upkeep-world.ts";

const AUTHOR: MemoryReader = { principal: { subject: "ann", tenant: "test", roles: ["author"] } };

const episode = (content: string, more: Partial<MemoryInput> = {}): MemoryInput => ({
  ...{ content, type: "episode", subject: { userId: "ann" } },
  ...more,
});
const episodes = (count: number, more: Partial<MemoryInput> = {}) =>
  Array.from({ length: count }, (_, index) => episode(`Ann walked route ${index}.`, more));

describe("retention", () => {
  test("A59 RETAIN-1 without a setting no memory is removed: 1 000 writes stay 1 000 rows", async () => {
    const world = new UpkeepWorld();
    for (let batch = 0; batch < 10; batch++) {
      const contents = Array.from({ length: 100 }, (_, index) => ({ content: `Fact ${batch} ${index}` }));
      await world.write(...contents);
    }
    expect(await world.pass(3_650 * DAY)).toBeNull();
    expect(world.corpus.status()).toMatchObject({ memories: 1_000, archived: 0 });
  });

  test("A77 RETAIN-2 a type is archived or deleted so long after its last change, others stay", async () => {
    const world = new UpkeepWorld({
      retention: { mood: { days: 7, then: "delete" }, episode: { days: 30, then: "archive" } },
    });
    const [mood] = await world.write(
      { content: "Ann is merry.", type: "mood" },
      { content: "Ann is calm.", type: "mood" },
      { content: "Ann went to Rome.", type: "episode" },
      { content: "Ann likes tea.", type: "fact" },
    );
    await world.pass(6 * DAY);
    await world.corpus.update(
      { reader: AUTHOR, author: { kind: "principal", subject: "ann" } },
      mood?.id ?? "",
      {
        content: "Ann is very merry.",
      },
    );
    const wait = await world.pass(DAY + HOUR);
    expect(await world.texts("current")).toEqual([
      "Ann is very merry.",
      "Ann likes tea.",
      "Ann went to Rome.",
    ]);
    expect(wait).toBe(DAY);
    await world.pass(30 * DAY);
    expect(await world.texts("current")).toEqual(["Ann likes tea."]);
    expect(await world.texts("archived")).toEqual(["Ann went to Rome."]);
    expect(await world.found("Rome merry")).toEqual([]);
    const { log } = await world.corpus.why(ALL, (await world.byText("Rome")).id);
    expect(log[0]).toMatchObject({ change: "archived", by: { kind: "retention" } });
  });

  test("RETAIN-3 many memories are treated in bounded commits", async () => {
    const world = new UpkeepWorld({ retention: { episode: { days: 1, then: "delete" } } });
    for (let batch = 0; batch < 3; batch++) await world.write(...episodes(100, { metadata: { batch } }));
    const largest = { rows: 0 };
    const erase = world.corpus.rows.erase.bind(world.corpus.rows);
    let inCommit = 0;
    world.corpus.rows.erase = (...given) => {
      largest.rows = Math.max(largest.rows, ++inCommit);
      erase(...given);
    };
    const change = world.corpus.change.bind(world.corpus);
    world.corpus.change = (body) => {
      inCommit = 0;
      return change(body);
    };
    await world.pass(2 * DAY);
    expect(world.corpus.status().memories).toBe(0);
    expect(largest.rows).toBe(100);
  });

  test("RETAIN-4 a memory that retention deleted may be learned again", async () => {
    const world = new UpkeepWorld({ retention: { fact: { days: 1, then: "delete" } } });
    const write = { op: "write", content: "The user likes tea." } as const;
    await world.learn("turn_1", [write]);
    await world.pass(2 * DAY);
    expect(await world.texts("current")).toEqual([]);
    expect(await world.learn("turn_2", [write])).toMatchObject([{ status: "applied" }]);
  });

  test("UPKEEP-1 the agent's current persona counts", async () => {
    const world = new UpkeepWorld();
    await world.write(episode("Ann went to Rome."));
    expect(world.armed).toEqual([HOUR]);
    expect(await world.pass(DAY)).toBeNull();
    world.settings = { retention: { episode: { days: 1, then: "archive" } } };
    expect(await world.pass(HOUR)).toBeNull();
    await world.upkeep.personaChanged();
    await world.pass(HOUR);
    expect(await world.texts("archived")).toEqual(["Ann went to Rome."]);
  });
});

describe("consolidation", () => {
  const settings = { consolidation: { everyHours: 24, minimum: 3 } };

  test("B5 CONSOLIDATE-2 old episodes become an extract with their sources, and are archived, not deleted", async () => {
    const world = new UpkeepWorld(settings);
    for (const [index, place] of ["Rome", "Oslo", "Bonn"].entries())
      await world.learn(`turn_${index}`, [
        { op: "write", content: `The user went to ${place}.`, type: "episode" },
      ]);
    await world.learn("turn_9", [{ op: "write", content: "The user likes tea." }]);
    const wait = await world.pass(2 * HOUR);
    expect(wait).toBe(DAY);
    expect(await world.texts("archived")).toEqual([
      "The user went to Bonn.",
      "The user went to Oslo.",
      "The user went to Rome.",
    ]);
    const summary = await world.byText("Extract of 3");
    expect(summary).toMatchObject({ type: "summary", subject: { userId: "ann", conversationId: "conv_1" } });
    expect(summary.content).toContain("- 2026-01-01: The user went to Oslo.");
    const why = await world.corpus.why(ALL, summary.id);
    expect(why.sources.map(({ turnId }) => turnId)).toEqual(["turn_0", "turn_1", "turn_2"]);
    expect(why.derivedFrom).toHaveLength(3);
    expect(why.log).toMatchObject([{ change: "written", by: { kind: "consolidation" } }]);
    expect(await world.found("tea")).toEqual(["The user likes tea."]);
    expect(await world.found("Oslo")).toEqual([summary.content]);
  });

  test("CONSOLIDATE-3 subjects are never mixed", async () => {
    const world = new UpkeepWorld(settings);
    await world.write(
      ...episodes(3),
      ...["x", "y", "z"].map((name) => episode(`Bob met ${name}.`, { subject: { userId: "bob" } })),
      ...["k", "l"].map((name) => episode(`Cleo met ${name}.`, { subject: { userId: "cleo" } })),
      ...["1", "2", "3"].map((name) => episode(`Nobody's ${name}.`, { subject: {} })),
      ...["4", "5", "6"].map((name) =>
        episode(`Conversation's ${name}.`, { subject: { conversationId: "conv_7" } }),
      ),
    );
    await world.pass(2 * HOUR);
    const summaries = (await world.corpus.list(ALL, { type: "summary", limit: 50 })).items;
    expect(summaries.map(({ subject }) => subject)).toEqual([
      { userId: "ann" },
      { userId: "bob" },
      {},
      { conversationId: "conv_7" },
    ]);
    for (const [index, name] of ["Ann", "Bob"].entries())
      expect(summaries[index]?.content.match(/- \S+ \w+/g)).toEqual(Array(3).fill(`- 2026-01-01: ${name}`));
    expect(await world.texts("current")).toContain("Cleo met k.");
    const bob = { scope: "user", userId: "bob" } as const;
    expect(await world.found("Ann walked", bob)).toEqual([]);
  });

  test("CONSOLIDATE-3 in the scope of conversations each conversation has its own summaries", async () => {
    const world = new UpkeepWorld({ ...settings, scope: "conversation" });
    for (const conversationId of ["conv_1", "conv_2"])
      await world.write(...episodes(3, { subject: { userId: "ann", conversationId } }));
    await world.pass(2 * HOUR);
    expect((await world.corpus.list(ALL, { type: "summary" })).items.map(({ subject }) => subject)).toEqual([
      { userId: "ann", conversationId: "conv_1" },
      { userId: "ann", conversationId: "conv_2" },
    ]);
  });

  test("a summary of several conversations belongs to no conversation, and taint is kept", async () => {
    const world = new UpkeepWorld(settings);
    for (const [index, conversationId] of ["conv_1", "conv_2", "conv_3"].entries())
      await world.learn(`turn_${index}`, [{ op: "write", content: `Event ${index}.`, type: "episode" }], {
        subject: { userId: "ann", conversationId },
        ...(index === 1 && { tainted: true as const }),
      });
    await world.pass(2 * HOUR);
    expect(await world.byText("Extract")).toMatchObject({ subject: { userId: "ann" }, tainted: true });
  });

  test("UPKEEP-4 fewer than the minimum, and recent memories, wait; missed times run once", async () => {
    const world = new UpkeepWorld(settings);
    await world.write(...episodes(2));
    await world.pass(2 * HOUR);
    expect((await world.corpus.list(ALL, { type: "summary" })).items).toEqual([]);
    await world.write(episode("Ann slept."));
    expect(await world.pass(HOUR / 2)).toBe(DAY - HOUR / 2);
    await world.pass(40 * DAY);
    expect((await world.corpus.list(ALL, { type: "summary" })).items).toHaveLength(1);
    expect(await world.texts("current")).toHaveLength(1);
  });

  test("more than one consolidation holds are joined one after another", async () => {
    const world = new UpkeepWorld(settings);
    for (let batch = 0; batch < 5; batch++) await world.write(...episodes(100, { metadata: { batch } }));
    await world.pass(2 * HOUR);
    expect((await world.corpus.list(ALL, { type: "episode" })).items).toEqual([]);
    expect(world.corpus.status()).toMatchObject({ archived: 500 });
  });

  const joining = (
    execute: (input: { memories: { id: string; content: string }[] }, attempt: number) => unknown,
    effect: "idempotent" | "once" = "idempotent",
  ) => {
    const calls: string[] = [];
    const join = defineTask({
      id: "join",
      input: z.looseObject({ memories: z.array(z.looseObject({ id: z.string(), content: z.string() })) }),
      effect,
      execute(input, { operationId }) {
        calls.push(operationId);
        return execute(input, calls.length);
      },
    });
    const library = defineLibrary("my", { tasks: [join] });
    const memory = { consolidation: { ...settings.consolidation, by: { task: "my/join" } } };
    return { world: new UpkeepWorld(memory, [library]), calls };
  };

  test("CONSOLIDATE-7 a task of a library joins, and an invented id is refused", async () => {
    const { world } = joining(({ memories }) => ({
      operations: [
        {
          op: "write",
          content: "Ann walks.",
          type: "habit",
          derivedFrom: memories.slice(0, 2).map(({ id }) => id),
        },
        { op: "write", content: "Invented.", derivedFrom: ["mem_invented"] },
        { op: "update", memoryId: "mem_invented", content: "Invented." },
        { op: "update", memoryId: memories[2]?.id, content: "Ann ran." },
        { op: "nonsense" },
      ],
    }));
    await world.write(...episodes(3));
    await world.pass(2 * HOUR);
    expect(await world.texts("current")).toEqual(["Ann ran.", "Ann walks."]);
    expect(await world.texts("archived")).toEqual(["Ann walked route 0.", "Ann walked route 1."]);
    expect(await world.byText("walks")).toMatchObject({ type: "habit" });
  });

  test("UPKEEP-3 a task that fails is repeated under its operation id, and given up after three attempts", async () => {
    const { world, calls } = joining(() => {
      throw new ToolError("No.");
    });
    await world.write(...episodes(3));
    await world.pass(2 * HOUR);
    for (let minutes = 0; minutes < 30; minutes++) await world.pass(60_000);
    expect(calls).toHaveLength(3);
    expect(new Set(calls).size).toBe(1);
    expect(await world.texts("current")).toHaveLength(3);
    // The next run retries failed work.
    await world.pass(DAY);
    expect(calls).toHaveLength(4);
  });

  test("a `once` task has one attempt", async () => {
    const { world, calls } = joining(() => {
      throw new ToolError("No.", { retriable: true });
    }, "once");
    await world.write(...episodes(3));
    await world.pass(2 * HOUR);
    await world.pass(HOUR);
    expect(calls).toHaveLength(1);
  });

  test("UPKEEP-2 UPKEEP-5 a crash while the task runs repeats it, its memories are consolidated once, and no copy of a text is stored", async () => {
    const crash = Promise.withResolvers<unknown>();
    const { world, calls } = joining(({ memories }, attempt) =>
      attempt === 1
        ? crash.promise
        : [{ op: "write", content: "Ann walks.", derivedFrom: memories.map(({ id }) => id) }],
    );
    await world.write(...episodes(3));
    world.now += 2 * HOUR;
    world.upkeep.wake();
    await expect.poll(() => calls.length).toBe(1);
    expect(world.keyValue.get("memory:upkeep")).toMatchObject({
      run: {
        members: [
          [1, 1],
          [2, 1],
          [3, 1],
        ],
      },
    });
    expect(JSON.stringify(world.keyValue.get("memory:upkeep"))).not.toContain("route");
    world.restart();
    await world.pass(60_000);
    expect(calls).toHaveLength(2);
    expect(new Set(calls).size).toBe(1);
    expect(await world.texts("current")).toEqual(["Ann walks."]);
    crash.resolve([]);
  });

  test("CONSOLIDATE-1 a memory that is erased while the task runs is in no summary", async () => {
    let erase = async () => {};
    const { world } = joining(async ({ memories }, attempt) => {
      if (attempt === 1) await erase();
      const ids = memories.map(({ id }) => id);
      return [{ op: "write", content: memories.map(({ content }) => content).join(" "), derivedFrom: ids }];
    });
    await world.write(...episodes(4));
    const { id } = await world.byText("route 2");
    erase = async () =>
      void (await world.corpus.delete({ reader: ALL, author: { kind: "principal", subject: "ann" } }, id));
    await world.pass(2 * HOUR);
    expect(await world.texts("current")).toHaveLength(3);
    await world.pass(2 * DAY);
    const all = (await world.texts("current", "archived", "ended")).join();
    expect(all).not.toContain("route 2");
  });
});

describe("a source that is erased", () => {
  const settings = { consolidation: { minimum: 3 } };
  const places = ["Rome", "Oslo", "Bonn"];

  async function joined() {
    const world = new UpkeepWorld(settings);
    for (const [index, place] of places.entries())
      await world.learn(`turn_${index}`, [
        { op: "write", content: `The user went to ${place}.`, type: "episode" },
      ]);
    await world.pass(2 * HOUR);
    return world;
  }

  test("REDERIVE-2 a shared summary leaves searches, and is rewritten from the remaining memories", async () => {
    const world = await joined();
    const { id } = await world.byText("Extract of 3");
    world.eraseSources({ conversationId: "conv_1", turns: [{ turnId: "turn_1" }] });
    expect(await world.found("Rome Oslo Bonn")).toEqual([]);
    expect(world.armed.at(-1)).toBe(1_000);
    await world.pass(1_000);
    const summary = await world.corpus.read(ALL, id);
    expect(summary.content).toContain("Extract of 2");
    expect(await world.found("Rome Bonn")).toEqual([summary.content]);
    const why = await world.corpus.why(ALL, id);
    expect(why.sources.map(({ turnId }) => turnId)).toEqual(["turn_0", "turn_2"]);
    expect(JSON.stringify([why, await world.texts("current", "archived", "ended")])).not.toContain("Oslo");
  });

  test("REDERIVE-2 deleting one of its memories does the same; with the last memory the summary is removed", async () => {
    const world = await joined();
    const writer = { reader: ALL, author: { kind: "principal", subject: "ann" } } as const;
    for (const place of ["Oslo", "Rome"]) {
      await world.corpus.delete(writer, (await world.byText(`The user went to ${place}.`)).id);
      await world.pass(1_000);
    }
    const summary = await world.byText("Extract of 1");
    expect(summary.content).not.toMatch(/Oslo|Rome/);
    await world.corpus.delete(writer, (await world.byText("The user went to Bonn.")).id);
    await world.pass(1_000);
    expect(await world.texts("current", "archived", "ended")).toEqual([]);
  });

  test("REDERIVE-1 of two owners one is erased: the other's stays", async () => {
    const world = new UpkeepWorld();
    const write = { op: "write", content: "The user likes tea." } as const;
    await world.learn("turn_1", [write]);
    expect(
      await world.learn("turn_2", [write], { subject: { userId: "ann", conversationId: "conv_2" } }),
    ).toMatchObject([{ status: "unchanged" }]);
    world.eraseSources({ conversationId: "conv_1" });
    expect(await world.found("tea")).toEqual([]);
    await world.pass(1_000);
    expect(await world.found("tea")).toEqual(["The user likes tea."]);
    const why = await world.corpus.why(ALL, (await world.byText("tea")).id);
    expect(why.sources).toEqual([{ conversationId: "conv_2", turnId: "turn_2" }]);
    expect(why.log.flatMap(({ sources }) => sources)).toEqual([]);
  });

  test("MEMSRC-2 an author's text stays, even if the only source has repeated it", async () => {
    const world = new UpkeepWorld();
    const author = { reader: ALL, author: { kind: "principal", subject: "ann" } } as const;
    const subject = { userId: "ann", conversationId: "conv_1" };
    await world.corpus.write(author, [{ content: "The user likes tea.", subject }]);
    const repeat = { op: "write", content: "The user likes tea." } as const;
    expect(await world.learn("turn_1", [repeat], { subject })).toMatchObject([{ status: "unchanged" }]);
    world.eraseSources({ conversationId: "conv_1" });
    await world.pass(1_000);
    expect(await world.found("tea")).toEqual(["The user likes tea."]);
  });

  test("MEMSRC-2 the older texts of a memory that lost a source leave its log in the same commit", async () => {
    const world = new UpkeepWorld();
    await world.learn("turn_1", [{ op: "write", content: "The user loves tea." }]);
    const { id } = await world.byText("tea");
    world.now += HOUR;
    await world.corpus.update(
      {
        reader: ALL,
        author: { kind: "tool", conversationId: "conv_2", turnId: "turn_2" },
        sources: [{ conversationId: "conv_2", turnId: "turn_2" }],
      },
      id,
      { content: "The user hates tea." },
    );
    world.eraseSources({ conversationId: "conv_1" });
    expect(JSON.stringify(world.database.all("SELECT * FROM memory_log"))).not.toContain("loves");
  });

  describe("UPKEEP-6 waits for no other upkeep", () => {
    const write = { op: "write", content: "The user loves tea." } as const;
    const twice = async (world: UpkeepWorld) => {
      for (const index of [1, 2])
        await world.learn(`turn_${index}`, [write], {
          subject: { userId: "ann", conversationId: `conv_${index}` },
        });
    };
    const again = (world: UpkeepWorld) => world.found("loves tea");

    test.each(["rejects", "is silent"])("if the persona %s", async (way) => {
      const world = new UpkeepWorld();
      await twice(world);
      world.eraseSources({ conversationId: "conv_1" });
      expect(await world.texts("current", "archived", "ended"), "MEMSRC-3").toEqual([]);
      world.persona = () =>
        way === "rejects" ? Promise.reject(new Error("Gone.")) : new Promise<never>(() => undefined);
      world.now += 1_000;
      world.upkeep.wake();
      await expect.poll(() => again(world)).toEqual(["The user loves tea."]);
    });

    test("while a consolidation waits for its next attempt, or does not answer", async () => {
      const calls: PromiseWithResolvers<unknown>[] = [];
      const join = defineTask({
        ...{ id: "join", input: z.looseObject({}), timeoutMs: 5_000 },
        execute() {
          const call = Promise.withResolvers<unknown>();
          calls.push(call);
          return call.promise;
        },
      });
      const library = defineLibrary("my", { tasks: [join] });
      const world = new UpkeepWorld({ consolidation: { minimum: 3, by: { task: "my/join" } } }, [library]);
      await world.write(...episodes(3));
      await twice(world);
      world.now += 2 * HOUR;
      world.upkeep.wake();
      await expect.poll(() => calls.length).toBe(1);
      world.eraseSources({ conversationId: "conv_1" });
      world.upkeep.wake();
      await expect.poll(() => again(world)).toEqual(["The user loves tea."]);
      const settled = world.upkeep.settle();
      await world.timers.advance(65_000);
      await settled;
      expect(world.keyValue.get("memory:upkeep"), "UPKEEP-3").toMatchObject({ run: { attempt: 2 } });
      world.eraseSources({ conversationId: "conv_2" });
      await world.pass(1_000);
      expect(await again(world)).toEqual([]);
      expect(calls).toHaveLength(1);
    });

    test("a summary is rewritten before another consolidation, which continues after it", async () => {
      const world = await joined();
      await world.write(...episodes(3));
      world.keyValue.put("memory:upkeep", {
        run: { operationId: "op_1", attempt: 2, members: [[9, 1]], notBefore: world.now + HOUR },
      });
      world.eraseSources({ conversationId: "conv_1", turns: [{ turnId: "turn_1" }] });
      await world.pass(1_000);
      expect((await world.byText("Extract of 2")).content).not.toContain("Oslo");
      expect(world.keyValue.get("memory:upkeep")).toMatchObject({ run: { operationId: "op_1", attempt: 2 } });
    });

    test("a summary is given up if its persona does not resolve, and the remaining memories become visible again", async () => {
      const world = await joined();
      world.eraseSources({ conversationId: "conv_1", turns: [{ turnId: "turn_1" }] });
      world.persona = () => Promise.reject(new Error("Gone."));
      await world.pass(1_000);
      expect(await world.texts("current", "archived", "ended")).toEqual([
        "The user went to Bonn.",
        "The user went to Rome.",
      ]);
    });
  });

  test("MEMSRC-2 H6 an author who only sets the end of a text does not own the text", async () => {
    const author = { reader: ALL, author: { kind: "principal", subject: "ann" } } as const;
    const write = { op: "write", content: "The user loves tea." } as const;
    const alone = new UpkeepWorld();
    await alone.learn("turn_1", [write]);
    await alone.corpus.update(author, (await alone.byText("tea")).id, { validTo: "2030-01-01T00:00:00Z" });
    alone.eraseSources({ conversationId: "conv_1" });
    expect(await alone.texts("current", "archived", "ended")).toEqual([]);
    expect(JSON.stringify(alone.database.all("SELECT * FROM memory_log"))).not.toContain("tea");

    const shared = new UpkeepWorld();
    const second = { conversationId: "conv_2", turnId: "turn_2" };
    await shared.learn("turn_1", [write]);
    const { id } = await shared.byText("tea");
    shared.now += HOUR;
    await shared.corpus.update({ ...author, sources: [second] }, id, { content: "The user hates tea." });
    await shared.corpus.update(author, id, { validTo: "2030-01-01T00:00:00Z" });
    shared.eraseSources({ conversationId: "conv_2" });
    await shared.pass(1_000);
    expect(await shared.texts("current", "archived", "ended")).toEqual([]);
  });

  test("MEMSRC-1 a text is removed with its last source, in any order of erasures", async () => {
    for (const order of [
      [1, 2, 3],
      [3, 2, 1],
      [2, 1, 3],
    ]) {
      const world = new UpkeepWorld();
      const write = { op: "write", content: "The user loves tea." } as const;
      for (const index of [1, 2, 3])
        await world.learn(`turn_${index}`, [write], {
          subject: { userId: "ann", conversationId: `conv_${index}` },
        });
      for (const index of order) {
        expect(await world.found("tea")).toEqual(["The user loves tea."]);
        world.eraseSources({ conversationId: `conv_${index}` });
        await world.pass(1_000);
      }
      expect(await world.texts("current", "archived", "ended")).toEqual([]);
    }
  });

  test("MEMSRC-2 an author's own text stays through one erasure after another", async () => {
    const world = new UpkeepWorld();
    const write = { op: "write", content: "The user loves tea." } as const;
    for (const index of [1, 2, 3])
      await world.learn(`turn_${index}`, [write], {
        subject: { userId: "ann", conversationId: `conv_${index}` },
      });
    world.now += HOUR;
    const author = { reader: ALL, author: { kind: "principal", subject: "ann" } } as const;
    await world.corpus.update(author, (await world.byText("tea")).id, { content: "The user drinks tea." });
    for (const index of [1, 2, 3]) {
      world.eraseSources({ conversationId: `conv_${index}` });
      await world.pass(1_000);
    }
    expect(await world.found("tea")).toEqual(["The user drinks tea."]);
  });

  test("REDERIVE-1 a text that an author wrote stays, whatever is erased of the sources of older texts", async () => {
    const world = new UpkeepWorld();
    const write = { op: "write", content: "The user loves tea." } as const;
    await world.learn("turn_1", [write]);
    await world.learn("turn_2", [write], { subject: { userId: "ann", conversationId: "conv_2" } });
    const { id } = await world.byText("tea");
    world.now += HOUR;
    const author = { reader: ALL, author: { kind: "principal", subject: "ann" } } as const;
    await world.corpus.update(author, id, { content: "The user drinks tea." });
    world.eraseSources({ conversationId: "conv_1" });
    await world.pass(1_000);
    const why = await world.corpus.why(ALL, id);
    expect(why.memory).toMatchObject({ content: "The user drinks tea.", state: "current" });
    expect(JSON.stringify(why)).not.toContain("loves");
    expect(await world.found("tea")).toEqual(["The user drinks tea."]);
  });

  test("REDERIVE-1 the text that only the erased source has said is erased, and older texts leave the log", async () => {
    const world = new UpkeepWorld();
    await world.learn("turn_1", [{ op: "write", content: "The user loves tea." }]);
    const { id } = await world.byText("tea");
    const update = {
      reader: ALL,
      author: { kind: "tool", conversationId: "conv_2", turnId: "turn_2" },
    } as const;
    world.now += HOUR;
    await world.corpus.update({ ...update, sources: [{ conversationId: "conv_2", turnId: "turn_2" }] }, id, {
      content: "The user hates tea.",
    });
    world.eraseSources({ conversationId: "conv_1" });
    await world.pass(1_000);
    const why = await world.corpus.why(ALL, id);
    expect(why.memory.content).toBe("The user hates tea.");
    expect(JSON.stringify(why)).not.toContain("loves");

    const other = new UpkeepWorld();
    await other.learn("turn_1", [{ op: "write", content: "The user loves tea." }]);
    const memory = await other.byText("tea");
    other.now += HOUR;
    await other.corpus.update(
      { ...update, sources: [{ conversationId: "conv_2", turnId: "turn_2" }] },
      memory.id,
      { content: "The user hates tea." },
    );
    other.eraseSources({ conversationId: "conv_2" });
    await other.pass(1_000);
    expect(await other.texts("current", "archived", "ended")).toEqual([]);
  });
});
