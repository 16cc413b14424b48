/** Files of agents with a wrong line: an imported agent works, and a refused file leaves no data. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { eraseSources } from "../../src/memory/corpus/erasures.ts";
import type { MemoryWriter } from "../../src/protocol/memory.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import type { Json } from "../../src/shared/json.ts";
import { backupOf, linesOf } from "../support/agent-file.ts";
import { anything, BEYOND, placesIn, withValue } from "../support/changed-json.ts";
import { EDITOR, MemoryWorld, WRITER } from "../support/memory-world.ts";

const STATES = ["current" as const, "ended" as const, "archived" as const];

/** Returns the file of an agent with memories of all kinds, and with things that were erased. */
async function richFile(): Promise<string[]> {
  const world = new MemoryWorld();
  const { corpus } = world;
  const from = (conversationId: string): MemoryWriter => ({
    ...WRITER,
    author: { kind: "extraction", conversationId, turnId: "turn_1" },
    sources: [{ conversationId, turnId: "turn_1", entries: [1, 4] }],
  });
  const [gone, tea, rome, story] = await corpus.write(from("conv_1"), [
    { content: "Ada is ill." },
    { content: "Ada likes tea.", key: "tea", subject: { userId: "ada", conversationId: "conv_1" } },
    {
      content: "Ada lived in Rome.",
      validFrom: "2020-01-01T00:00:00.000Z",
      metadata: { in: ["Rome", 1.5, null] },
    },
    {
      content: `A story of cinnamon. ${"word ".repeat(1_000)}`,
      type: "story",
      speaker: "Ada",
      session: "s",
      sequence: 3,
    },
    { content: "Ada had a cat.", validTo: "2025-12-01T00:00:00.000Z", time: "2025-06-01T00:00:00.000Z" },
  ]);
  await corpus.delete(WRITER, gone?.id ?? "");
  await corpus.update(from("conv_2"), tea?.id ?? "", { content: "Ada likes black tea.", significance: 0.9 });
  await corpus.archive(WRITER, rome?.id ?? "");
  const [whole] = await corpus.write(WRITER, [{ content: "Ada drinks tea and tells of cinnamon." }]);
  for (const part of [tea, story])
    corpus.rows.memories.addPart(corpus.findById(whole?.id ?? "")?.n ?? 0, {
      n: corpus.findById(part?.id ?? "")?.n ?? 0,
      id: part?.id ?? "",
    });
  corpus.ports.database.transaction(() => {
    void eraseSources(corpus, { conversationId: "conv_8" });
    void eraseSources(corpus, { conversationId: "conv_9", turns: [{ turnId: "turn_1", entries: [2] }] });
  });
  // Listing ends expired memories.
  await corpus.list(EDITOR);
  return linesOf(world);
}

type Mutation =
  | { kind: "drop" | "double" | "end"; line: number }
  | { kind: "move"; line: number; to: number }
  | { kind: "replace"; line: number; place: number; other: Json | undefined };

const natural = fc.nat(10_000);
const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  fc.record({ kind: fc.constantFrom("drop", "double", "end"), line: natural }),
  fc.record({ kind: fc.constant("move"), line: natural, to: natural }),
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant("replace"),
      line: natural,
      place: natural,
      other: fc.option(anything, { nil: undefined, freq: 8 }),
    }),
  },
);

/** Returns a file with one line changed. Its last line counts the lines, but for `end`. */
function mutated(lines: readonly string[], given: Mutation): string[] {
  const at = given.line % (lines.length - 1);
  const [line = ""] = lines.slice(at);
  switch (given.kind) {
    case "drop":
      return counted(lines.toSpliced(at, 1));
    case "double":
      return counted(lines.toSpliced(at, 0, line));
    case "end":
      return lines.toSpliced(at, 1);
    case "move":
      return lines.toSpliced(at, 1).toSpliced(given.to % (lines.length - 1), 0, line);
    case "replace": {
      const value: Json = JSON.parse(line);
      const places = placesIn(value);
      const changed = withValue(value, places[given.place % places.length] ?? [], given.other);
      return lines.with(at, JSON.stringify(changed).replaceAll(`"${BEYOND}"`, "1e999"));
    }
  }
}

function counted(lines: readonly string[]): string[] {
  return [...lines.slice(0, -1), JSON.stringify({ end: { lines: lines.length } })];
}

/** Does everything with the memories of a world. */
async function exerciseAll(world: MemoryWorld): Promise<void> {
  const { corpus, copies } = world;
  const all = async (order: "asc" | "desc") => {
    const { items } = await corpus.list(EDITOR, { state: STATES, order, limit: 100 });
    return items.map(({ id }) => id);
  };
  await copies.bringUpToDate();
  const found = await all("asc");
  expect((await all("desc")).toReversed()).toEqual(found);
  expect(corpus.status().memories).toBe(found.length);
  for (const id of found) {
    const { content } = await corpus.read(EDITOR, id);
    expect(content).not.toBe("");
    const { sources } = await corpus.why(EDITOR, id);
    expect(sources.filter((source) => corpus.rows.erased.has(source))).toEqual([]);
  }
  for (const query of ["Ada tea", "cinnamon story", "Rome yesterday", "\u0000"])
    await corpus.search(EDITOR, { query });
  const again = new MemoryWorld();
  await backupOf(again).backup.import({ from: 1, lines: await linesOf(world), isLast: true });
  expect((await again.corpus.list(EDITOR, { state: STATES, limit: 100 })).items).toHaveLength(found.length);
  const [next] = await corpus.write(WRITER, [{ content: "Next.", key: "tea" }]);
  expect(found).not.toContain(next?.id);
  for (const id of found) await corpus.update(WRITER, id, { significance: 0.1 });
  corpus.ports.database.transaction(() => void eraseSources(corpus, { conversationId: "conv_1" }));
  for (const id of await all("asc")) await corpus.archive(WRITER, id);
  for (const id of await all("asc")) if (corpus.findById(id) !== undefined) await corpus.delete(WRITER, id);
  await copies.bringUpToDate();
  expect(await all("asc")).toEqual([]);
}

test("BACKUP-2 BACKUP-10 with one line of a file changed, either the imported agent works, or the line is named and the file is not stored", async () => {
  const lines = await richFile();
  let imported = 0;
  const property = fc.asyncProperty(mutation, async (given) => {
    const file = mutated(lines, given);
    const world = new MemoryWorld();
    try {
      await backupOf(world).backup.import({ from: 1, lines: file, isLast: true });
    } catch (error) {
      if (!(error instanceof DramatisError)) throw error;
      expect(["INVALID_INPUT", "TOO_LARGE"]).toContain(error.code);
      expect(error.message).toMatch(/^Line \d+: /);
      expect(world.corpus.exists).toBe(false);
      return;
    }
    imported += 1;
    await exerciseAll(world);
  });
  /** An import adds one to a version, and the result must fit into an import, too. */
  const atLimit: Mutation = { kind: "replace", line: 9_908, place: 9_375, other: 2 ** 31 };
  await fc.assert(property, { numRuns: 300, examples: [[atLimit]] });
  expect(imported).toBeGreaterThan(10);
});
