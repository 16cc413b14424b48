/**
 * The export of an agent while its memory changes, or with a memory that has a long log. The result can be imported.
 */
import { describe, expect, test } from "vitest";
import { eraseSources } from "../../src/memory/corpus/erasures.ts";
import { backupOf, linesOf } from "../support/agent-file.ts";
import { EDITOR, MemoryWorld, WRITER } from "../support/memory-world.ts";

const from = (index: number) => ({
  ...WRITER,
  sources: [{ conversationId: `conv_${index}`, turnId: "turn_1", entries: [1] }],
});

/** Reads the file of a world. Runs `meanwhile` after a line with a text. Returns the lines and the final error. */
async function readWith(world: MemoryWorld, text: string, meanwhile: () => unknown) {
  // The agent is there from the first export on.
  await linesOf(world);
  const decoder = new TextDecoder();
  let read = "";
  let isDone = false;
  try {
    for await (const bytes of backupOf(world).backup.export()) {
      read += decoder.decode(bytes);
      if (isDone || !read.includes(text)) continue;
      isDone = true;
      await meanwhile();
    }
  } catch (error) {
    return { read, error };
  }
  return { read, lines: read.trimEnd().split("\n") };
}

async function importedFrom(lines: string[], from: MemoryWorld): Promise<MemoryWorld> {
  const copy = new MemoryWorld();
  await copy.clock.advance(Math.max(0, from.clock.now() - copy.clock.now()));
  const { backup } = backupOf(copy);
  for (let at = 0; at < lines.length; at += 20)
    await backup.import({ from: at + 1, lines: lines.slice(at, at + 20), isLast: at + 20 >= lines.length });
  return copy;
}

describe("BACKUP-16 an erasure aborts an export, and the export has no erased text:", () => {
  const long = "A secret that is long. ".repeat(300);
  const erasures: [string, (world: MemoryWorld) => unknown][] = [
    [
      "of a conversation",
      (world) => world.transaction(() => void eraseSources(world.corpus, { conversationId: "conv_1" })),
    ],
    [
      "of a memory",
      async (world) => {
        const secret = (await world.corpus.list(EDITOR)).items.find(({ content }) => content === "A secret.");
        await world.corpus.delete(WRITER, secret?.id ?? "");
      },
    ],
  ];

  test.each(erasures)("%s", async (_, erase) => {
    const world = new MemoryWorld();
    await world.corpus.write(from(2), [{ content: "First." }]);
    await world.corpus.write(from(1), [{ content: "A secret." }]);
    const { read, error } = await readWith(world, "First.", () => erase(world));
    expect(error).toMatchObject({ code: "CONFLICT", options: { retriable: true } });
    expect(read).not.toContain("secret");
    expect(read).not.toContain('"end"');
    expect((await linesOf(world)).join()).not.toContain("secret");
  });

  test("also of the last memory, while its text is read, and before the memories", async () => {
    const world = new MemoryWorld();
    await world.corpus.write(from(2), [{ content: "First." }]);
    await world.corpus.write(from(1), [{ content: long }]);
    await world.copies.bringUpToDate();
    const [, erase] = erasures[0] ?? [];
    const { error } = await readWith(world, "A secret", () => erase?.(world));
    expect(error).toMatchObject({ code: "CONFLICT" });
    await world.corpus.write(from(3), [{ content: "Third." }]);
    const early = await readWith(world, "erasedMemory", () =>
      world.transaction(() => void eraseSources(world.corpus, { conversationId: "conv_3" })),
    );
    expect(early.error).toMatchObject({ code: "CONFLICT" });
    expect(early.read).not.toContain("Third.");
  });

  test("a change and a new memory are exported in the state of their turn", async () => {
    const world = new MemoryWorld();
    const [, second] = await world.corpus.write(WRITER, [{ content: "First." }, { content: "Second." }]);
    const { lines = [] } = await readWith(world, "First.", async () => {
      await world.corpus.update(WRITER, second?.id ?? "", { content: "Second, changed." });
      await world.corpus.write(WRITER, [{ content: "Third." }]);
    });
    const copy = await importedFrom(lines, world);
    const { items } = await copy.corpus.list(EDITOR, { order: "asc" });
    expect(items.map(({ content }) => content)).toEqual(["First.", "Second, changed.", "Third."]);
  });
});

describe("BACKUP-17 an import accepts the lines of an export", () => {
  const count = 4_000;

  /** A world with a memory of as many changes, and with as many sources. */
  async function longLog(): Promise<MemoryWorld> {
    const world = new MemoryWorld();
    for (let index = 0; index < count; index++)
      await world.corpus.write(from(index), [{ key: "status", content: `Status ${index}.` }]);
    return world;
  }

  test("of a memory with thousands of changes and sources, in bounded lines, without loss", async () => {
    const world = await longLog();
    const lines = await linesOf(world);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(70_000);
    const copy = await importedFrom(lines, world);
    const logOf = ({ corpus }: MemoryWorld) => [...corpus.rows.memories.pagedLog(1)];
    expect(logOf(copy).slice(1)).toEqual(logOf(world));
    expect(logOf(world)).toHaveLength(count);
    expect(copy.rows("memory_sources")).toEqual(world.rows("memory_sources"));
    expect((await copy.corpus.list(EDITOR)).items).toMatchObject([{ content: `Status ${count - 1}.` }]);
  });

  test("and a change of a memory between its lines breaks the export off", async () => {
    const world = await longLog();
    const { read, error } = await readWith(world, '{"more"', () =>
      world.corpus.write(from(count), [{ key: "status", content: "Status now." }]),
    );
    expect(error).toMatchObject({ code: "CONFLICT", options: { retriable: true } });
    expect(read).not.toContain('"end"');
  });

  test("and refuses lines that do not continue their memory", async () => {
    const world = new MemoryWorld();
    await world.corpus.write(from(1), [{ content: "First." }, { content: "Second." }]);
    const lines = await linesOf(world);
    const at = lines.length - 1;
    const [first, second] = lines.slice(-3, -1).map((line) => JSON.parse(line).memory);
    const none = { sources: [], parts: [], log: [] };
    const source = { conversationId: "conv_2", turnId: "turn_1" };
    const cases: [object, string][] = [
      [{ id: first.id, ...none }, "/id"],
      [{ id: second.id, ...none, log: second.log }, "/log"],
      [{ id: second.id, ...none, sources: [{ ...source, statedVersion: 2 }] }, "/sources"],
      [{ id: second.id, ...none, parts: [second.id] }, "/parts"],
      [{ id: second.id, ...none, sources: [{ ...source, conversationId: "conv_9" }] }, "/sources/0"],
    ];
    const mark = JSON.stringify({ erasedSource: { conversationId: "conv_9" } });
    for (const [more, path] of cases) {
      const forged = [...lines.slice(0, 2), mark, ...lines.slice(2, at), JSON.stringify({ more }), ""];
      forged[forged.length - 1] = JSON.stringify({ end: { lines: forged.length } });
      const copy = new MemoryWorld();
      await expect(importedFrom(forged, world)).rejects.toMatchObject({
        message: expect.stringMatching(new RegExp(`^Line ${at + 2}: .*${path}: `)),
      });
      expect(copy.corpus.exists).toBe(false);
    }
    const going = [
      ...lines.slice(0, at),
      JSON.stringify({ more: { id: second.id, ...none, sources: [source] } }),
    ];
    const copy = await importedFrom([...going, JSON.stringify({ end: { lines: going.length + 1 } })], world);
    expect(copy.rows("memory_sources")).toHaveLength(3);
  });
});
