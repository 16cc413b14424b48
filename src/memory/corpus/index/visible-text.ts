/**
 * Full-text search for a reader who sees only some memories. All counts use only the visible memories.
 *
 * VISTEXT-1  Memories that the reader does not see have no effect on matches, weights or averages. FTS5 counts them, so its scores are not
 *            used. A word counts once per memory, by its rarity and the memory's length.
 */
import type { SqlDatabase } from "../../../ports/sql-database.ts";
import { type MemoryColumns, NONE } from "../../ranking/columns.ts";
import type { QueryTerm } from "../../ranking/words.ts";
import {
  anyOf,
  type FullTextMatch,
  type FullTextMatches,
  LEAST_SIZE,
  PAIR_SHARE,
  pairsOf,
  quoted,
  rarestTerms,
  rarityOf,
  SEARCH_LIMITS,
  type SearchLimits,
  type WeightedTerm,
} from "../full-text.ts";

const CHUNK = 20_000;

/** The parameters of BM25, for a term frequency of 1. */
const [SATURATION, LENGTH_SHARE] = [1.2, 0.75];

const AMONG = `FROM memory_text WHERE memory_text MATCH ?1 AND rowid BETWEEN ?2 AND ?3
  AND +rowid IN (SELECT value FROM json_each(?4))`;
const MATCHES = `SELECT rowid AS n ${AMONG}`;
const COUNT = `SELECT count(*) AS rows ${AMONG}`;

export class VisibleText {
  /** The keys that the reader sees, ascending, in chunks. */
  readonly #chunks: [first: number, last: number, keys: string][] = [];
  readonly #size: number;
  readonly #averageWords: number;

  /** `visible` has 1 for each place that the reader sees. */
  constructor(
    private readonly database: SqlDatabase,
    private readonly columns: MemoryColumns,
    visible: Uint8Array,
    private readonly limits: SearchLimits = SEARCH_LIMITS,
  ) {
    const keys: number[] = [];
    let words = 0;
    for (let place = 0; place < columns.size; place++) {
      if (visible[place] !== 1) continue;
      keys.push(columns.n[place] ?? NONE);
      words += columns.words[place] ?? 0;
    }
    keys.sort((one, other) => one - other);
    for (let from = 0; from < keys.length; from += CHUNK) {
      const chunk = keys.slice(from, from + CHUNK);
      this.#chunks.push([chunk[0] ?? NONE, chunk.at(-1) ?? NONE, JSON.stringify(chunk)]);
    }
    this.#size = keys.length;
    this.#averageWords = words / Math.max(1, keys.length);
  }

  search(terms: readonly QueryTerm[]): FullTextMatches {
    const isWhole = this.#size <= this.limits.scoreAll;
    const counted = rarestTerms(
      terms.map((term) => {
        const keys = isWhole ? this.#keysWith(anyOf(term)) : undefined;
        return { term, keys, rows: keys?.length ?? this.#rowsWith(anyOf(term)) };
      }),
    );
    const found = new Map<number, FullTextMatch>();
    let rowsLeft = isWhole ? Number.POSITIVE_INFINITY : this.limits.rows;
    const weighted = counted.map(({ term, keys, rows }, index): WeightedTerm => {
      const weight = rarityOf(this.#size, rows);
      const isCommon = found.size > 0 && rows > rowsLeft;
      if (!isCommon)
        for (const n of keys ?? this.#keysWith(anyOf(term))) {
          const match = found.get(n) ?? { n, score: 0, found: 0 };
          match.score += this.#scoreOf(n, weight);
          match.found |= 1 << index;
          found.set(n, match);
        }
      rowsLeft -= rows;
      return { ...term, weight: rarityOf(Math.max(this.#size, LEAST_SIZE), rows), isCommon };
    });
    for (const { expression } of pairsOf(terms, weighted)) {
      const keys = this.#keysWith(expression);
      const weight = PAIR_SHARE * rarityOf(this.#size, keys.length);
      for (const n of keys) {
        const match = found.get(n);
        if (match !== undefined) match.score += this.#scoreOf(n, weight);
      }
    }
    return { terms: weighted, matches: [...found.values()] };
  }

  rarity(word: string): number {
    return rarityOf(this.#size, this.#rowsWith(quoted(word)));
  }

  /** Returns the score of a memory with a word of a weight. */
  #scoreOf(n: number, weight: number): number {
    const words = this.columns.words[this.columns.placeOf(n) ?? NONE] ?? 0;
    const length = 1 - LENGTH_SHARE + (LENGTH_SHARE * words) / Math.max(1, this.#averageWords);
    return (weight * (SATURATION + 1)) / (1 + SATURATION * length);
  }

  #keysWith(expression: string): number[] {
    return this.#chunks.flatMap((chunk) =>
      this.database.all<{ n: number }>(MATCHES, expression, ...chunk).map(({ n }) => n),
    );
  }

  #rowsWith(expression: string): number {
    return this.#chunks
      .map((chunk) => this.database.all<{ rows: number }>(COUNT, expression, ...chunk)[0]?.rows ?? 0)
      .reduce((sum, rows) => sum + rows, 0);
  }
}
