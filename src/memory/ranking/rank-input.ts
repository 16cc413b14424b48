/** The input of a ranking. */
import type { RankingWeights } from "../../protocol/memory-requests.ts";
import type { AnalyzedQuery } from "./analyze-query.ts";
import type { MemoryColumns } from "./columns.ts";
import type { TermFound } from "./relevance.ts";

/** The matches of the full text, unordered. */
interface LexicalScores {
  terms: readonly TermFound[];
  matches: readonly { n: number; score: number; found: number }[];
}

export interface RankInput {
  columns: MemoryColumns;
  query: AnalyzedQuery;
  lexical: LexicalScores;
  /** The cosine of each place with the query. 0 for a memory without a vector. Absent if there are no vectors. */
  semantic?: Float32Array;
  /** 0 for each place that the reader must not see. Such a place has no effect. Absent if all are visible. */
  visible?: Uint8Array;
  /** 0 for each place that the filter excludes from the results. It may still lift its neighbours. Absent if all are allowed. */
  allowed?: Uint8Array;
  /** The time of the question, in milliseconds since the epoch. */
  now: number;
  weights?: Partial<RankingWeights>;
  limit: number;
  /** Drops results of less relevance. */
  minRelevance?: number;
}
