/**
 * An embedder without a model: the vector of a text is the weighted sum of its words' vectors.
 *
 * STATICVEC-1  A text without a known content word has no vector.
 */
import { isFunctionWord } from "../ranking/function-words.ts";
import { wordsOf } from "../ranking/words.ts";
import type { Embedder, QueryContext } from "./embedder.ts";
import type { WordTable } from "./word-table.ts";

/** Weighs down frequent words: a / (a + p), with p as the share of a word in English texts. */
const SMOOTHING = 0.001;

/** Zipf's law: the share of a word falls with its rank. About 150 function words come first. The table omits them. */
const FIRST_RANK = 150;
const HARMONIC = 13.5;

const MAX_WORDS = 5_000;

export class StaticEmbedder implements Embedder {
  readonly id = "glove-wiki-24k-100d-v1";
  readonly isLocal = true;
  readonly dimensions: number;
  readonly #table: WordTable;

  constructor(table: WordTable) {
    this.#table = table;
    this.dimensions = table.dimensions;
  }

  async embed(texts: readonly string[]): Promise<(Float32Array | null)[]> {
    return texts.map((text) => this.#vectorOf(text, () => 1));
  }

  async embedQuery(text: string, { rarity }: QueryContext): Promise<Float32Array | null> {
    return this.#vectorOf(text, rarity ?? (() => 1));
  }

  #vectorOf(text: string, rarity: (word: string) => number): Float32Array | null {
    const sum = new Float32Array(this.dimensions);
    for (const [word, count] of countedWords(text)) {
      const rank = isFunctionWord(word) ? undefined : this.#table.rankOf(word);
      if (rank === undefined) continue;
      const share = 1 / (HARMONIC * (rank + FIRST_RANK));
      this.#table.addTo(sum, rank, (count * rarity(word) * SMOOTHING) / (SMOOTHING + share));
    }
    return normalized(sum);
  }
}

function countedWords(text: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const word of wordsOf(text).slice(0, MAX_WORDS)) counts.set(word, (counts.get(word) ?? 0) + 1);
  return counts;
}

/** Returns the unit vector, or `null` for a zero vector. */
function normalized(vector: Float32Array): Float32Array | null {
  const length = Math.hypot(...vector);
  return length > 1e-9 && Number.isFinite(length) ? vector.map((value) => value / length) : null;
}
