/** Embedders for tests of the memory's index: hashes of words, of any number of dimensions. */
import type { Embedder } from "../../src/memory/embedders/embedder.ts";
import { hash32 } from "../../src/shared/text.ts";

/** Returns the vector of a text: each word has a separate direction. `null` for a text without words. */
export function wordVector(text: string, dimensions: number): Float32Array | null {
  const words = text.toLowerCase().match(/\p{L}+/gu) ?? [];
  if (words.length === 0) return null;
  const vector = new Float32Array(dimensions);
  for (const word of words) {
    let seed = hash32(word) || 1;
    for (let index = 0; index < dimensions; index++) {
      seed = Math.imul(seed ^ (seed >>> 15), 0x2c1b3c6d) + index;
      vector[index] = (vector[index] ?? 0) + ((seed >>> 8) % 2_001) / 1_000 - 1;
    }
  }
  const length = Math.hypot(...vector);
  return vector.map((value) => value / length);
}

/** An embedder that counts its texts, and can fail. */
export class WordEmbedder implements Embedder {
  readonly id: string;
  embedded = 0;
  requests = 0;
  /** Thrown instead of an answer. */
  failure: Error | null = null;

  constructor(
    readonly dimensions: number,
    readonly isLocal: boolean,
    name = "words",
  ) {
    this.id = `${name}-${dimensions}`;
  }

  async embed(texts: readonly string[]) {
    this.requests += 1;
    if (this.failure !== null) throw this.failure;
    this.embedded += texts.length;
    return texts.map((text) => wordVector(text, this.dimensions));
  }

  async embedQuery(text: string) {
    if (this.failure !== null) throw this.failure;
    return wordVector(text, this.dimensions);
  }
}
