/** The relevance of a memory by itself, from 0 to 1, comparable between queries. Pure. */
import { isFunctionWord } from "./function-words.ts";

/** A term of the query as it was looked up. */
export interface TermFound {
  word: string;
  /** Its inverse document frequency. */
  weight: number;
  /** It was not looked up. */
  isCommon: boolean;
}

/** Cosine from which a memory counts as similar, and that at which it counts in full. */
const COSINE_FLOOR = 0.3;
const COSINE_FULL = 0.9;

/** Share that a semantic match alone can reach. */
const SEMANTIC_SHARE = 0.4;

/**
 * Returns the relevance: the share of the query's weight that the memory has, and, for what is missing, its similarity.
 * `found` has the bits of the terms. Function words make nothing relevant: a greeting recalls nothing.
 */
export function relevanceOf(terms: readonly TermFound[], found: number, cosine: number): number {
  let [mass, total] = [0, 0];
  for (const [index, { word, weight, isCommon }] of terms.entries()) {
    if (isCommon || isFunctionWord(word)) continue;
    total += weight;
    if ((found & (1 << index)) !== 0) mass += weight;
  }
  const lexical = total === 0 ? 0 : mass / total;
  const similar = Math.min(1, Math.max(0, (cosine - COSINE_FLOOR) / (COSINE_FULL - COSINE_FLOOR)));
  return lexical + (1 - lexical) * SEMANTIC_SHARE * similar;
}
