/** Texts and questions of the case `memory-load`: words from the table of word vectors, by Zipf's law. They are the same in every run. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { StaticEmbedder } from "../../src/memory/embedders/static-embedder.ts";
import { WORD_TABLE_FILE, WordTable } from "../../src/memory/embedders/word-table.ts";
import type { MemoryInput } from "../../src/protocol/memory-requests.ts";
import { mulberry32 } from "../../src/shared/mulberry32.ts";

/** The folder of the file of word vectors. */
export const FILES = join(import.meta.dirname, "../../app/public");
/** Memories of a session. */
const SESSION = 40;
/** Words of a text, at least and at most. */
const [SHORTEST, LONGEST] = [10, 40];
const FIRST_DAY = Date.UTC(2026, 0, 1);
const SPEAKERS = ["Ada", "Bruno", "Chloe", "Dmitri", "Elif", "Farid"];

/** Returns the embedder of all systems. */
export function wordVectors(): StaticEmbedder {
  const table = WordTable.read(bytes());
  if (table === null) throw new Error(`${WORD_TABLE_FILE} is not a table of word vectors.`);
  return new StaticEmbedder(table);
}

/** A memory, and a question with four of its words. */
export interface Sample {
  input: MemoryInput & { content: string };
  question: string;
}

/** Yields `count` memories. */
export function* samples(count: number): Generator<Sample> {
  const words = vocabulary();
  const random = mulberry32(7);
  const word = () => words[Math.floor(words.length ** random())] ?? "thing";
  for (let n = 0; n < count; n += 1) {
    const length = SHORTEST + Math.floor(random() * (LONGEST - SHORTEST));
    const text = Array.from({ length }, word);
    const [first, second, third, fourth] = [...new Set(text.toSorted((a, b) => rank(b) - rank(a)))];
    yield {
      input: {
        content: `${text.join(" ")}.`,
        speaker: SPEAKERS[Math.floor(random() * SPEAKERS.length)] ?? "Ada",
        session: `session-${Math.floor(n / SESSION)}`,
        sequence: n % SESSION,
        time: new Date(FIRST_DAY + n * 60_000).toISOString(),
      },
      question: `What did they say about ${third} ${fourth} and ${first} or ${second}?`,
    };
  }
  function rank(of: string): number {
    return ranks.get(of) ?? 0;
  }
}

const ranks = new Map<string, number>();

/** The words of the table, the most frequent first. */
function vocabulary(): string[] {
  const view = new DataView(bytes());
  const words = new TextDecoder()
    .decode(new Uint8Array(view.buffer, 16, view.getUint32(12, true)))
    .split("\n");
  for (const [index, word] of words.entries()) ranks.set(word, index);
  return words;
}

function bytes(): ArrayBuffer {
  const file = readFileSync(join(FILES, WORD_TABLE_FILE));
  return file.buffer.slice(file.byteOffset, file.byteOffset + file.byteLength);
}
