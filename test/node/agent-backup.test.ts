/** The import of an agent on Node: the accepted content, and the remains of a restarted import. */
import { describe, expect, test } from "vitest";
import { eraseSources } from "../../src/memory/corpus/erasures.ts";
import { memoryId, numberOf } from "../../src/memory/corpus/memory-id.ts";
import { extractedSchema } from "../../src/memory/corpus/schemas.ts";
import type { ExtractedMemories } from "../../src/protocol/memory.ts";
import type { Memory } from "../../src/protocol/memory-schemas.ts";
import { backupOf, linesOf } from "../support/agent-file.ts";
import { EDITOR, MemoryWorld, WRITER } from "../support/memory-world.ts";

test("BACKUP-2 a restarted import removes all of the first import, also from memory", async () => {
  const source = new MemoryWorld();
  await source.corpus.write(WRITER, [{ content: "Ada likes tea." }, { content: "Ada has a dog." }]);
  const lines = await linesOf(source);
  const world = new MemoryWorld();
  const { backup } = backupOf(world);
  const found = async () => {
    const { matches } = await world.corpus.search(EDITOR, { query: "tea dog" });
    return matches.map(({ memory }) => memory.content).sort();
  };
  await backup.import({ from: 1, lines: lines.slice(0, 5), isLast: false });
  expect(await found()).toEqual(["Ada has a dog.", "Ada likes tea."]);
  await backup.import({ from: 1, lines: lines.slice(0, 2), isLast: false });
  expect(await found()).toEqual([]);
  expect(world.corpus.ports.keyValue.list("memory", 10)).toEqual([]);
  await backup.import({ from: 3, lines: lines.slice(2, 4), isLast: false });
  expect(await found()).toEqual(["Ada likes tea."]);
  await backup.import({ from: 5, lines: lines.slice(4), isLast: true });
  expect(await found()).toEqual(["Ada has a dog.", "Ada likes tea."]);
});

test("BACKUP-2 a new import of an id refuses the rest of an older import", async () => {
  const fileOf = async (name: string) => {
    const world = new MemoryWorld();
    await world.corpus.write(WRITER, [{ content: `${name} first.` }, { content: `${name} second.` }]);
    return linesOf(world);
  };
  const [older, newer] = [await fileOf("Older"), await fileOf("Newer")];
  const half = older.findIndex((line) => line.includes("Older second."));
  const world = new MemoryWorld();
  const { backup } = backupOf(world);
  const begin = (file: string[], attempt: string) =>
    backup.import({ from: 1, lines: file.slice(0, half), isLast: false, attempt });
  const end = (file: string[], attempt: string) =>
    backup.import({ from: half + 1, lines: file.slice(half), isLast: true, attempt });
  await begin(older, "older");
  await begin(newer, "newer");
  await expect(end(older, "older")).rejects.toMatchObject({ code: "CONFLICT" });
  await end(newer, "newer");
  const { items } = await world.corpus.list(EDITOR);
  expect(items.map(({ content }) => content)).toEqual(["Newer first.", "Newer second."]);
});

test("BACKUP-9 MEMSRC-5 an export and an import do not restore erased texts", async () => {
  const source = new MemoryWorld();
  const world = new MemoryWorld();
  const extractionOf = (operationId: string, content: string, conversationId: string): ExtractedMemories => ({
    ...{ operationId, scope: "user", used: [], time: "2025-06-01T10:00:00.000Z" },
    subject: { userId: "ada", conversationId },
    source: { conversationId, turnId: "turn_1" },
    operations: [{ op: "write", content }],
  });
  const extract = async ({ extractions, corpus }: MemoryWorld, given: ExtractedMemories) => {
    const body = extractedSchema.parse(given);
    const prepared = await extractions.prepare(body);
    return corpus.ports.database.transaction(() => extractions.apply(body, prepared).outcomes);
  };
  await extract(source, extractionOf("op_1", "Ada likes tea.", "conv_1"));
  await extract(source, extractionOf("op_2", "Ada has a dog.", "conv_2"));
  const [tea] = (await source.corpus.list(EDITOR)).items;
  await source.corpus.delete(WRITER, tea?.id ?? "");
  const { database } = source.corpus.ports;
  for (const erased of [
    { conversationId: "conv_3" },
    { conversationId: "conv_4", turns: [{ turnId: "turn_1", entries: [2] }] },
  ])
    database.transaction(() => void eraseSources(source.corpus, erased));
  const lines = await linesOf(source);
  await backupOf(world).backup.import({ from: 1, lines, isLast: true });
  const others = (all: string[]) => all.slice(1).filter((line) => !line.startsWith('{"memory"'));
  expect(others(await linesOf(world))).toEqual(others(lines));
  const refused = [{ status: "refused", code: "CONFLICT" }];
  expect(await extract(world, extractionOf("op_3", "ADA likes tea", "conv_5"))).toMatchObject(refused);
  expect(
    await extract(world, { ...extractionOf("op_4", "Ada sings.", "conv_5"), used: [tea?.id ?? ""] }),
  ).toMatchObject(refused);
  expect(await extract(world, extractionOf("op_5", "Ada sings.", "conv_3"))).toMatchObject(refused);
  expect(await extract(world, extractionOf("op_6", "Ada sings.", "conv_4"))).toMatchObject(refused);
  expect(await extract(world, extractionOf("op_7", "Ada has a dog.", "conv_5"))).toMatchObject([
    { status: "unchanged" },
  ]);
  const [written] = await world.corpus.write(WRITER, [{ content: "New." }]);
  expect(numberOf(written?.id ?? "")).toBe(3);
});

describe("BACKUP-10 BACKUP-11 a line that no write could have made is refused by its number, and is not stored:", () => {
  const long = (length: number) => "x".repeat(length);
  const changes: [what: string, change: Record<string, unknown>, at: string][] = [
    ["a time beyond the range of dates", { validFrom: 9e15 }, "/validFrom"],
    ["a time beyond the years that writes take", { createdAt: 8.64e15 }, "/createdAt"],
    ["a time before them", { time: -8.64e15 }, "/time"],
    ["an end before the beginning", { validTo: 0 }, "/validTo"],
    ["an id with the last number", { id: `mem_${"0".repeat(19)}ZZZZZZZ` }, "/id"],
    ["an id with the number 0", { id: `mem_${"0".repeat(26)}` }, "/id"],
    ["a part with the last number", { parts: [`mem_${"0".repeat(19)}ZZZZZZZ`] }, "/parts/0"],
    ["metadata above the limit", { metadata: { text: long(16 * 1024) } }, "/metadata"],
    ["a text above the limit in bytes", { text: "\u00e4".repeat(128 * 1024 + 1) }, "/text"],
    ["an empty text", { text: " " }, "/text"],
    ["a text that is not Unicode", { text: "\udc00" }, "/text"],
    ["a significance above 1", { significance: 1e9 }, "/significance"],
    ["a sequence below 0", { sequence: -1 }, "/sequence"],
    ["a version that is not exact", { version: Number.MAX_SAFE_INTEGER }, "/version"],
    ["a number above the limit", { id: memoryId("0".repeat(26), 2 ** 24 + 1) }, "/id"],
    ["a memory that is hidden", { hidden: true }, "/hidden"],
    ["metadata that is not Unicode", { metadata: { a: ["\udc00"] } }, "/metadata"],
    ["metadata with a name that is not Unicode", { metadata: { a: { "\ud800": 1 } } }, "/metadata"],
    ["a beginning in the future", { createdAt: Date.parse("2100-01-01T00:00:00Z") }, "/createdAt"],
    ["a change in the future", { updatedAt: Date.parse("2100-01-01T00:00:00Z") }, "/updatedAt"],
    ["itself as a part", { id: memoryId("0".repeat(26), 3), parts: [memoryId("0".repeat(26), 3)] }, "/parts"],
    [
      "a source of a version after the memory",
      { sources: [{ conversationId: "conv_1", turnId: "turn_1", statedVersion: 2 }] },
      "/sources",
    ],
    ["a time of the log in another form", { log: [logged({ at: "Jan 1, 2025" })] }, "/log/0/at"],
    ["a version of the log twice", { log: [logged({}), logged({})] }, "/log"],
    ["an empty name", { type: "" }, "/type"],
    ["a long name", { speaker: long(201) }, "/speaker"],
    ["an entry of the log after the memory", { log: [logged({ version: 99 })] }, "/log"],
    ["an entry without a time", { log: [logged({ at: "never" })] }, "/log/0/at"],
    ["an entry of an unknown author", { log: [logged({ by: { kind: "system" } })] }, "/log/0/by/kind"],
    [
      "an entry whose author says more",
      { log: [logged({ by: { kind: "principal", subject: "ada", roles: ["admin"] } })] },
      "/log/0/by/roles",
    ],
    ["an entry with a member of its own", { log: [logged({ note: long(1_000_000) })] }, "/log/0/note"],
    [
      "a past text above that of a row",
      { log: [logged({ before: { content: long(4097), validFrom: "2025-01-01T00:00:00.000Z" } })] },
      "/log/0/before/content",
    ],
  ];

  test.each(changes)("%s", async (_, change, at) => {
    const source = new MemoryWorld();
    await source.corpus.write(WRITER, [{ content: "Ada likes tea." }]);
    const lines = await linesOf(source);
    const index = lines.findIndex((line) => line.startsWith('{"memory"'));
    const { memory } = JSON.parse(lines[index] ?? "");
    const world = new MemoryWorld();
    const forged = lines.with(index, JSON.stringify({ memory: { ...memory, ...change } }));
    await expect(
      backupOf(world).backup.import({ from: 1, lines: forged, isLast: true }),
    ).rejects.toMatchObject({
      code: "INVALID_INPUT",
      message: expect.stringMatching(new RegExp(`^Line ${index + 1}: The memory is not valid: ${at}: `)),
    });
    expect(world.corpus.exists).toBe(false);
  });

  test.each(["Jan 1, 2025", "+275760-09-13T00:00:00.000Z", "2025", 1, null])(
    "an identity with the time %j",
    async (createdAt) => {
      const lines = await linesOf(new MemoryWorld());
      const { identity } = JSON.parse(lines[1] ?? "");
      const forged = lines.with(1, JSON.stringify({ identity: { ...identity, createdAt } }));
      const { backup, store } = backupOf(new MemoryWorld());
      await expect(backup.import({ from: 1, lines: forged, isLast: true })).rejects.toMatchObject({
        message: expect.stringMatching(/^Line 2: The identity is not valid: \/createdAt: /),
      });
      expect(store.find()).toBeUndefined();
    },
  );

  test("an erased memory that was erased in the future", async () => {
    const lines = await linesOf(new MemoryWorld());
    const at = Date.parse("2100-01-01T00:00:00Z");
    const erasedMemory = { id: memoryId("0".repeat(26), 1), at, isErased: true, hash: null };
    const forged = lines.toSpliced(2, 0, JSON.stringify({ erasedMemory }));
    const { backup } = backupOf(new MemoryWorld());
    await expect(backup.import({ from: 1, lines: forged, isLast: true })).rejects.toMatchObject({
      message: expect.stringMatching(/^Line 3: .*\/at: /),
    });
  });

  test("an erased memory with the highest possible number", async () => {
    const lines = await linesOf(new MemoryWorld());
    const erasedMemory = { id: `mem_${"0".repeat(19)}ZZZZZZZ`, at: 0, isErased: true, hash: null };
    const forged = lines.toSpliced(2, 0, JSON.stringify({ erasedMemory }));
    const { backup } = backupOf(new MemoryWorld());
    await expect(backup.import({ from: 1, lines: forged, isLast: true })).rejects.toMatchObject({
      message: expect.stringMatching(/^Line 3: .*\/id/),
    });
  });
});

describe("BACKUP-12 BACKUP-13 a file with contradicting lines is refused with the line, and is not stored:", () => {
  /** A file with two memories and an erased memory. The second memory is derived from the first. */
  async function fileOf(): Promise<{ lines: string[]; first: number }> {
    const source = new MemoryWorld();
    const { corpus } = source;
    const sources = [{ conversationId: "conv_1", turnId: "turn_1", entries: [1, 2] }];
    const [gone] = await corpus.write(WRITER, [{ content: "Ada likes tea." }]);
    await corpus.delete(WRITER, gone?.id ?? "");
    await corpus.write({ ...WRITER, sources }, [
      { content: "Ada has a dog." },
      { content: "Ada has a pet." },
    ]);
    corpus.rows.memories.addPart(3, {
      n: 2,
      id: (await corpus.list(EDITOR, { order: "asc" })).items[0]?.id ?? "",
    });
    corpus.ports.database.transaction(() => void eraseSources(corpus, { conversationId: "conv_0" }));
    const lines = await linesOf(source);
    return { lines, first: lines.findIndex((line) => line.startsWith('{"memory"')) };
  }
  /** Returns the end of the file for as many lines. */
  const whole = (lines: string[]) => [
    ...lines.slice(0, -1),
    JSON.stringify({ end: { lines: lines.length } }),
  ];
  const memoryIn = (lines: string[], at: number) => JSON.parse(lines[at] ?? "").memory;
  const withMemory = (lines: string[], at: number, change: object) =>
    lines.with(at, JSON.stringify({ memory: { ...memoryIn(lines, at), ...change } }));

  const cases: [
    what: string,
    change: (lines: string[], first: number) => string[],
    at: number,
    why: string,
  ][] = [
    ["a memory twice", (lines, first) => lines.toSpliced(first, 0, lines[first] ?? ""), 1, "twice"],
    [
      "two memories with one number",
      (lines, first) => withMemory(lines, first + 1, { id: memoryId("1".repeat(26), 2), parts: [] }),
      1,
      "twice",
    ],
    [
      "memories that are not in order",
      (lines, first) => lines.with(first, lines[first + 1] ?? "").with(first + 1, lines[first] ?? ""),
      1,
      "comes after",
    ],
    [
      "an erased memory twice",
      (lines, first) => lines.toSpliced(first, 0, lines[first - 1] ?? ""),
      0,
      "twice",
    ],
    [
      "a memory with the number of an erased one",
      (lines, first) => withMemory(lines, first, { id: memoryId("1".repeat(26), 1) }),
      0,
      "/id: .*as erased",
    ],
    [
      "an erased memory after the memories",
      (lines, first) => [
        ...lines.toSpliced(first - 1, 1).slice(0, -1),
        lines[first - 1] ?? "",
        lines.at(-1) ?? "",
      ],
      1,
      "before the memories",
    ],
    [
      "a source that is erased after the memories",
      (lines) => [
        ...lines.slice(0, -1),
        JSON.stringify({ erasedSource: { conversationId: "conv_1" } }),
        lines.at(-1) ?? "",
      ],
      2,
      "before the memories",
    ],
    [
      "a memory from an erased conversation",
      (lines) => lines.toSpliced(2, 0, JSON.stringify({ erasedSource: { conversationId: "conv_1" } })),
      1,
      "/sources/0: .*erased",
    ],
    [
      "a memory from an erased entry",
      (lines) => {
        const erasedSource = { conversationId: "conv_1", turnId: "turn_1", entries: [2] };
        return lines.toSpliced(2, 0, JSON.stringify({ erasedSource }));
      },
      1,
      "/sources/0: .*erased",
    ],
    [
      "a memory that was made of an erased one",
      (lines, first) => {
        const { erasedMemory } = JSON.parse(lines[first - 1] ?? "");
        return withMemory(lines, first, { parts: [erasedMemory.id] });
      },
      0,
      "/parts/0: .*erased",
    ],
    [
      "a part with the number of another memory",
      (lines, first) => withMemory(lines, first + 1, { parts: [memoryId("1".repeat(26), 2)] }),
      1,
      "/parts/0: .*another id",
    ],
    [
      "a second salt after the memories",
      (lines) => [...lines.slice(0, -1), JSON.stringify({ salt: "0".repeat(32) }), lines.at(-1) ?? ""],
      2,
      "salt must occur once",
    ],
    [
      "the same salt after the memories",
      (lines) => [
        ...lines.slice(0, -1),
        lines.find((line) => line.startsWith('{"salt"')) ?? "",
        lines.at(-1) ?? "",
      ],
      2,
      "before the memories",
    ],
    [
      "a salt that differs from the first",
      (lines, first) => lines.toSpliced(first, 0, JSON.stringify({ salt: "0".repeat(32) })),
      0,
      "salt must occur once",
    ],
  ];

  test.each(cases)("%s", async (_, change, after, why) => {
    const { lines, first } = await fileOf();
    const forged = whole(change(lines, first));
    const world = new MemoryWorld();
    const { backup } = backupOf(world);
    await expect(backup.import({ from: 1, lines: forged, isLast: true })).rejects.toMatchObject({
      code: "INVALID_INPUT",
      message: expect.stringMatching(new RegExp(`^Line ${first + 1 + after}: .*${why}`)),
    });
    expect(world.corpus.exists).toBe(false);
    await backup.import({ from: 1, lines, isLast: true });
    expect((await world.corpus.list(EDITOR)).items).toHaveLength(2);
  });

  test("also in different parts of the import", async () => {
    const { lines, first } = await fileOf();
    const { backup } = backupOf(new MemoryWorld());
    await backup.import({ from: 1, lines: lines.slice(0, first + 1), isLast: false });
    await expect(
      backup.import({ from: first + 2, lines: lines.slice(first, first + 1), isLast: false }),
    ).rejects.toMatchObject({ message: expect.stringMatching(`^Line ${first + 2}: .*twice`) });
  });
});

test("BACKUP-10 memories at the limits are imported, listed and exported, and memories follow them", async () => {
  const source = new MemoryWorld();
  const metadata = { text: "x".repeat(16 * 1024 - 11) };
  await source.corpus.write(WRITER, [
    { content: "x".repeat(256 * 1024), metadata, time: "0000-01-01T00:00:00+14:00" },
    { content: "Later.", validFrom: "9999-12-31T23:59:59-12:00", type: "t".repeat(200) },
  ]);
  await source.copies.bringUpToDate();
  const lines = await linesOf(source);
  const world = new MemoryWorld();
  await backupOf(world).backup.import({ from: 1, lines, isLast: true });
  await world.copies.bringUpToDate();
  const without = (items: Memory[]) => items.map(({ version: _, ...memory }) => memory);
  const { items } = await world.corpus.list(EDITOR);
  expect(without(items)).toEqual(without((await source.corpus.list(EDITOR)).items));
  expect(items.map(({ version }) => version)).toEqual([2, 2]);
  expect(await linesOf(world)).toHaveLength(lines.length);
  const [next] = await world.corpus.write(WRITER, [{ content: "Next." }]);
  expect((await world.corpus.read(EDITOR, next?.id ?? "")).content).toBe("Next.");
});

test("BACKUP-5 the newest entry of an imported log says that an import restored it, whatever authors the file names", async () => {
  const source = new MemoryWorld();
  await source.corpus.write(WRITER, [{ content: "Ada likes tea." }]);
  const lines = (await linesOf(source)).map((line) => line.replaceAll('"subject":"ada"', '"subject":"boss"'));
  const world = new MemoryWorld();
  await backupOf(world).backup.import({ from: 1, lines, isLast: true });
  const [memory] = (await world.corpus.list(EDITOR)).items;
  const { log } = await world.corpus.why(EDITOR, memory?.id ?? "");
  expect(log).toMatchObject([
    { version: 2, change: "restored", by: { kind: "import" } },
    { version: 1, change: "written", by: { kind: "principal", subject: "boss" } },
  ]);
  expect(memory?.version).toBe(2);
});

/** An entry of a log with a change. */
function logged(change: Record<string, unknown>): Record<string, unknown> {
  const by = { kind: "principal", subject: "ada" };
  return { version: 1, change: "written", at: "2025-01-01T00:00:00.000Z", by, sources: [], ...change };
}
