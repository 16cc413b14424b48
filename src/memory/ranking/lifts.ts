/**
 * Ranking steps that lift memories: neighbours, speakers, sessions, times, significance and recency. Pure. Each step takes the scores of
 * the candidates, by index, and returns new scores.
 */
import type { AnalyzedQuery } from "./analyze-query.ts";
import { type Candidates, neighbourOf } from "./candidates.ts";
import { type MemoryColumns, NONE } from "./columns.ts";
import { ASKS, MENTIONS_NAME, MENTIONS_NUMBER, MENTIONS_TIME, ONLY_ASKS } from "./describe-text.ts";
import { largest } from "./largest.ts";
import type { RankInput } from "./rank-input.ts";

/** Shares of the scores of neighbouring turns, by distance. */
const NEIGHBOURS = [
  { away: -1, share: 0.2 },
  { away: 1, share: 0.25 },
  { away: -2, share: 0.18 },
  { away: 2, share: 0.1 },
  { away: 3, share: 0.05 },
];
/** Additional share of a previous question, because its answer is wanted. */
const ANSWER_SHARE = 0.25;

/** Factor for a question: it seldom contains the answer. */
const QUESTION_FACTOR = 0.8;

/** Longer texts get less from their neighbours. */
const SHORT_WORDS = 90;

/** Factors for memories that mention what the query asks for. */
const ANSWER_FACTORS = [
  [MENTIONS_TIME, 1.5],
  [MENTIONS_NUMBER, 1.3],
  [MENTIONS_NAME, 1.4],
] as const;

/** A text without words loses this share of its score. The loss falls by the factor e every `BRIEF_WORDS` words. */
const BRIEF_LOSS = 0.7;
const BRIEF_WORDS = 14;

/** The share of the best memory of a session in the lift of the session. The second best has the rest. */
const BEST_SHARE = 0.7;

/** Only this many of the best memories lift their neighbours. */
const MAX_GIVERS = 4_000;

const HALF_LIFE_MS = 30 * 86_400_000;

/** Significance without an effect. */
const NEUTRAL_SIGNIFICANCE = 0.5;

export interface Scored {
  columns: MemoryColumns;
  candidates: Candidates;
  scores: Float64Array;
}

/** Lowers short texts, which seldom have an answer. */
export function lowerBrief({ columns, candidates, scores }: Scored): Float64Array {
  return scores.map((score, index) => {
    const words = columns.words[candidates.places[index] ?? NONE] ?? 0;
    return score * (1 - BRIEF_LOSS * Math.exp(-words / BRIEF_WORDS));
  });
}

export function liftNeighbours(
  { columns, candidates, scores }: Scored,
  weight: number,
  input: Pick<RankInput, "columns" | "visible">,
): Float64Array {
  const result = scores.slice();
  if (weight === 0) return result;
  for (const giver of largest(scores, MAX_GIVERS)) {
    const place = candidates.places[giver] ?? NONE;
    if (columns.indexInSession(place) === NONE) continue;
    for (const { away, share } of NEIGHBOURS) {
      const neighbour = neighbourOf(input, place, -away);
      const taker = neighbour === undefined ? undefined : candidates.indexOf(neighbour);
      if (neighbour === undefined || taker === undefined) continue;
      const gate = Math.min(1, SHORT_WORDS / Math.max(1, columns.words[neighbour] ?? 1)) ** 2;
      const asks = away === -1 && ((columns.flags[place] ?? 0) & ASKS) !== 0;
      const given = (share + (asks ? ANSWER_SHARE : 0)) * (scores[giver] ?? 0);
      result[taker] = (result[taker] ?? 0) + weight * gate * given;
    }
  }
  return result.map((score, index) => {
    const place = candidates.places[index] ?? NONE;
    const isQuestion =
      ((columns.flags[place] ?? 0) & ONLY_ASKS) !== 0 && columns.indexInSession(place) !== NONE;
    return isQuestion ? score * QUESTION_FACTOR : score;
  });
}

export function liftSpeaker(
  { columns, candidates, scores }: Scored,
  factor: number,
  query: AnalyzedQuery,
): Float64Array {
  const [speaker, other] = query.speakers;
  if (speaker === undefined || other !== undefined) return scores;
  return scores.map((score, index) =>
    columns.speaker[candidates.places[index] ?? NONE] === speaker ? score * factor : score,
  );
}

/** Adds a share of the weighted mean of the two best scores of the session. */
export function liftSessions({ columns, candidates, scores }: Scored, weight: number): Float64Array {
  if (weight === 0) return scores;
  const best = new Map<number, { first: number; second: number }>();
  for (const [index, place] of candidates.places.entries()) {
    const session = columns.session[place] ?? NONE;
    const score = scores[index] ?? 0;
    if (session === NONE || score <= 0) continue;
    const { first, second } = best.get(session) ?? { first: 0, second: 0 };
    if (score > second) best.set(session, { first: Math.max(first, score), second: Math.min(first, score) });
  }
  return scores.map((score, index) => {
    const of = best.get(columns.session[candidates.places[index] ?? NONE] ?? NONE);
    if (score <= 0 || of === undefined) return score;
    return score + weight * (BEST_SHARE * of.first + (1 - BEST_SHARE) * of.second);
  });
}

/** Lifts memories of the times that the query names (RANK-6). */
export function liftTimes(
  { columns, candidates, scores }: Scored,
  factor: number,
  query: AnalyzedQuery,
): Float64Array {
  const { windows } = query;
  if (windows.length === 0) return scores;
  const within = new Uint8Array(scores.length);
  let count = 0;
  for (let index = 0; index < scores.length; index++) {
    const time = columns.time[candidates.places[index] ?? NONE] ?? 0;
    if (!windows.some(({ from, until }) => time >= from && time < until)) continue;
    within[index] = 1;
    count += 1;
  }
  const lift = 1 + (factor - 1) * (1 - count / scores.length);
  return scores.map((score, index) => score * (within[index] === 1 ? lift : 1));
}

/** Lifts memories that mention what the query asks for: a time, a number, or a name. */
export function liftAnswers(
  { columns, candidates, scores }: Scored,
  { answers }: AnalyzedQuery,
): Float64Array {
  const asked = ANSWER_FACTORS.filter(([flag]) => (answers & flag) !== 0);
  if (asked.length === 0) return scores;
  return scores.map((score, index) => {
    const flags = columns.flags[candidates.places[index] ?? NONE] ?? 0;
    return asked.reduce((lifted, [flag, factor]) => ((flags & flag) === 0 ? lifted : lifted * factor), score);
  });
}

/** Scales scores by significance. A significance of 0.5 has no effect. */
export function liftSignificant({ columns, candidates, scores }: Scored, weight: number): Float64Array {
  if (weight === 0) return scores;
  return scores.map((score, index) => {
    const significance = columns.significance[candidates.places[index] ?? NONE] ?? NEUTRAL_SIGNIFICANCE;
    return score * Math.max(0, 1 + weight * (significance - NEUTRAL_SIGNIFICANCE));
  });
}

export function liftRecent(
  { columns, candidates, scores }: Scored,
  weight: number,
  now: number,
): Float64Array {
  if (weight === 0) return scores;
  return scores.map((score, index) => {
    const age = Math.max(0, now - (columns.time[candidates.places[index] ?? NONE] ?? 0));
    return score * Math.max(0, 1 + weight * 2 ** (-age / HALF_LIFE_MS));
  });
}
