/**
 * An embedder without a model: the vector of a text is the weighted sum of its words' vectors.
 *
 * STATICVEC-1  A text without a known content word has no vector.
 * STATICVEC-2  A missing or damaged table means no embedder: searches go on by words. A load that fails is tried again at the next use,
 *             and one that is silent for two seconds half a minute later.
 */
import type { Clock } from "../../ports/clock.ts";
import { withDeadline } from "../../ports/deadline.ts";
import { isFunctionWord } from "../ranking/function-words.ts";
import { wordsOf } from "../ranking/words.ts";
import type { Embedder, QueryContext } from "./embedder.ts";
import { WordTable } from "./word-table.ts";

/** The name of the table's file beside the Worker. */
export const WORD_TABLE_FILE = "word-vectors.bin";

/** Frequent words weigh less: a / (a + p), where p is the share of a word in English texts. */
const SMOOTHING = 0.001;

/** Zipf's law: the share of a word falls with its rank. The table lacks about 150 function words, which come first. */
const FIRST_RANK = 150;
const HARMONIC = 13.5;

/** Milliseconds in which the table is loaded, and those without another attempt after a load that is silent. */
const [LOAD_MS, SILENCE_MS] = [2_000, 30_000];

/** Words of a text that count at most. */
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

/** Returns an embedder on a table that is loaded at its first use, once an isolate; `null` without the table. */
export function staticEmbedder(
  load: () => Promise<ArrayBuffer | null>,
  clock: Pick<Clock, "now" | "timer">,
): () => Promise<Embedder | null> {
  let loading: Promise<Embedder | null> | undefined;
  let pauseUntil = 0;
  return async () => {
    if (clock.now() < pauseUntil) return null;
    loading ??= load().then((bytes) => {
      const table = bytes === null ? null : WordTable.read(bytes);
      return table === null ? null : new StaticEmbedder(table);
    });
    const current = loading;
    try {
      // Every caller has a deadline of its own: the actor that began the load may be gone.
      return await withDeadline(clock, LOAD_MS, () => current);
    } catch (error) {
      if (loading !== current) return null;
      loading = undefined;
      if (error instanceof DOMException && error.name === "TimeoutError")
        pauseUntil = clock.now() + SILENCE_MS;
      console.warn("The word vectors could not be loaded. Searches of memories go on without them.", error);
      return null;
    }
  };
}

function countedWords(text: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const word of wordsOf(text).slice(0, MAX_WORDS)) counts.set(word, (counts.get(word) ?? 0) + 1);
  return counts;
}

/** Returns the vector with length 1, or `null` for one without a direction. */
function normalized(vector: Float32Array): Float32Array | null {
  const length = Math.hypot(...vector);
  return length > 1e-9 && Number.isFinite(length) ? vector.map((value) => value / length) : null;
}
