import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { memoryId, numberOf } from "../../src/memory/corpus/memory-id.ts";
import type { MemoryReader, MemoryWriter } from "../../src/protocol/memory.ts";
import type { Json } from "../../src/shared/json.ts";
import { EDITOR, MemoryWorld, WRITER } from "../support/memory-world.ts";

const member = (subject: string): MemoryReader => ({
  principal: { subject, tenant: "acme", roles: ["member"] },
});
const at = (day: number) => new Date(Date.UTC(2025, 0, day)).toISOString();

describe("MEMORY-1 MEMORY-2 versions", () => {
  test("love, then hate: the new text is current, and the old text has ended in the log", async () => {
    const { corpus } = new MemoryWorld();
    await corpus.write(WRITER, [{ key: "tea", content: "Ada loves tea.", validFrom: at(1) }]);
    const [memory] = await corpus.write(WRITER, [
      { key: "tea", content: "Ada hates tea.", validFrom: at(9) },
    ]);
    expect(memory).toMatchObject({
      content: "Ada hates tea.",
      validFrom: at(9),
      state: "current",
      version: 2,
    });
    const { log } = await corpus.why(EDITOR, memory?.id ?? "");
    expect(log).toMatchObject([
      {
        version: 2,
        change: "updated",
        before: { content: "Ada loves tea.", validFrom: at(1), validTo: at(9) },
      },
      { version: 1, change: "written" },
    ]);
    const { matches } = await corpus.search(EDITOR, { query: "loves hates tea" });
    expect(matches.map((match) => match.memory.content)).toEqual(["Ada hates tea."]);
  });

  test("history imported in any order: the text of the latest time is current, and all others are in the log", async () => {
    await fc.assert(
      fc.asyncProperty(fc.shuffledSubarray([1, 2, 3, 4, 5, 6], { minLength: 1 }), async (days) => {
        const { corpus } = new MemoryWorld();
        for (const day of days)
          await corpus.write(WRITER, [{ key: "home", content: `Town ${day}.`, time: at(day) }]);
        const { items } = await corpus.list(EDITOR);
        const newest = Math.max(...days);
        expect(items).toMatchObject([
          { content: `Town ${newest}.`, validFrom: at(newest), version: days.length },
        ]);
        const { log } = await corpus.why(EDITOR, items[0]?.id ?? "");
        const past = log.flatMap(({ before }) => before?.content ?? []).sort();
        expect(past).toEqual(
          days
            .filter((day) => day !== newest)
            .map((day) => `Town ${day}.`)
            .sort(),
        );
        for (const { before } of log) {
          if (before?.validTo !== undefined) expect(before.validTo > before.validFrom).toBe(true);
        }
      }),
      { numRuns: 50 },
    );
  });

  test("MEMORY-3 an identical write is a no-op", async () => {
    const { corpus } = new MemoryWorld();
    const write = () =>
      corpus.write(WRITER, [{ key: "k", content: "Same.", type: "note", validFrom: at(2) }]);
    const [first] = await write();
    expect(await write()).toEqual([first]);
    expect((await corpus.why(EDITOR, first?.id ?? "")).log).toHaveLength(1);
  });

  test("MEMORY-3 a long text differs from its beginning, which its row stores, before and after it is copied", async () => {
    const world = new MemoryWorld();
    const { corpus } = world;
    const long = "All that was said about the harbour. ".repeat(200);
    for (const change of [
      (id: string, content: string) => corpus.update(WRITER, id, { content }),
      async (_: string, content: string) => (await corpus.write(WRITER, [{ key: "all", content }]))[0],
    ]) {
      for (const copied of [true, false]) {
        const [memory] = await corpus.write(WRITER, [{ key: "all", content: long }]);
        const id = memory?.id ?? "";
        if (copied) await world.copies.bringUpToDate();
        expect((await change(id, long))?.version).toBe(memory?.version);
        expect(await change(id, long.slice(0, 1_000))).toMatchObject({ version: (memory?.version ?? 0) + 1 });
        expect((await corpus.read(EDITOR, id)).content).toBe(long.slice(0, 1_000));
      }
    }
  });

  test("MEMORY-4 a memory that would end before it begins is refused, and not stored", async () => {
    const world = new MemoryWorld();
    const { corpus } = world;
    const [memory] = await corpus.write(WRITER, [{ content: "Ada lives in Rome.", validFrom: at(5) }]);
    const id = memory?.id ?? "";
    const refused = {
      code: "INVALID_INPUT",
      options: { errors: [{ path: expect.stringContaining("/validTo") }] },
    };
    await expect(
      corpus.write(WRITER, [{ content: "x", validFrom: at(9), validTo: at(2) }]),
    ).rejects.toMatchObject(refused);
    for (const change of [{ validFrom: at(9), validTo: at(2) }, { validTo: at(4) }])
      await expect(corpus.update(WRITER, id, change)).rejects.toMatchObject(refused);
    await corpus.update(WRITER, id, { validTo: at(20) });
    await expect(corpus.update(WRITER, id, { validFrom: at(21) })).rejects.toMatchObject(refused);
    expect(await corpus.read(EDITOR, id)).toMatchObject({ version: 2, validFrom: at(5), validTo: at(20) });
    const [past] = await corpus.write(WRITER, [
      { content: "Ada lived in Oslo.", time: at(9), validTo: at(3) },
    ]);
    expect(past).toMatchObject({ validFrom: at(3), validTo: at(3), state: "ended" });
  });

  test("a change with a version requires that version", async () => {
    const { corpus } = new MemoryWorld();
    const [memory] = await corpus.write(WRITER, [{ content: "One." }]);
    const id = memory?.id ?? "";
    await corpus.update(WRITER, id, { content: "Two.", ifVersion: 1 });
    await expect(corpus.update(WRITER, id, { content: "Three.", ifVersion: 1 })).rejects.toMatchObject({
      code: "CONFLICT",
    });
    expect(await corpus.read(EDITOR, id)).toMatchObject({ content: "Two.", version: 2 });
  });

  test("a memory ends when its time is over: it is no longer found, and still read", async () => {
    const world = new MemoryWorld();
    const { corpus, clock } = world;
    const validTo = new Date(clock.now() + 1000).toISOString();
    const [memory] = await corpus.write(WRITER, [{ content: "The bridge is closed.", validTo }]);
    const find = async () => (await corpus.search(EDITOR, { query: "bridge" })).matches.length;
    expect(await find()).toBe(1);
    await clock.advance(1000);
    expect(await find()).toBe(0);
    expect(await corpus.read(EDITOR, memory?.id ?? "")).toMatchObject({ state: "ended" });
    expect((await corpus.list(EDITOR)).items).toEqual([]);
    expect((await corpus.list(EDITOR, { state: ["ended"] })).items).toHaveLength(1);
  });
});

describe("MEMSTORE-2 keys", () => {
  test("a key belongs to its subject", async () => {
    const { corpus } = new MemoryWorld();
    const [ada, bob, none] = await corpus.write(WRITER, [
      { key: "name", content: "Ada", subject: { userId: "ada" } },
      { key: "name", content: "Bob", subject: { userId: "bob" } },
      { key: "name", content: "Nobody" },
    ]);
    expect(new Set([ada?.id, bob?.id, none?.id]).size).toBe(3);
    const [again] = await corpus.write(WRITER, [
      { key: "name", content: "Robert", subject: { userId: "bob" } },
    ]);
    expect(again).toMatchObject({ id: bob?.id, content: "Robert", version: 2 });
    expect(await corpus.read(EDITOR, ada?.id ?? "")).toMatchObject({ content: "Ada", version: 1 });
  });

  test("a repeated request returns the first result; a different request under its key is refused", async () => {
    const { corpus } = new MemoryWorld();
    const input = { content: "Once.", idempotencyKey: "request-1" };
    const [first] = await corpus.write(WRITER, [input]);
    expect(await corpus.write(WRITER, [input])).toEqual([first]);
    await expect(corpus.write(WRITER, [{ ...input, content: "Twice." }])).rejects.toMatchObject({
      code: "IDEMPOTENCY_CONFLICT",
    });
    const other: MemoryWriter = { ...WRITER, author: { kind: "principal", subject: "bob" } };
    const [another] = await corpus.write(other, [{ ...input, content: "Bob's." }]);
    expect(another).toMatchObject({ content: "Bob's.", version: 1 });
    await corpus.delete(WRITER, first?.id ?? "");
    await expect(corpus.write(WRITER, [input])).rejects.toMatchObject({ code: "NOT_FOUND" });
  });
});

describe("MEMSTORE-1 MEMSTORE-3 invalid input changes no memory", () => {
  const long = "x".repeat(201);
  test.each<[string, unknown, string]>([
    ["no memory", [], "INVALID_INPUT"],
    ["101 memories", Array.from({ length: 101 }, () => ({ content: "x" })), "INVALID_INPUT"],
    ["one empty text", [{ content: "good" }, { content: "  " }], "INVALID_INPUT"],
    ["one lone surrogate", [{ content: "good" }, { content: "\ud800" }], "INVALID_INPUT"],
    [
      "one lone surrogate in metadata",
      [{ content: "good", metadata: { a: [{ b: "\udc00" }] } }],
      "INVALID_INPUT",
    ],
    ["one in a name in metadata", [{ content: "good", metadata: { a: { "\udc00": 1 } } }], "INVALID_INPUT"],
    ["metadata that nests too deep", [{ content: "good", metadata: { a: deep(100) } }], "INVALID_INPUT"],
    ["a text above 256 KiB", [{ content: "good" }, { content: "é".repeat(128 * 1024 + 1) }], "TOO_LARGE"],
    ["metadata above 16 KiB", [{ content: "good", metadata: { x: "y".repeat(16 * 1024) } }], "TOO_LARGE"],
    ["metadata that is a list", [{ content: "good", metadata: [] }], "INVALID_INPUT"],
    ["a long type", [{ content: "good", type: long }], "INVALID_INPUT"],
    ["a long key", [{ content: "good", key: long }], "INVALID_INPUT"],
    ["a significance above 1", [{ content: "good", significance: 1.1 }], "INVALID_INPUT"],
    ["a time without a zone", [{ content: "good", time: "2026-01-01T00:00:00" }], "INVALID_INPUT"],
    ["an unknown field", [{ content: "good", colour: "red" }], "INVALID_INPUT"],
  ])("%s", async (_, inputs, code) => {
    const { corpus } = new MemoryWorld();
    const [kept] = await corpus.write(WRITER, [{ content: "kept" }]);
    // SAFETY: what is not valid is the subject of the test.
    await expect(corpus.write(WRITER, inputs as [])).rejects.toMatchObject({ code });
    expect((await corpus.list(EDITOR)).items).toEqual([kept]);
  });

  test("a batch is written completely or not at all, whatever fails in it", async () => {
    const { corpus } = new MemoryWorld();
    await corpus.write(WRITER, [{ content: "first", idempotencyKey: "a" }]);
    const batch = [{ content: "good" }, { content: "bad", idempotencyKey: "a" }];
    await expect(corpus.write(WRITER, batch)).rejects.toMatchObject({ code: "IDEMPOTENCY_CONFLICT" });
    expect((await corpus.list(EDITOR)).items.map(({ content }) => content)).toEqual(["first"]);
    expect((await corpus.search(EDITOR, { query: "good" })).matches).toEqual([]);
  });
});

describe("MEMSEE-1 MEMSEE-2 readers", () => {
  async function filled() {
    const { corpus } = new MemoryWorld();
    const [ada, bob, shared] = await corpus.write(WRITER, [
      { content: "secret of ada", subject: { userId: "ada", conversationId: "conv_1" } },
      { content: "secret of bob", subject: { userId: "bob", conversationId: "conv_2" } },
      { content: "secret of all" },
    ]);
    return { corpus, ids: { ada: ada?.id ?? "", bob: bob?.id ?? "", shared: shared?.id ?? "" } };
  }

  test.each<[string, MemoryReader, ("ada" | "bob" | "shared")[]]>([
    ["an author", EDITOR, ["ada", "bob", "shared"]],
    [
      "an operator",
      { principal: { subject: "x", tenant: "acme", roles: ["operator"] } },
      ["ada", "bob", "shared"],
    ],
    ["a member", member("ada"), ["ada"]],
    ["a member with a name without a user", member("eve"), []],
    ["the scope agent", { scope: "agent", userId: "ada" }, ["ada", "bob", "shared"]],
    ["the scope user", { scope: "user", userId: "ada", conversationId: "conv_2" }, ["ada", "shared"]],
    ["the scope user without a user", { scope: "user", conversationId: "conv_1" }, ["shared"]],
    [
      "the scope conversation",
      { scope: "conversation", userId: "ada", conversationId: "conv_2" },
      ["bob", "shared"],
    ],
  ])("%s", async (_, reader, seen) => {
    const { corpus, ids } = await filled();
    const expected = seen.map((name) => ids[name]).sort();
    const listed = (await corpus.list(reader)).items.map(({ id }) => id).sort();
    const found = (await corpus.search(reader, { query: "secret" })).matches
      .map(({ memory }) => memory.id)
      .sort();
    expect({ listed, found }).toEqual({ listed: expected, found: expected });
    for (const id of Object.values(ids)) {
      const isSeen = expected.includes(id);
      const asked = [corpus.read(reader, id), corpus.why(reader, id)];
      for (const answer of asked) {
        if (isSeen) await expect(answer).resolves.toBeDefined();
        else await expect(answer).rejects.toMatchObject({ code: "NOT_FOUND" });
      }
    }
  });

  test("a member changes and deletes only own memories, and cannot write any", async () => {
    const { corpus, ids } = await filled();
    const writer: MemoryWriter = { reader: member("ada"), author: { kind: "principal", subject: "ada" } };
    await expect(corpus.write(writer, [{ content: "new" }])).rejects.toMatchObject({ code: "FORBIDDEN" });
    for (const id of [ids.bob, ids.shared]) {
      await expect(corpus.update(writer, id, { content: "new" })).rejects.toMatchObject({
        code: "NOT_FOUND",
      });
      await expect(corpus.archive(writer, id)).rejects.toMatchObject({ code: "NOT_FOUND" });
      await expect(corpus.delete(writer, id)).rejects.toMatchObject({ code: "NOT_FOUND" });
    }
    expect(await corpus.update(writer, ids.ada, { content: "new" })).toMatchObject({ content: "new" });
    await corpus.delete(writer, ids.ada);
    await expect(corpus.read(EDITOR, ids.ada)).rejects.toMatchObject({ code: "NOT_FOUND" });
  });

  test("a principal of another tenant finds no agent", async () => {
    const { corpus } = await filled();
    const reader: MemoryReader = { principal: { subject: "ada", tenant: "other", roles: ["admin"] } };
    await expect(corpus.list(reader)).rejects.toMatchObject({ code: "NOT_FOUND" });
    await expect(corpus.search(reader, { query: "secret" })).rejects.toMatchObject({ code: "NOT_FOUND" });
    await expect(corpus.write({ ...WRITER, reader }, [{ content: "x" }])).rejects.toMatchObject({
      code: "NOT_FOUND",
    });
  });
});

describe("lists and filters", () => {
  test("pages in both orders have every memory once", async () => {
    const { corpus } = new MemoryWorld();
    await corpus.write(
      WRITER,
      Array.from({ length: 25 }, (_, index) => ({ content: `m${index}` })),
    );
    for (const order of ["asc", "desc"] as const) {
      const contents: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await corpus.list(EDITOR, { order, limit: 10, ...(cursor !== undefined && { cursor }) });
        contents.push(...page.items.map(({ content }) => content));
        cursor = page.nextCursor;
      } while (cursor !== undefined);
      const all = Array.from({ length: 25 }, (_, index) => `m${index}`);
      expect(contents).toEqual(order === "asc" ? all : all.reverse());
    }
  });

  test("all members of a filter hold", async () => {
    const { corpus } = new MemoryWorld();
    await corpus.write(WRITER, [
      {
        content: "shared a",
        type: "note",
        speaker: "Ada",
        session: "s1",
        time: at(1),
        metadata: { on: true, n: 1 },
      },
      {
        content: "shared b",
        type: "fact",
        speaker: "Bob",
        session: "s1",
        time: at(2),
        metadata: { on: 1, n: 1 },
      },
      { content: "shared c", type: "plan", speaker: "Ada", session: "s2", time: at(3), metadata: { n: "1" } },
    ]);
    const cases: [object, string[]][] = [
      [{ type: "note" }, ["a"]],
      [{ type: ["note", "plan"] }, ["a", "c"]],
      [{ speaker: "Ada" }, ["a", "c"]],
      [{ session: "s1" }, ["a", "b"]],
      [{ from: at(2) }, ["b", "c"]],
      [{ before: at(2) }, ["a"]],
      [{ metadata: { on: true } }, ["a"]],
      [{ metadata: { on: 1 } }, ["b"]],
      [{ metadata: { n: 1 } }, ["a", "b"]],
      [{ metadata: { n: "1" } }, ["c"]],
      [{ metadata: { n: 1, on: true } }, ["a"]],
      [{ metadata: { missing: "x" } }, []],
      [{ speaker: "Ada", session: "s1" }, ["a"]],
      [{ subject: { userId: "nobody" } }, []],
    ];
    for (const [filter, expected] of cases) {
      const listed = (await corpus.list(EDITOR, filter)).items.map(({ content }) => content.at(-1));
      const { matches } = await corpus.search(EDITOR, { query: "shared", ...filter });
      const found = matches.map(({ memory }) => memory.content.at(-1)).sort();
      expect({ filter, listed, found }).toEqual({ filter, listed: expected, found: expected });
    }
  });
});

describe("MEMSTORE-4 erasing", () => {
  test("no table keeps any text of the memory, including the log", async () => {
    const world = new MemoryWorld();
    const { corpus } = world;
    const words = ["Quetzalcoatlus", "Xylophagous"];
    const [memory] = await corpus.write(WRITER, [
      { content: `${words[0]} one`, metadata: { w: words[0] ?? "" }, idempotencyKey: "k" },
    ]);
    const id = memory?.id ?? "";
    await corpus.update(WRITER, id, { content: `${words[1]} two`, metadata: {} });
    await corpus.archive(WRITER, id);
    await corpus.delete(WRITER, id);
    const tables = world
      .rows("sqlite_master")
      .flatMap(({ type, name }) => (type === "table" ? [String(name)] : []));
    expect(tables).toContain("memory_log");
    const text = JSON.stringify(tables.map((table) => world.rows(table))).toLowerCase();
    for (const word of words) expect(text).not.toContain(word.toLowerCase());
    expect(await corpus.list(EDITOR, { state: ["current", "ended", "archived"] })).toEqual({ items: [] });
  });

  test("numbers are never used twice", async () => {
    const { corpus } = new MemoryWorld();
    const [first] = await corpus.write(WRITER, [{ content: "a" }]);
    await corpus.delete(WRITER, first?.id ?? "");
    const [second] = await corpus.write(WRITER, [{ content: "b" }]);
    expect(numberOf(second?.id ?? "")).toBe(2);
  });
});

test("MEMID-1 an id has the number of its memory, and an invented id is not found", async () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2 ** 35 - 1 }), (n) => {
      expect(numberOf(memoryId("01ARZ3NDEKTSV4RRFFQ69G5FAV", n))).toBe(n);
    }),
  );
  const { corpus } = new MemoryWorld();
  await corpus.write(WRITER, [{ content: "a" }]);
  const forged = memoryId("01ARZ3NDEKTSV4RRFFQ69G5FAV", 1);
  await expect(corpus.read(EDITOR, forged)).rejects.toMatchObject({ code: "NOT_FOUND" });
  await expect(corpus.read(EDITOR, "no id")).rejects.toMatchObject({ code: "NOT_FOUND" });
});

test("an agent without memories has no tables, and answers", async () => {
  const world = new MemoryWorld();
  const { corpus } = world;
  expect(await corpus.list(EDITOR)).toEqual({ items: [] });
  expect(await corpus.search(EDITOR, { query: "anything" })).toEqual({ matches: [], semantic: "none" });
  expect(corpus.status()).toEqual({ memories: 0, archived: 0, pending: 0 });
  await expect(corpus.delete(WRITER, memoryId("01ARZ3NDEKTSV4RRFFQ69G5FAV", 1))).rejects.toMatchObject({
    code: "NOT_FOUND",
  });
  expect(world.rows("sqlite_master").map(({ name }) => name)).toEqual(["_node_kv"]);
});

/** Lists in lists. */
function deep(levels: number): Json {
  return levels === 0 ? [] : [deep(levels - 1)];
}
