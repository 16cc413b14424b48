/** Natural questions over the few memories of one user, with the word vectors of the package and the default floor of recall. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { staticEmbedder } from "../../src/memory/embedders/loaded-embedder.ts";
import { systemClock } from "../../src/ports/system.ts";
import { MIN_RELEVANCE } from "../../src/protocol/memory.ts";
import { IndexedMemories, someMemory } from "../support/indexed-memories.ts";

const FACTS = [
  "The user lives in Oslo.",
  "The user likes sushi.",
  "The user is allergic to peanuts.",
  "The user's cat is called Miso.",
  "The user works at a bakery.",
  "The user's sister lives in Bergen.",
  "The user decided to learn Norwegian.",
  "The user's birthday is on 3 May.",
  "The user prefers short answers.",
];

let memories: IndexedMemories;

beforeAll(async () => {
  const bytes = new Uint8Array(readFileSync(join(import.meta.dirname, "../../app/public/word-vectors.bin")));
  memories = new IndexedMemories(await staticEmbedder(async () => bytes.buffer, systemClock)());
  await memories.put(...FACTS.map((text, at) => someMemory(at + 1, { text })));
});

async function recalledFor(question: string): Promise<string[]> {
  const found = await memories.found(question, { minRelevance: MIN_RELEVANCE });
  return found.flatMap((n) => FACTS[n - 1] ?? []);
}

test.each([
  ["Where do I live?", "The user lives in Oslo."],
  ["What should I give my sister?", "The user's sister lives in Bergen."],
  ["Am I allergic to anything?", "The user is allergic to peanuts."],
  ["What is my cat called?", "The user's cat is called Miso."],
  ["Do I like sushi?", "The user likes sushi."],
  ["Where does my sister live?", "The user's sister lives in Bergen."],
  ["When is my birthday?", "The user's birthday is on 3 May."],
])("FTS-4 a question that shares its word with a memory recalls it: %s", async (question, fact) => {
  expect(await recalledFor(question)).toContain(fact);
});

test.each(["What is the capital of France?", "Write a poem on the sea.", "Hello!", "2 + 2"])(
  "FTS-4 a question without a stored answer recalls no memory: %s",
  async (question) => {
    expect(await recalledFor(question)).toEqual([]);
  },
);

test("FTS-4 a word of a memory weighs nearly as much as an unknown word", async () => {
  const { matches } = await memories.search("What should I give my sister?");
  expect(matches[0]?.score.relevance).toBeGreaterThan(0.5);
});
