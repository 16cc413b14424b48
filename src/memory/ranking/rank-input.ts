/** The input of a ranking. */
import type { RankingWeights } from "../../protocol/memory.ts";
import type { AnalyzedQuery } from "./analyze-query.ts";
import type { MemoryColumns } from "./columns.ts";
import type { TermFound } from "./relevance.ts";

/** The matches of the full text, in no order. */
interface LexicalScores {
  terms: readonly TermFound[];
  matches: readonly { n: number; score: number; found: number }[];
}

export interface RankInput {
  columns: MemoryColumns;
  query: AnalyzedQuery;
  lexical: LexicalScores;
  /** The cosine of each place with the query, 0 for a memory without a vector. Absent: there are no vectors. */
  semantic?: Float32Array;
  /** 0 for each place that the reader must not see: it influences nothing. Absent: all are visible. */
  visible?: Uint8Array;
  /** 0 for each place that the filter leaves out of the results. It may still lift its neighbours. Absent: all may be results. */
  allowed?: Uint8Array;
  /** The time of the question, in milliseconds since the epoch. */
  now: number;
  weights?: Partial<RankingWeights>;
  limit: number;
  /** Leaves out results of less relevance. */
  minRelevance?: number;
}
