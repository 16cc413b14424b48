/** The weights of ranking and their defaults, which were tuned on the first five conversations of LoCoMo (docs/ranking.md). */
import type { RankingWeights } from "../../protocol/memory-requests.ts";

export const DEFAULT_WEIGHTS: RankingWeights = {
  semantic: 0.5,
  neighbours: 1,
  speaker: 1.8,
  session: 0.3,
  time: 2,
  significance: 0.3,
  recency: 0,
};
