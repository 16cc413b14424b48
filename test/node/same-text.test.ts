/** Equal texts in different forms: stored once, and found in each form. */
import { describe, expect, test } from "vitest";
import { extractedSchema } from "../../src/memory/corpus/schemas.ts";
import type { MemoryScope, MemoryWriter } from "../../src/protocol/memory.ts";
import type { MemoryInput } from "../../src/protocol/memory-requests.ts";
import { EDITOR, MemoryWorld, WRITER } from "../support/memory-world.ts";
import { rankedMemories } from "../support/ranked-memories.ts";

const FORMS: [string, string][] = [
  ["Ada lives in Zürich.", "ada lives in ZU\u0308RICH"],
  ["Ο δρόμος: ΟΔΟΣ", "ο δρομος: οδός"],
  ["Развёртывание — в пятницу", "развертывание — в пятницу"],
  ["Grüße aus der Hauptstraße", "GRÜSSE AUS DER HAUPTSTRASSE"],
  ["Ada sent 👍\ufe0f for the plan", "ada sent 👍 for the plan"],
];

/** A writer like the tool `remember` in a turn of a conversation. */
const tool = (turn: number, scope: MemoryScope = "user", userId = "ada"): MemoryWriter => ({
  reader: { scope, userId, conversationId: `conv_${turn}` },
  author: { kind: "tool", conversationId: `conv_${turn}`, turnId: `turn_${turn}` },
  subject: { userId, conversationId: `conv_${turn}` },
  sources: [{ conversationId: `conv_${turn}`, turnId: `turn_${turn}` }],
});

async function extract({ corpus, extractions }: MemoryWorld, turn: number, content: string) {
  const body = extractedSchema.parse({
    ...{ operationId: `op_${turn}`, scope: "user", time: "2025-06-01T10:00:00Z", used: [] },
    subject: { userId: "ada", conversationId: `conv_${turn}` },
    source: { conversationId: `conv_${turn}`, turnId: `turn_${turn}` },
    operations: [{ op: "write", content, time: `2025-06-0${turn}T10:00:00Z` }],
  });
  const prepared = await extractions.prepare(body);
  return corpus.ports.database.transaction(() => extractions.apply(body, prepared).outcomes);
}

async function stored({ corpus }: MemoryWorld) {
  const { items } = await corpus.list(EDITOR);
  return Promise.all(
    items.map(async ({ id, content }) => ({
      content,
      sources: (await corpus.why(EDITOR, id)).sources.map(({ turnId }) => turnId),
    })),
  );
}

describe("SAMETEXT-1 an equal text of one subject adds its source", () => {
  test.each(FORMS)("FOLD-2 %j and %j, by tools, extractions and the API", async (one, other) => {
    const world = new MemoryWorld();
    const [first] = await world.corpus.write(tool(1), [{ content: one, type: "fact", significance: 0.2 }]);
    const [again] = await world.corpus.write(tool(2), [{ content: other, type: "note", significance: 0.9 }]);
    expect(again).toEqual(first);
    expect(await extract(world, 3, other)).toEqual([{ status: "unchanged", memoryId: first?.id }]);
    const about = { ...WRITER, subject: { userId: "ada" } };
    expect(await world.corpus.write(about, [{ content: other }])).toEqual([first]);
    expect(await stored(world)).toEqual([{ content: one, sources: ["turn_1", "turn_2", "turn_3"] }]);
    for (const query of [one, other]) {
      const { matches } = await world.corpus.search(EDITOR, { query, minRelevance: 0.9 });
      expect(matches.map(({ memory }) => memory.id)).toEqual([first?.id]);
    }
  });

  test("an extraction is first, and a batch repeats a text", async () => {
    const world = new MemoryWorld();
    expect(await extract(world, 1, "Ada likes tea.")).toMatchObject([{ status: "applied" }]);
    await world.corpus.write(tool(2), [{ content: "ADA LIKES TEA" }, { content: "Ada likes tea!" }]);
    expect(await stored(world)).toEqual([{ content: "Ada likes tea.", sources: ["turn_1", "turn_2"] }]);
  });

  test("users keep their own memories, and so do conversations in their scope", async () => {
    const world = new MemoryWorld();
    const apart = [tool(3, "conversation"), tool(4, "conversation")];
    for (const writer of [tool(1), tool(2, "user", "bob"), ...apart, ...apart])
      await world.corpus.write(writer, [{ content: "Tea is good." }]);
    expect((await stored(world)).map(({ sources }) => sources)).toEqual([
      ["turn_1"],
      ["turn_2"],
      ["turn_3"],
      ["turn_4"],
    ]);
  });

  test("a conversation adds no source to a memory that it may only read", async () => {
    const world = new MemoryWorld();
    const [shared] = await world.corpus.write(WRITER, [{ content: "We close at six." }]);
    const { subject: _, ...anybody } = tool(1, "agent");
    const writer = { ...anybody, reader: { scope: "agent", conversationId: "conv_1" } as const };
    expect(await world.corpus.write(writer, [{ content: "we close at six" }])).toEqual([shared]);
    expect(await stored(world)).toEqual([{ content: "We close at six.", sources: [] }]);
  });

  test("a memory that an author confirms outlives its sources", async () => {
    const world = new MemoryWorld();
    const [learned] = await world.corpus.write(tool(1), [{ content: "Ada likes tea." }]);
    await world.corpus.write({ ...WRITER, subject: { userId: "ada" } }, [{ content: "ada likes tea" }]);
    expect(world.rows("memories")).toMatchObject([{ id: learned?.id, own: 1, version: 1 }]);
  });

  test.each<[string, Partial<MemoryInput>]>([
    ["a key", { key: "drink" }],
    ["a place in a session", { session: "monday", sequence: 4 }],
    ["a speaker", { speaker: "Bob" }],
    ["a time", { time: "2025-01-01T00:00:00Z" }],
    ["metadata", { metadata: { page: 3 } }],
    ["a type", { type: "preference" }],
  ])(
    "an author's text with its own %s is another memory, and repeating it returns that memory",
    async (_, more) => {
      const world = new MemoryWorld();
      const [plain] = await world.corpus.write(WRITER, [{ content: "Tea is good." }]);
      const [other] = await world.corpus.write(WRITER, [{ content: "Tea is good.", ...more }]);
      const [again] = await world.corpus.write(WRITER, [{ content: "Tea is good.", ...more }]);
      expect(other?.id).not.toBe(plain?.id);
      expect(again).toEqual(other);
    },
  );

  test("an archived, ended or erased text is written again", async () => {
    const world = new MemoryWorld();
    const content = "Tea is good.";
    const write = async () => (await world.corpus.write(WRITER, [{ content }]))[0]?.id ?? "";
    const ids = [await write()];
    await world.corpus.archive(WRITER, ids[0] ?? "");
    ids.push(await write());
    await world.corpus.update(WRITER, ids[1] ?? "", {
      validTo: "2020-01-01T00:00:00Z",
      validFrom: "2019-01-01T00:00:00Z",
    });
    ids.push(await write());
    await world.corpus.delete(WRITER, ids[2] ?? "");
    ids.push(await write());
    expect(new Set(ids).size).toBe(4);
  });
});

describe("searches", () => {
  test.each([
    ["👍", "The team sent 👍 for it"],
    ["👍", "The team sent 👍🏽 for it"],
    ["👩\u200d🚀", "She is a 👩🏿\u200d🚀 now"],
    ["🇩🇪", "Shipped to 🇩🇪🇫🇷"],
    ["❤️", "They ❤ it"],
    ["STRASSE", "Die Straße ist lang"],
    ["οδος", "ΟΔΟΣ"],
    ["ёлка", "Новая елка"],
    ["istanbul", "İSTANBUL"],
    ["ｐｉｐｅ", "A pipe"],
  ])("WORDS-1 WORDS-4 FTS-5 %j finds %j alone", (query, text) => {
    const { search, texts } = rankedMemories(["Something else 👎 🇫🇷", text]);
    expect(texts(query)).toEqual([text]);
    expect(search(query)[0]?.score.relevance).toBeGreaterThan(0.9);
  });

  test("WORDS-4 the matched words are shown unchanged", () => {
    expect(rankedMemories(["A 👍 for tea"]).search("👍 tea")[0]?.score.terms.sort()).toEqual(["tea", "👍"]);
  });

  test.each([
    "AND",
    '"open',
    "NEAR(a b)",
    "a*",
    "C++",
    "-x",
    "col:val",
    "POL-358",
    "20.04",
    "NOT OR",
    "^x {a b}: (c",
  ])("FTS-1 the syntax of FTS5 is text: %j is found", (query) => {
    const text = `Written as ${query} there`;
    expect(rankedMemories(["Something else", text]).texts(query)).toEqual([text]);
  });
});
