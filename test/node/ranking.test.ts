import fc from "fast-check";
import { expect, test } from "vitest";
import { analyzeQuery } from "../../src/memory/ranking/analyze-query.ts";
import { MemoryColumns } from "../../src/memory/ranking/columns.ts";
import { SpokenNames } from "../../src/memory/ranking/names.ts";
import { windowsOf } from "../../src/memory/ranking/times.ts";
import { queryTerms, wordsOf } from "../../src/memory/ranking/words.ts";
import { NOW, rankedMemories } from "../support/ranked-memories.ts";

const termsOf = (query: string) => queryTerms(query).map(({ word }) => word);
const day = (time: number) => new Date(time).toISOString().slice(0, 10);
const windows = (query: string) => windowsOf(query, NOW).map(({ from, until }) => [day(from), day(until)]);

test.each([
  ["Don't ＰＡＮＩＣ, it's 42!", ["don", "t", "panic", "it", "s", "42"]],
  ["हिन्दी में", ["हिन्दी", "में"]],
  ["昨日しりとりをした, OK", ["昨日しりとりをした", "ok"]],
])("WORDS-1 the words of %j are runs of letters, marks and digits", (text, words) => {
  expect(wordsOf(text)).toEqual(words);
});

test.each([
  ["しりとり", ["私たちは昨日しりとりをしました", "昨日は雨でした"]],
  ["火锅", ["我们晚上去吃火锅了", "我们晚上去看电影"]],
  ["猫", ["うちに猫がいます", "うちに犬がいます"]],
  ["서울", ["어제 서울에서 만났어요", "어제 부산에 갔어요"]],
  ["ｶﾀｶﾅ", ["カタカナを練習した", "ひらがなを練習した"]],
])("WORDS-2 %s is found inside of a sentence", (query, [expected = "", other = ""]) => {
  expect(rankedMemories([other, expected]).texts(query)[0]).toBe(expected);
});

test("WORDS-3 a query loses function words unless all its words are function words, and repetitions of a stem", () => {
  expect(termsOf("What did they do with the dogs and the dog?")).toEqual(["dogs"]);
  expect(termsOf("私はしりとり")).toEqual(["私は", "はし", "しり", "りと", "とり"]);
  expect(termsOf("who are you")).toEqual(["who", "are", "you"]);
});

test.each([
  ["What happened on 3 May 2023?", [["2023-05-03", "2023-05-14"]]],
  ["What happened in May 2023?", [["2023-05-01", "2023-06-13"]]],
  ["What happened in 2022?", [["2022-01-01", "2023-02-01"]]],
  ["Where was I last week?", [["2024-06-03", "2024-06-20"]]],
  ["What did I do yesterday?", [["2024-06-11", "2024-06-22"]]],
  ["What did we plan in summer 2022?", [["2022-06-01", "2022-09-16"]]],
  ["What did we do last autumn?", [["2023-09-01", "2023-12-16"]]],
  ["What did she say in November?", [["2023-11-01", "2023-12-13"]]],
  ["between May 2022 and the call at 3 pm", [["2022-05-01", "2022-06-13"]]],
])("TIMES-1, TIMES-2 the times of %j are %j", (query, expected) => {
  expect(windows(query)).toEqual(expected);
});

test.each([
  "May I march there?",
  "She sat down at 3 pm",
  "room 2022-b",
  "the fall of Rome",
  "a version 1.2019.3",
])("TIMES-1 %j names no time", (query) => {
  expect(windows(query)).toEqual([]);
});

test("COLUMNS-1 the places of a session stay in order, whatever is put, replaced and removed", () => {
  const entry = fc.record({
    n: fc.integer({ min: 0, max: 15 }),
    session: fc.constantFrom("a", "b", undefined),
    sequence: fc.option(fc.integer({ min: 0, max: 5 }), { nil: undefined }),
    isRemoved: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 60 }), (changes) => {
      const columns = new MemoryColumns();
      const expected = new Map<number, { session?: string | undefined; sequence?: number | undefined }>();
      for (const { n, session, sequence, isRemoved } of changes) {
        if (isRemoved) {
          columns.remove(n);
          expected.delete(n);
          continue;
        }
        const fields = {
          ...(session === undefined ? {} : { session }),
          ...(sequence === undefined ? {} : { sequence }),
        };
        columns.put({
          n,
          type: "fact",
          time: 0,
          changedAt: 0,
          significance: 0.5,
          words: 1,
          flags: 0,
          ...fields,
        });
        expected.set(n, { session, sequence });
      }
      expect(columns.count).toBe(expected.size);
      for (const name of ["a", "b"]) {
        const places = columns.sessionPlaces(columns.sessions.numberOf(name));
        const ordered = [...expected]
          .filter(([, { session, sequence }]) => session === name && sequence !== undefined)
          .sort(([n, a], [m, b]) => (a.sequence ?? 0) - (b.sequence ?? 0) || n - m)
          .map(([n]) => n);
        expect(places.map((place) => columns.n[place])).toEqual(ordered);
        expect(places.map((place) => columns.indexInSession(place))).toEqual(
          ordered.map((_, index) => index),
        );
      }
    }),
  );
});

test("a query names the speakers with names in its words", () => {
  const speakers = new SpokenNames();
  for (const name of ["Ada Lovelace", "Ada Yonath", "Grace", "of"]) speakers.add(name);
  const named = (query: string) =>
    analyzeQuery(query, NOW, speakers).speakers.map((number) => speakers.nameOf(number));
  expect(named("What did Grace's friend say?")).toEqual(["Grace"]);
  expect(named("What does Ada like?")).toEqual(["Ada Lovelace", "Ada Yonath"]);
  expect(named("What does Ada Yonath like?")).toEqual(["Ada Yonath"]);
  expect(named("Who is a friend of hers?")).toEqual([]);
  expect(analyzeQuery("What does Grace like?", NOW, speakers).terms).toEqual([
    { word: "like", stem: "like", forms: ["like"] },
  ]);
  expect(analyzeQuery("Grace?", NOW, speakers).terms).toEqual([
    { word: "grace", stem: "grace", forms: ["grace"] },
  ]);
});
