/**
 * Ranks the memories of an agent for a query. Pure.
 *
 * RANK-1  The score is a weighted sum of the lexical and the semantic score, each divided by its maximum. The best memory's share of the
 *         query's words, by rarity, reduces the semantic weight. If one memory has all words, half remains.
 * RANK-2  Neighbours in the session, the speaker, the session, an answered question, times, and mentions of what the query asks for lift
 *         memories. They never filter. Very short texts are lowered.
 * RANK-3  A memory that the reader must not see is never a result and affects no score. A filtered memory is never a result, but lifts its
 *         neighbours.
 * RANK-4  Results descend by score. Equal scores are ordered by key, newest first. Ranking depends only on its input.
 * RANK-6  A named time lifts memories less if many memories are from that time, because it distinguishes them less.
 * RANK-5  A memory is not a result if it has no term of the query, has a low cosine, and has no matching neighbour.
 */
import type { MemoryScore } from "../../protocol/memory-schemas.ts";
import { type Candidates, candidatesOf } from "./candidates.ts";
import { NONE } from "./columns.ts";
import { largest } from "./largest.ts";
import {
  liftAnswers,
  liftNeighbours,
  liftRecent,
  liftSessions,
  liftSignificant,
  liftSpeaker,
  liftTimes,
  lowerBrief,
} from "./lifts.ts";
import type { RankInput } from "./rank-input.ts";
import { relevanceOf } from "./relevance.ts";
import { DEFAULT_WEIGHTS } from "./weights.ts";

export interface Ranked {
  place: number;
  n: number;
  score: MemoryScore;
}

/** Share of the semantic weight if a memory has all terms. Similar meaning must not outrank exact matches. */
const EXACT_SHARE = 0.5;

/** Lowest cosine of a result without other evidence. Unrelated texts have less. */
const LEAST_COSINE = 0.25;

/** Exponent of the lexical score. It favours memories with many terms. */
const LEXICAL_POWER = 1.5;

interface Steps {
  lexical: Float64Array;
  semantic: Float64Array;
  neighbours: Float64Array;
  speaker: Float64Array;
  session: Float64Array;
  time: Float64Array;
  answer: Float64Array;
  significance: Float64Array;
  recency: Float64Array;
}

export function rank(input: RankInput): Ranked[] {
  const { columns, lexical, minRelevance = 0 } = input;
  const candidates = candidatesOf(input);
  const found = new Int32Array(candidates.places.length);
  const steps = stepsOf(input, candidates, found);
  const totals = steps.recency.slice();
  const relevance = (index: number) =>
    relevanceOf(lexical.terms, found[index] ?? 0, input.semantic?.[candidates.places[index] ?? NONE] ?? 0);
  for (const [index, place] of candidates.places.entries()) {
    const isLifted = (steps.neighbours[index] ?? 0) > (steps.semantic[index] ?? 0);
    const isAlone = found[index] === 0 && !isLifted && (input.semantic?.[place] ?? 0) < LEAST_COSINE;
    const isOut =
      isAlone || input.allowed?.[place] === 0 || (minRelevance > 0 && relevance(index) < minRelevance);
    if (isOut) totals[index] = 0;
  }
  const key = (index: number) => columns.n[candidates.places[index] ?? NONE] ?? NONE;
  return largest(totals, input.limit)
    .sort((a, b) => (totals[b] ?? 0) - (totals[a] ?? 0) || key(b) - key(a))
    .slice(0, input.limit)
    .map((index) => ({
      place: candidates.places[index] ?? NONE,
      n: key(index),
      score: {
        total: totals[index] ?? 0,
        relevance: relevance(index),
        parts: partsOf(steps, index),
        terms: lexical.terms
          .filter((_, bit) => ((found[index] ?? 0) & (1 << bit)) !== 0)
          .map(({ word }) => word),
      },
    }));
}

function stepsOf(input: RankInput, candidates: Candidates, found: Int32Array): Steps {
  const { columns, query, now } = input;
  const weights = { ...DEFAULT_WEIGHTS, ...input.weights };
  const scored = (scores: Float64Array) => ({ columns, candidates, scores });
  const { scores: byWords, exactness } = lexicalScores(input, candidates, found);
  const share = 1 - (1 - EXACT_SHARE) * exactness ** 2;
  const byMeaning = withSemantic(input, candidates, byWords, weights.semantic * share);
  const lexical = lowerBrief(scored(byWords));
  const semantic = lowerBrief(scored(byMeaning));
  const neighbours = liftNeighbours(scored(semantic), weights.neighbours, input);
  const speaker = liftSpeaker(scored(neighbours), weights.speaker, query);
  const session = liftSessions(scored(speaker), weights.session);
  const time = liftTimes(scored(session), weights.time, query);
  const answer = liftAnswers(scored(time), query);
  const significance = liftSignificant(scored(answer), weights.significance);
  const recency = liftRecent(scored(significance), weights.recency, now);
  return { lexical, semantic, neighbours, speaker, session, time, answer, significance, recency };
}

/**
 * Divides the lexical scores by the largest score. Sets the bits of found terms. `exactness` is the largest share of the terms' weight in
 * one memory.
 */
function lexicalScores({ columns, lexical }: RankInput, candidates: Candidates, found: Int32Array) {
  const scores = new Float64Array(candidates.places.length);
  const shares = new Map<number, number>();
  let maximum = 0;
  for (const match of lexical.matches) {
    const place = columns.placeOf(match.n);
    const index = place === undefined ? undefined : candidates.indexOf(place);
    if (index === undefined) continue;
    scores[index] = match.score;
    found[index] = match.found;
    maximum = Math.max(maximum, match.score);
    if (!shares.has(match.found)) shares.set(match.found, shareOf(lexical.terms, match.found));
  }
  return {
    scores: scores.map((score) => (score > 0 ? (score / maximum) ** LEXICAL_POWER : 0)),
    exactness: Math.max(0, ...shares.values()),
  };
}

function shareOf(terms: RankInput["lexical"]["terms"], found: number): number {
  let [mass, total] = [0, 0];
  for (const [bit, { weight }] of terms.entries()) {
    total += weight;
    if ((found & (1 << bit)) !== 0) mass += weight;
  }
  return mass / total;
}

/** Adds cosines relative to the largest, times `weight`. */
function withSemantic(
  { semantic }: RankInput,
  candidates: Candidates,
  scores: Float64Array,
  weight: number,
): Float64Array {
  if (semantic === undefined) return scores;
  const cosines = candidates.places.map((place) => Math.max(0, semantic[place] ?? 0));
  const maximum = cosines.reduce((most, cosine) => Math.max(most, cosine), 0);
  return maximum === 0
    ? scores
    : scores.map((score, index) => score + (weight * (cosines[index] ?? 0)) / maximum);
}

function partsOf(steps: Steps, index: number): MemoryScore["parts"] {
  const parts: MemoryScore["parts"] = {};
  let before = 0;
  // SAFETY: the keys of an object literal of the type `Steps`, in their order.
  for (const step of Object.keys(steps) as (keyof Steps)[]) {
    const after = steps[step][index] ?? 0;
    if (after !== before) parts[step] = after - before;
    before = after;
  }
  return parts;
}
