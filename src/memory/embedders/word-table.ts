/**
 * The table of word vectors: a compact static file of the Worker (`word-vectors.bin`). Its NOTICE names the source. Pure.
 *
 * Layout, little-endian: the bytes `DWV1`. Then, as 32-bit numbers, the number of words, the number of dimensions (even) and the byte
 * length of the words. Then the words as ASCII, separated by line feeds, most frequent first. Then a vector for each word with 4 bits per
 * dimension, lower half of a byte first. A vector has length 1 before it is rounded to levels between -`CLIP` and `CLIP`.
 */

export const WORD_TABLE_FILE = "word-vectors.bin";

const MAGIC = 0x31_56_57_44;
const HEADER_BYTES = 16;

/** Vectors of length 1 and 100 dimensions have components of about 0.1. Few exceed this. */
const CLIP = 0.3;
const LEVELS = 16;

/** A larger table is a damaged file. */
const MAX_WORDS = 1_000_000;
const MAX_DIMENSIONS = 1_024;

export class WordTable {
  readonly #ranks = new Map<string, number>();
  readonly #levels: Uint8Array;
  readonly dimensions: number;

  private constructor(words: readonly string[], levels: Uint8Array, dimensions: number) {
    for (const [rank, word] of words.entries()) this.#ranks.set(word, rank);
    this.#levels = levels;
    this.dimensions = dimensions;
  }

  /** Reads a file. Returns `null` for other bytes, such as an HTML page. */
  static read(bytes: ArrayBuffer): WordTable | null {
    if (bytes.byteLength < HEADER_BYTES) return null;
    const view = new DataView(bytes);
    const [magic, count, dimensions, length] = [0, 4, 8, 12].map((at) => view.getUint32(at, true));
    if (magic !== MAGIC || count === undefined || dimensions === undefined || length === undefined)
      return null;
    if (count > MAX_WORDS || dimensions > MAX_DIMENSIONS || dimensions % 2 !== 0) return null;
    if (bytes.byteLength !== HEADER_BYTES + length + (count * dimensions) / 2) return null;
    const words = new TextDecoder().decode(new Uint8Array(bytes, HEADER_BYTES, length)).split("\n");
    if (words.length !== count) return null;
    return new WordTable(words, new Uint8Array(bytes, HEADER_BYTES + length), dimensions);
  }

  /** Returns the frequency rank of a lower-case word, from 0, or `undefined` if it is unknown. */
  rankOf(word: string): number | undefined {
    return this.#ranks.get(word);
  }

  /** Adds the vector of the word of this rank, times `factor`, to `sum`. */
  addTo(sum: Float32Array, rank: number, factor: number): void {
    const start = (rank * this.dimensions) / 2;
    for (let index = 0; index < this.dimensions; index += 2) {
      const byte = this.#levels[start + index / 2] ?? 0;
      sum[index] = (sum[index] ?? 0) + factor * levelMiddle(byte & 15);
      sum[index + 1] = (sum[index + 1] ?? 0) + factor * levelMiddle(byte >> 4);
    }
  }
}

/** Writes a file. The vectors must have length 1 and an even number of dimensions. The words must be ASCII. */
export function encodeWordTable(words: readonly string[], vectors: readonly ArrayLike<number>[]): Uint8Array {
  const dimensions = vectors[0]?.length ?? 0;
  const text = new TextEncoder().encode(words.join("\n"));
  const bytes = new Uint8Array(HEADER_BYTES + text.length + (words.length * dimensions) / 2);
  const view = new DataView(bytes.buffer);
  for (const [index, value] of [MAGIC, words.length, dimensions, text.length].entries())
    view.setUint32(index * 4, value, true);
  bytes.set(text, HEADER_BYTES);
  let at = HEADER_BYTES + text.length;
  for (const vector of vectors) {
    for (let index = 0; index < dimensions; index += 2)
      bytes[at++] = levelOf(vector[index] ?? 0) | (levelOf(vector[index + 1] ?? 0) << 4);
  }
  return bytes;
}

function levelOf(value: number): number {
  const level = Math.floor(((value + CLIP) / (2 * CLIP)) * LEVELS);
  return Math.max(0, Math.min(LEVELS - 1, level));
}

function levelMiddle(level: number): number {
  return ((level + 0.5) / LEVELS) * 2 * CLIP - CLIP;
}
