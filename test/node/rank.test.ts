import fc from "fast-check";
import { expect, test } from "vitest";
import { largest } from "../../src/memory/ranking/largest.ts";
import { relevanceOf } from "../../src/memory/ranking/relevance.ts";
import { MIN_RELEVANCE } from "../../src/protocol/memory.ts";
import { NOW, rankedMemories, type TestMemory } from "../support/ranked-memories.ts";

const FACTS = [
  "The user is allergic to peanuts",
  "The user lives in Lisbon with two cats",
  "The team releases its software on Thursdays",
  "The dentist of the user is Dr. Almeida",
];

const session = (texts: readonly string[], fields: Partial<TestMemory> = {}): TestMemory[] =>
  texts.map((text, sequence) => ({ text, session: "s", sequence, ...fields }));

test("RANK-1 the semantic score decides between lexical equals, and weighs less if a memory has more of the words", () => {
  const memories = rankedMemories(["a red house", "a red horse", "a blue barn"]);
  const [first] = memories.search("red shed", { semantic: Float32Array.of(0.2, 0.9, 0.1) });
  expect(first?.n).toBe(1);
  const part = (query: string) =>
    memories.search(query, { semantic: Float32Array.of(0.2, 0.9, 0.1) }).find(({ n }) => n === 1)?.score.parts
      .semantic ?? 0;
  expect(part("red horse") / part("shed")).toBeCloseTo(0.5);
  const falling = ["shed", "red horse shed tower", "red horse shed", "red horse"].map(part);
  expect(falling).toEqual([...new Set(falling)].sort((a, b) => b - a));
});

test("RANK-2 the answer that follows a question is lifted", () => {
  const memories = rankedMemories(
    session(["Where is the passport?", "Top drawer.", "Lunch now?", "Yes, soup."]),
  );
  expect(memories.texts("passport").slice(0, 2)).toEqual(["Where is the passport?", "Top drawer."]);
});

test("RANK-2 long texts get little from their neighbours", () => {
  const long = `Well. ${"More and more about other things. ".repeat(40)}`;
  const lift = (answer: string) =>
    rankedMemories(session(["Where is the passport?", answer])).search("passport")[1]?.score.parts.neighbours;
  expect(lift(long)).toBeLessThan((lift("Top drawer.") ?? 0) / 5);
});

test("RANK-2 a memory that mentions what the query asks for comes first", () => {
  const first = (query: string, texts: string[]) => rankedMemories(texts).texts(query)[0];
  const trips = ["We go on trips as often as it rains", "We went on 14 trips in the rain"];
  expect(first("How many trips?", trips)).toBe(trips[1]);
  const hills = ["She ran up the hills and enjoyed that", "She ran up the hills of Malvern too"];
  expect(first("Where are the hills?", hills)).toBe(hills[1]);
  const books = ["He reads a long book about the sea", 'He reads a long book, "the sea"'];
  expect(first("Which book is long?", books)).toBe(books[1]);
  const { parts } = rankedMemories(trips).search("How many trips?")[0]?.score ?? {};
  expect(parts?.answer).toBeGreaterThan(0);
  expect(rankedMemories(trips).search("trips")[0]?.score.parts.answer).toBeUndefined();
});

test("RANK-2 a very short memory has a lower score than a longer memory that is as good", () => {
  const score = (text: string) => rankedMemories([text]).search("pottery")[0]?.score.total ?? 0;
  expect(score("Pottery!")).toBeLessThan(score("I signed up for a pottery class") / 1.5);
  expect(score("Pottery!")).toBeGreaterThan(0);
});

test("RANK-2 the speaker that the query names comes first", () => {
  const memories = rankedMemories([
    { text: "I like tea", speaker: "Ada" },
    { text: "I like tea", speaker: "Grace" },
  ]);
  const speakers = (query: string) => memories.search(query).map(({ n }) => n);
  expect(speakers("What does Ada like?")).toEqual([0, 1]);
  expect(speakers("What does Grace like?")).toEqual([1, 0]);
});

test("RANK-2 memories of the time that the query names are first, and no memory is left out", () => {
  const memories = rankedMemories([
    { text: "We went to the sea", time: Date.UTC(2023, 4, 20) },
    { text: "We went to the sea", time: Date.UTC(2022, 4, 20) },
    { text: "We went to the sea", time: Date.UTC(2021, 4, 20) },
  ]);
  expect(memories.search("the sea in May 2022").map(({ n }) => n)).toEqual([1, 2, 0]);
});

test("RANK-6 a time of few memories lifts them, and a time of all memories has no effect", () => {
  const lift = (times: number[]) =>
    rankedMemories(times.map((month) => ({ text: "We went to the sea", time: Date.UTC(2022, month, 20) })))
      .search("the sea in May 2022")
      .map(({ score }) => score.parts.time ?? 0);
  expect(lift([4, 4, 4])).toEqual([0, 0, 0]);
  const [rare = 0] = lift([4, 0, 0, 0]);
  const [common = 0] = lift([4, 4, 4, 0]);
  expect(rare).toBeGreaterThan(2 * common);
  expect(common).toBeGreaterThan(0);
});

test("RANK-2 a question for a time lifts memories that mention one", () => {
  const memories = rankedMemories(["The wedding was in June", "The wedding was lovely there"]);
  expect(memories.texts("When was the wedding?")[0]).toBe("The wedding was in June");
});

test("RANK-3 an invisible memory has no influence; a filtered memory raises its neighbours", () => {
  const texts = ["Where is the passport?", "Top drawer.", "A passport photo"];
  const memories = rankedMemories(session(texts));
  const alone = rankedMemories([{ text: "A passport photo" }]).search("passport photo");
  const hidden = memories.search("passport photo", { visible: new Uint8Array([0, 0, 1]) });
  expect(hidden.map(({ n }) => n)).toEqual([2]);
  expect(hidden[0]?.score.parts.neighbours).toBeUndefined();
  expect(alone[0]?.score.parts.neighbours).toBeUndefined();
  const filtered = memories.search("passport", { allowed: new Uint8Array([0, 1, 0]) });
  expect(filtered.map(({ n }) => n)).toEqual([1]);
});

const WORDS = ["passport", "drawer", "tea", "sea", "June", "where?", "red", "house", "the"];
const memory = fc.record({
  text: fc.array(fc.constantFrom(...WORDS), { maxLength: 6 }).map((words) => words.join(" ")),
  speaker: fc.constantFrom("Ada", "Grace"),
  session: fc.constantFrom("a", "b"),
  sequence: fc.integer({ min: 0, max: 9 }),
  time: fc.integer({ min: 0, max: NOW }),
  significance: fc.double({ min: 0, max: 1, noNaN: true }),
});
const query = fc
  .array(fc.constantFrom(...WORDS, "Ada", "2001", "when"), { maxLength: 5 })
  .map((words) => words.join(" "));

test("RANK-5 a hardly similar memory is a result only beside a match", () => {
  const found = (memories: readonly TestMemory[]) =>
    rankedMemories(memories)
      .search("passport", { semantic: Float32Array.of(0.1, 0.2, 0.3) })
      .map(({ n }) => n);
  const texts = ["A passport.", "Top drawer.", "Documents."];
  expect(found(texts.map((text) => ({ text })))).toEqual([0, 2]);
  expect(found(session(texts)).toSorted()).toEqual([0, 1, 2]);
});

test("RANK-4 results descend, are distinct, explain their total, and do not depend on the order of writes", () => {
  fc.assert(
    fc.property(
      fc.array(memory, { maxLength: 20 }),
      query,
      fc.integer({ min: 1, max: 30 }),
      (memories, text, limit) => {
        const numbered = memories.map((entry, n) => ({ ...entry, n }));
        const results = rankedMemories(numbered).search(text, { limit });
        const reversed = rankedMemories(numbered.toReversed()).search(text, { limit });
        expect(results.length).toBeLessThanOrEqual(limit);
        expect(new Set(results.map(({ n }) => n)).size).toBe(results.length);
        expect(reversed.map(({ n }) => n)).toEqual(results.map(({ n }) => n));
        for (const [index, { score }] of results.entries()) {
          expect(score.total).toBeLessThanOrEqual(
            results[index - 1]?.score.total ?? Number.POSITIVE_INFINITY,
          );
          const sum = Object.values(score.parts).reduce((total, part) => total + part, 0);
          expect(sum).toBeCloseTo(score.total, 9);
          expect(score.relevance).toBeGreaterThanOrEqual(0);
          expect(score.relevance).toBeLessThanOrEqual(1);
        }
      },
    ),
    { numRuns: 60 },
  );
});

test("a more significant memory never ranks lower for it", () => {
  fc.assert(
    fc.property(fc.array(memory, { minLength: 1, maxLength: 12 }), query, (memories, text) => {
      const before = rankedMemories(memories).search(text, { limit: 20 });
      const after = rankedMemories(
        memories.map((entry, n) => (n === 0 ? { ...entry, significance: 1 } : entry)),
      );
      const rankOf = (results: { n: number }[]) => results.findIndex(({ n }) => n === 0);
      const found = rankOf(before);
      if (found >= 0) expect(rankOf(after.search(text, { limit: 20 }))).toBeLessThanOrEqual(found);
    }),
    { numRuns: 60 },
  );
});

test.each([
  "What is the capital of Mongolia?",
  "How do I configure an ingress controller?",
  "hello",
  "thanks!",
  "",
  "🙂",
])("the query %j without a stored answer recalls no memory", (text) => {
  const memories = rankedMemories(FACTS);
  expect(memories.search(text, { minRelevance: MIN_RELEVANCE })).toEqual([]);
});

test.each([
  ["What is the user allergic to?", 0],
  ["When does the team release software?", 2],
  ["Who is the dentist?", 3],
])("the query %j recalls its memory", (text, n) => {
  const memories = rankedMemories(FACTS);
  expect(memories.search(text, { minRelevance: MIN_RELEVANCE })[0]?.n).toBe(n);
});

test("relevance is the share of the query's weight that a memory has, whatever else is stored", () => {
  const terms = [
    { word: "red", weight: 3, isCommon: false },
    { word: "house", weight: 1, isCommon: false },
    { word: "very", weight: 1, isCommon: true },
  ];
  expect(relevanceOf(terms, 0b011, 0)).toBe(1);
  expect(relevanceOf(terms, 0b001, 0)).toBe(0.75);
  expect(relevanceOf(terms, 0, 0.2)).toBe(0);
  expect(relevanceOf(terms, 0, 1)).toBeCloseTo(0.4);
  expect(relevanceOf([], 0, 0.9)).toBeCloseTo(0.4);
});

test("the largest values are found among any others", () => {
  const values = fc.array(fc.double({ min: 0, max: 1e6, noNaN: true }), { maxLength: 60 });
  fc.assert(
    fc.property(values, fc.integer({ min: 1, max: 10 }), (numbers, count) => {
      const indexes = largest(Float64Array.from(numbers), count);
      const best = numbers.filter((value) => value > 0).sort((a, b) => b - a);
      const found = indexes.map((index) => numbers[index] ?? 0).sort((a, b) => b - a);
      expect(found.slice(0, count)).toEqual(best.slice(0, count));
    }),
  );
});
