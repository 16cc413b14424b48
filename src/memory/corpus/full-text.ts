/**
 * Full-text search of an agent's memories: an FTS5 table in its database, with porter stemming.
 *
 * FTS-1  No query string breaks the search. It consists of the quoted words of the query.
 * FTS-2  A removed text leaves the segments of the index in the same transaction (`secure-delete`).
 * FTS-3  If a query has rare words, words that many memories share are dropped. So a search reads a bounded number of rows.
 * FTS-5  FTS5 indexes letters and digits only. So a pictograph is stored as a private-use character.
 * FTS-4  Among few memories, a known word weighs nearly as much as an unknown word. So one shared word can recall a memory.
 * FTS-7  Two adjacent words of a query that are near each other in a memory add to its score.
 * FTS-6  A query with too many words keeps its rarest words that memories have. Words that no memory has come last.
 */
import type { ActorDatabase } from "../../ports/sql-database.ts";
import { type QueryTerm, textTerms } from "../ranking/words.ts";

/** Most terms of a query that are looked up. Each uses one bit. */
const MAX_LOOKED_UP = 30;

/** The words between two words that are near each other, at most. */
const NEAR = 5;
/** The share of a near pair in a score, relative to a word of its rarity. */
export const PAIR_SHARE = 0.65;

/** Returns the terms to look up, the rarest first (FTS-6). `rows` is the number of memories with the term. */
export function rarestTerms<Term extends { rows: number }>(terms: readonly Term[]): Term[] {
  const orderOf = ({ rows }: Term) => (rows === 0 ? Number.MAX_SAFE_INTEGER : rows);
  return terms.toSorted((a, b) => orderOf(a) - orderOf(b)).slice(0, MAX_LOOKED_UP);
}

export interface SearchLimits {
  /** Up to this many memories, everything is scored. */
  scoreAll: number;
  /** Rows that a larger search reads, unless its rarest word needs more. */
  rows: number;
}

const SCORE_ALL = 20_000;
const MAX_ROWS = 8_000;
export const SEARCH_LIMITS: SearchLimits = { scoreAll: SCORE_ALL, rows: MAX_ROWS };

/** Frequencies among fewer memories say little. Rarity uses at least this size. */
export const LEAST_SIZE = 1_000;

/** Cached row counts stay valid while the number of memories changes by less than this share. */
const COUNT_DRIFT = 0.1;

export interface WeightedTerm extends QueryTerm {
  /** Inverse document frequency, above 0. An unknown term has the largest weight. */
  weight: number;
  /** Dropped, because very many memories have it. */
  isCommon: boolean;
}

export interface FullTextMatch {
  n: number;
  /** Above 0; higher is better. */
  score: number;
  /** A bit for each matching term, by its index. */
  found: number;
}

export interface FullTextMatches {
  terms: readonly WeightedTerm[];
  /** Unordered. */
  matches: readonly FullTextMatch[];
}

/** Numbers of memories and their scores, in the same order, as JSON. */
type ScoresRow = { ns: string; scores: string };

export class FullText {
  readonly #database: ActorDatabase;
  readonly #limits: SearchLimits;
  #counts = new Map<string, number>();
  #countedAt = 0;
  #size: number | undefined;

  constructor(database: ActorDatabase, limits: SearchLimits = SEARCH_LIMITS) {
    this.#database = database;
    this.#limits = limits;
  }

  /** Idempotent. */
  create(): void {
    this.#database.run(CREATE);
    if (this.#database.all(IS_SECURE).length === 0) this.#database.run(SECURE_DELETE);
  }

  /** Adds or replaces the text of `n`, in the caller's transaction. */
  put(n: number, text: string): void {
    this.#database.run(PUT, n, inTable(textTerms(text.toWellFormed()).join(" ")));
    this.#size = undefined;
  }

  /** Removes the text of `n`, in the caller's transaction. */
  remove(n: number): void {
    this.#database.run(DELETE, n);
    this.#size = undefined;
  }

  search(terms: readonly QueryTerm[]): FullTextMatches {
    const size = this.size();
    this.#forgetCounts(size);
    const counted = rarestTerms(terms.map((term) => ({ term, rows: this.#rowsWith(anyOf(term)) })));
    const found = new Map<number, FullTextMatch>();
    let rowsLeft = size <= this.#limits.scoreAll ? Number.POSITIVE_INFINITY : this.#limits.rows;
    const weighted = counted.map(({ term, rows }, index): WeightedTerm => {
      const isCommon = found.size > 0 && rows > rowsLeft;
      if (rows > 0 && !isCommon) this.#addMatches(found, term, index, rarityOf(size, rows));
      rowsLeft -= rows;
      return { ...term, weight: rarityOf(Math.max(size, LEAST_SIZE), rows), isCommon };
    });
    this.#addPairs(found, pairsOf(terms, weighted));
    return { terms: weighted, matches: [...found.values()] };
  }

  /** Returns the inverse document frequency of a lower-case word, above 0. */
  rarity(word: string): number {
    const size = this.size();
    this.#forgetCounts(size);
    return rarityOf(size, this.#rowsWith(quoted(word)));
  }

  /** Number of texts at the last commit. */
  size(): number {
    this.#size ??= firstVarint(
      this.#database.all<{ block: Uint8Array }>(AVERAGES)[0]?.block ?? new Uint8Array(),
    );
    return this.#size;
  }

  /** Adds the memories with a term. All forms of the term have its rarity. */
  #addMatches(found: Map<number, FullTextMatch>, { forms }: QueryTerm, index: number, rarity: number): void {
    for (const form of forms.map(quoted)) {
      const rows = this.#rowsWith(form);
      if (rows === 0) continue;
      const factor = rarity / weightInTable(this.size(), rows);
      for (const [n, score] of this.#scoresOf(form)) {
        const match = found.get(n) ?? { n, score: 0, found: 0 };
        match.score += score * factor;
        match.found |= 1 << index;
        found.set(n, match);
      }
    }
  }

  #addPairs(found: Map<number, FullTextMatch>, pairs: readonly Pair[]): void {
    const size = this.size();
    for (const { words, expression } of pairs) {
      const scores = [...this.#scoresOf(expression)];
      // FTS5 adds the scores of the two words.
      const inTable = words.reduce((sum, word) => sum + weightInTable(size, this.#rowsWith(word)), 0);
      const factor = (PAIR_SHARE * rarityOf(size, scores.length)) / inTable;
      for (const [n, score] of scores) {
        const match = found.get(n);
        if (match !== undefined) match.score += score * factor;
      }
    }
  }

  /** Yields the memories that match an expression with their scores, ascending by number. */
  *#scoresOf(expression: string): Generator<[n: number, score: number]> {
    let after = -1;
    for (;;) {
      const [row] = this.#database.all<ScoresRow>(SCORES, expression, after);
      const ns: number[] = JSON.parse(row?.ns ?? "[]");
      const scores: number[] = JSON.parse(row?.scores ?? "[]");
      for (const [index, n] of ns.entries()) yield [n, scores[index] ?? 0];
      if (ns.length < MAX_SCORES) return;
      after = ns.at(-1) ?? after;
    }
  }

  /** Forgets outdated counts. Among few memories, counts are good for one search. */
  #forgetCounts(size: number): void {
    const drift = Math.abs(size - this.#countedAt);
    if (drift <= this.#countedAt * COUNT_DRIFT && size > this.#limits.scoreAll) return;
    this.#counts = new Map();
    this.#countedAt = size;
  }

  #rowsWith(expression: string): number {
    const known = this.#counts.get(expression);
    if (known !== undefined) return known;
    const rows = this.#database.all<{ rows: number }>(COUNT, expression)[0]?.rows ?? 0;
    this.#counts.set(expression, rows);
    return rows;
  }
}

/** Quotes a word as an FTS5 phrase. */
export function quoted(word: string): string {
  return `"${inTable(word).replaceAll('"', '""')}"`;
}

export function anyOf({ forms }: QueryTerm): string {
  return forms.map(quoted).join(" OR ");
}

/** Two words, quoted, and an FTS5 expression for memories in which they are near each other. */
interface Pair {
  words: readonly string[];
  expression: string;
}

/** Returns the pairs of adjacent terms of a query that are both looked up (FTS-7). */
export function pairsOf(terms: readonly QueryTerm[], weighted: readonly WeightedTerm[]): Pair[] {
  const used = new Set(weighted.filter(({ isCommon }) => !isCommon).map(({ stem }) => stem));
  return terms.flatMap((term, index) => {
    const next = terms[index + 1];
    if (next === undefined || !used.has(term.stem) || !used.has(next.stem)) return [];
    const words = [quoted(term.word), quoted(next.word)];
    return [{ words, expression: `NEAR(${words.join(" ")}, ${NEAR})` }];
  });
}

/** Converts words to their form in the table (FTS-5). */
export function inTable(words: string): string {
  return words.replace(PICTOGRAPH, (character) =>
    String.fromCodePoint(PRIVATE_USE + ((character.codePointAt(0) ?? 0) & 0xffff)),
  );
}

/** Inverse document frequency. It stays above 0 even for a word that all memories have. */
export function rarityOf(size: number, rows: number): number {
  return Math.log(1 + (Math.max(0, size - rows) + 0.5) / (rows + 0.5));
}

/** Returns the weight by rarity in FTS5's scores. Words in more than half of the rows have almost none. */
function weightInTable(size: number, rows: number): number {
  const weight = Math.log((size - rows + 0.5) / (rows + 0.5));
  return weight <= 0 ? FTS5_LEAST_WEIGHT : weight;
}

/** Returns the first number of a record. Each byte has 7 bits, highest first. All but the last byte have the upper bit set. */
function firstVarint(bytes: Uint8Array): number {
  let value = 0;
  for (const byte of bytes) {
    value = value * 128 + (byte & 127);
    if (byte < 128) break;
  }
  return value;
}

/** All are below U+20000, and their lower 16 bits are distinct. */
const PICTOGRAPH = /\p{Extended_Pictographic}|\p{Regional_Indicator}/gu;
const PRIVATE_USE = 0xf0000;

const FTS5_LEAST_WEIGHT = 1e-6;

/** The tokenizer of words in their form in a table. */
export const TOKENIZER = "porter unicode61 remove_diacritics 2 categories 'L* N* M* Co'";
const CREATE = `CREATE VIRTUAL TABLE IF NOT EXISTS memory_text USING fts5(terms, tokenize = "${TOKENIZER}")`;
const IS_SECURE = "SELECT 1 FROM memory_text_config WHERE k = 'secure-delete'";
const SECURE_DELETE = "INSERT INTO memory_text (memory_text, rank) VALUES ('secure-delete', 1)";
const PUT = "INSERT OR REPLACE INTO memory_text (rowid, terms) VALUES (?, ?)";
const DELETE = "DELETE FROM memory_text WHERE rowid = ?";
/** The record in which FTS5 keeps the number of rows. Counting them would read all rows. */
const AVERAGES = "SELECT block FROM memory_text_data WHERE id = 1";
/** Scores per answer. A value has at most 2 MB, and a score has less than 30 characters. */
const MAX_SCORES = 20_000;
/** Two lists as JSON texts. A row per score would take twice the time. */
const SCORES = `SELECT json_group_array(n) AS ns, json_group_array(score) AS scores FROM (
  SELECT rowid AS n, -rank AS score FROM memory_text WHERE memory_text MATCH ? AND rowid > ? ORDER BY rowid LIMIT ${MAX_SCORES})`;
const COUNT = "SELECT count(*) AS rows FROM memory_text WHERE memory_text MATCH ?";
