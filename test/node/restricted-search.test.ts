/** Searches of readers who do not see all memories: invisible memories do not affect the answers. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FullText } from "../../src/memory/corpus/full-text.ts";
import { VisibleText } from "../../src/memory/corpus/index/visible-text.ts";
import type { IndexEntry, IndexQuery } from "../../src/memory/corpus/memory-index.ts";
import type { QueryContext } from "../../src/memory/embedders/embedder.ts";
import { MemoryColumns } from "../../src/memory/ranking/columns.ts";
import { describeText } from "../../src/memory/ranking/describe-text.ts";
import { queryTerms, wordsOf } from "../../src/memory/ranking/words.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import type { MemoryReader } from "../../src/protocol/memory.ts";
import { IndexedMemories, NOW } from "../support/indexed-memories.ts";
import { EDITOR, MemoryWorld, WRITER } from "../support/memory-world.ts";
import { WordEmbedder, wordVector } from "../support/test-embedders.ts";

/** Weights the words of a query by their rarity, as the static embedder does. */
class RarityEmbedder extends WordEmbedder {
  override async embedQuery(text: string, { rarity = () => 1 }: QueryContext = {}) {
    const sum = new Float32Array(this.dimensions);
    for (const word of wordsOf(text)) {
      const vector = wordVector(word, this.dimensions);
      for (let at = 0; at < this.dimensions; at++)
        sum[at] = (sum[at] ?? 0) + (vector?.[at] ?? 0) * rarity(word);
    }
    const length = Math.hypot(...sum);
    return length === 0 ? null : sum.map((value) => value / length);
  }
}

const WORDS = [
  "alice",
  "garden",
  "coffee",
  "buy",
  "bought",
  "train",
  "when",
  "how many",
  "2023",
  "smith",
  "茶",
  "?",
];
const text = fc
  .array(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 6 })
  .map((words) => words.join(" "));
const name = fc.option(fc.constantFrom("Alice Smith", "Bob", "Alice", "Coffee"), { nil: undefined });
const memory = fc.record({
  text,
  type: fc.constantFrom("fact", "event"),
  speaker: name,
  session: fc.option(fc.constantFrom("s1", "s2"), { nil: undefined }),
  sequence: fc.option(fc.integer({ min: 0, max: 9 }), { nil: undefined }),
  significance: fc.constantFrom(0, 0.5, 1),
  time: fc.constantFrom(NOW, NOW - 86_400_000, Date.UTC(2023, 5, 1)),
});
type Drawn = typeof memory extends fc.Arbitrary<infer Value> ? Value : never;

const READERS: Record<string, { visible: IndexQuery["visible"]; own: Partial<IndexEntry> }> = {
  "a member": { visible: { owner: "ada" }, own: { userId: "ada", conversationId: "c1" } },
  "a user's conversation": { visible: { scope: "user", userId: "ada" }, own: { userId: "ada" } },
  "a conversation without a user": { visible: { scope: "user" }, own: {} },
  "a conversation": {
    visible: { scope: "conversation", conversationId: "c1" },
    own: { conversationId: "c1" },
  },
};

function entryOf(n: number, { text, ...drawn }: Drawn, subject: Partial<IndexEntry>): IndexEntry {
  const defined = Object.fromEntries(Object.entries(drawn).filter(([, value]) => value !== undefined));
  return {
    ...{ n, text, changedAt: NOW, type: drawn.type, time: drawn.time },
    significance: 0.5,
    ...defined,
    ...subject,
  };
}

describe("MEMSEE-3 VISTEXT-1 memories that a reader does not see", () => {
  test.each(Object.keys(READERS))(
    "never affect the result, order, scores or terms for %s",
    async (reader) => {
      const { visible, own } = READERS[reader] ?? { visible: "all" as const, own: {} };
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.tuple(fc.boolean(), memory), { minLength: 1, maxLength: 24 }),
          text,
          fc.boolean(),
          async (drawn, query, isLate) => {
            const entries = drawn.map(([isSeen, one], at) =>
              entryOf(at + 1, one, isSeen ? own : { userId: "bob", conversationId: "c9" }),
            );
            const seen = entries.filter((_, at) => drawn[at]?.[0]);
            const alone = new IndexedMemories(new RarityEmbedder(16, true));
            await alone.put(...seen);
            const among = new IndexedMemories(new RarityEmbedder(16, true));
            await among.put(...entries.filter((entry) => !isLate || seen.includes(entry)));
            // Late memories have no vectors yet.
            among.embedder = null;
            if (isLate) await among.put(...entries.filter((entry) => !seen.includes(entry)));
            among.embedder = new RarityEmbedder(16, true);
            const options = { visible, limit: 100, weights: { recency: 1 } };
            const expected = await alone.search(query, options);
            expect(await among.search(query, options)).toEqual(
              seen.length === 0 ? { matches: [], semantic: expect.anything() } : expected,
            );
          },
        ),
        { numRuns: 60 },
      );
    },
  );

  test("MEMINDEX-5 the same holds for an index that they make too large for the pool", async () => {
    const entries = Array.from({ length: 60 }, (_, at) =>
      entryOf(
        at + 1,
        { text: `alice garden coffee word${at % 7}`, type: "fact", significance: 0.5, time: NOW } as Drawn,
        { userId: at % 3 === 0 ? "ada" : "bob" },
      ),
    );
    const { IndexPool } = await import("../../src/memory/corpus/index/pool.ts");
    const alone = new IndexedMemories(new RarityEmbedder(16, true));
    await alone.put(...entries.filter(({ userId }) => userId === "ada"));
    const among = new IndexedMemories(new RarityEmbedder(16, true), { pool: new IndexPool(10) });
    await among.put(...entries);
    const options = { visible: { owner: "ada" }, limit: 50 };
    expect(await among.search("alice word3", options)).toEqual(await alone.search("alice word3", options));
  });

  test("FTS-3 beyond the limits it is the seen memories that count, in pieces of any number", () => {
    const database = new NodeSqlDatabase();
    const fullText = new FullText(database);
    const columns = new MemoryColumns();
    fullText.create();
    for (let n = 0; n < 90; n++) {
      const text = `common ${n % 30 === 0 ? "rare" : "other"}`;
      fullText.put(n, text);
      columns.put({
        ...{ n, type: "fact", time: NOW, changedAt: NOW, significance: 0.5 },
        ...describeText(text),
      });
    }
    const visible = Uint8Array.from({ length: columns.size }, (_, place) => (place % 2 === 0 ? 1 : 0));
    const search = (scoreAll: number, rows: number) =>
      new VisibleText(database, columns, visible, { scoreAll, rows }).search(queryTerms("common rare"));
    expect(search(45, 1).matches).toHaveLength(45);
    const few = search(44, 10);
    expect(few.matches.map(({ n }) => n).sort((one, other) => one - other)).toEqual([0, 30, 60]);
    expect(few.terms.map(({ word, isCommon }) => [word, isCommon])).toEqual([
      ["rare", false],
      ["common", true],
    ]);
  });
});

describe("MEMSEE-3 members", () => {
  const ADA: MemoryReader = { principal: { subject: "ada", tenant: "acme", roles: ["member"] } };

  test("get no parts of scores, and cannot move a memory in a session", async () => {
    const { corpus } = new MemoryWorld();
    const [memory] = await corpus.write(WRITER, [
      { content: "Ada likes tea.", subject: { userId: "ada" }, session: "s", sequence: 1 },
    ]);
    const [own] = (await corpus.search(ADA, { query: "tea" })).matches;
    expect(own?.score).toMatchObject({ parts: {}, terms: ["tea"] });
    expect((await corpus.search(EDITOR, { query: "tea" })).matches[0]?.score.parts).not.toEqual({});
    const writer = { reader: ADA, author: WRITER.author };
    for (const change of [{ session: "other" }, { sequence: 2 }, { session: null }])
      await expect(corpus.update(writer, memory?.id ?? "", change)).rejects.toMatchObject({
        code: "FORBIDDEN",
      });
    await corpus.update(writer, memory?.id ?? "", { content: "Ada likes coffee." });
  });
});
