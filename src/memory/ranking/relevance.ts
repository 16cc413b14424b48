/** The relevance of a single memory, from 0 to 1, comparable between queries. Pure. */
import { isFunctionWord } from "./function-words.ts";

export interface TermFound {
  word: string;
  weight: number;
  /** The term was not looked up. */
  isCommon: boolean;
}

/** Lowest cosine of a similar memory, and the cosine of a fully similar memory. */
const COSINE_FLOOR = 0.3;
const COSINE_FULL = 0.9;

/** Maximum relevance of a match that is only semantic. */
const SEMANTIC_SHARE = 0.4;

/**
 * Returns the share of the query's weight that the memory has. Similarity fills a part of the missing share. `found` has the bits of the
 * terms. Function words have no weight, so a greeting recalls no memory.
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
