/**
 * An embedding without a model and without a network: a hash of words and of their parts. Texts with common words and parts of
 * words are near each other; meaning plays no part. Pure.
 *
 * OFFEMBED-1  Equal texts have equal vectors, of length 1 and `HASH_DIMENSIONS` numbers. Case and punctuation play no part.
 */
import { hash32 } from "../../../shared/text.ts";

/** The numbers of a vector. */
export const HASH_DIMENSIONS = 256;
/** The name of the embedding, which is no model. */
export const HASH_MODEL = `offline-hash-${HASH_DIMENSIONS}`;

/** Weights of a whole word, and of three characters of it. */
const [WORD, TRIGRAM] = [1, 0.5];
/** A number has six decimals. */
const SCALE = 1_000_000;

/**
 * Returns a text with its characters in compatible forms (NFKC), which may be many times as long. Words are taken in parts of 256
 * characters: to order the marks of a word takes the square of their number.
 */
export function compatible(text: string): string {
  return text.replace(/\S{1,256}/gu, (part) => part.normalize("NFKC"));
}

export function hashEmbedding(text: string): number[] {
  const vector = new Array<number>(HASH_DIMENSIONS).fill(0);
  for (const [feature, { count, weight }] of featuresOf(text)) {
    const hash = hash32(feature);
    const sign = hash & 0x100 ? -1 : 1;
    const place = hash % HASH_DIMENSIONS;
    vector[place] = (vector[place] ?? 0) + sign * weight * (1 + Math.log(count));
  }
  const length = Math.hypot(...vector);
  // Features may cancel each other out.
  if (length === 0) vector[0] = 1;
  return vector.map((value) => Math.round((value / (length || 1)) * SCALE) / SCALE);
}

function featuresOf(text: string): Map<string, { count: number; weight: number }> {
  const features = new Map<string, { count: number; weight: number }>();
  const add = (feature: string, weight: number) => {
    const known = features.get(feature);
    if (known === undefined) features.set(feature, { count: 1, weight });
    else known.count += 1;
  };
  const plain = compatible(text).toLowerCase();
  const words = plain.match(/[\p{L}\p{M}\p{N}]+/gu) ?? [plain.trim()];
  for (const word of words) {
    add(`word ${word}`, WORD);
    const padded = ` ${word} `;
    for (let at = 0; at + 3 <= padded.length; at++) add(padded.slice(at, at + 3), TRIGRAM);
  }
  return features;
}
