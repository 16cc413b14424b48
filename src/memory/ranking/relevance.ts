/** The relevance of a memory by itself, from 0 to 1, comparable between queries. Pure. */

/** A term of the query as it was looked up. */
export interface TermFound {
  word: string;
  /** Its inverse document frequency. */
  weight: number;
  /** It was not looked up. */
  isCommon: boolean;
}

/** Cosine from which a memory counts as similar, and that at which it counts in full. */
const COSINE_FLOOR = 0.45;
const COSINE_FULL = 0.95;

/** Share that a semantic match alone can reach. */
const SEMANTIC_SHARE = 0.6;

/**
 * Returns the relevance: the share of the query's weight that the memory has, and, for what is missing, its similarity.
 * `found` has the bits of the terms.
 */
export function relevanceOf(terms: readonly TermFound[], found: number, cosine: number): number {
  let [mass, total] = [0, 0];
  for (const [index, { weight, isCommon }] of terms.entries()) {
    if (isCommon) continue;
    total += weight;
    if ((found & (1 << index)) !== 0) mass += weight;
  }
  const lexical = total === 0 ? 0 : mass / total;
  const similar = Math.min(1, Math.max(0, (cosine - COSINE_FLOOR) / (COSINE_FULL - COSINE_FLOOR)));
  return lexical + (1 - lexical) * SEMANTIC_SHARE * similar;
}
