/**
 * Ranks the memories of an agent for a query. Pure.
 *
 * RANK-1  The score is a weighted sum of the lexical and the semantic score, each divided by its maximum. Where a memory has all terms of
 *         the query, the semantic score weighs a quarter.
 * RANK-2  Neighbours in the session, the speaker, the session, an answered question, and times lift memories. Nothing is filtered by them.
 * RANK-3  A memory that the reader must not see is no result and influences no score. A filtered one is no result, but lifts its neighbours.
 * RANK-4  Results descend by their total. Equal ones stand by their keys, the newest first. Ranking depends on nothing else.
 * RANK-5  A memory that has no term of the query, is hardly similar to it and stands next to nothing that matches is no result.
 */
import type { MemoryScore, RankingWeights } from "../../protocol/memory.ts";
import type { AnalyzedQuery } from "./analyze-query.ts";
import { type MemoryColumns, NONE } from "./columns.ts";
import { ASKS, MENTIONS_TIME } from "./describe-text.ts";
import { relevanceOf, type TermFound } from "./relevance.ts";
import { DEFAULT_WEIGHTS } from "./weights.ts";

/** What the full text found, by place. */
export interface LexicalScores {
  terms: readonly TermFound[];
  matches: readonly { n: number; score: number; found: number }[];
}

export interface RankInput {
  columns: MemoryColumns;
  query: AnalyzedQuery;
  lexical: LexicalScores;
  /** The cosine of each place with the query, 0 for a memory without a vector. Absent: there are no vectors. */
  semantic?: ArrayLike<number>;
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

export interface Ranked {
  place: number;
  n: number;
  score: MemoryScore;
}

/** Share of the semantic weight where a memory has all terms: meaning must not hurt exact finds. */
const EXACT_SHARE = 0.25;

/** Shares of the score of the memory so many turns away. */
const NEIGHBOURS = [
  { away: -1, share: 0.25 },
  { away: 1, share: 0.2 },
  { away: -2, share: 0.15 },
  { away: 2, share: 0.1 },
];
/** Further share of a previous turn that asks: its answer is what is looked for. */
const ANSWER_SHARE = 0.25;

/** Least cosine of a result that nothing else speaks for. Texts without anything in common have less. */
const LEAST_COSINE = 0.25;

/** Texts above this number of words get less from their neighbours. */
const SHORT_WORDS = 60;

/** Factor for memories that mention a time where the query asks when. */
const WHEN_FACTOR = 1.5;

/** Memories that lift their neighbours: the best ones. */
const MAX_GIVERS = 4_000;

/** Recency halves in this time. */
const HALF_LIFE_MS = 30 * 86_400_000;

/** Significance that changes nothing. */
const NEUTRAL_SIGNIFICANCE = 0.5;

/** The score of each place after each step. */
interface Scores {
  lexical: Float64Array;
  semantic: Float64Array;
  neighbours: Float64Array;
  speaker: Float64Array;
  session: Float64Array;
  time: Float64Array;
  significance: Float64Array;
  recency: Float64Array;
}

/** Returns the best memories, best first. */
export function rank(input: RankInput): Ranked[] {
  const weights = { ...DEFAULT_WEIGHTS, ...input.weights };
  const { columns, query } = input;
  const { size } = columns;
  const found = new Int32Array(size);
  const lexical = lexicalScores(input, found);
  const semantic = added(lexical, semanticScores(input, found, weights.semantic));
  const neighbours = withNeighbours(input, semantic, weights.neighbours);
  const speaker = withSpeaker(columns, query, neighbours, weights.speaker);
  const session = withSessions(columns, speaker, weights.session);
  const time = withTimes(columns, query, session, weights.time);
  const significance = withSignificance(columns, time, weights.significance);
  const recency = withRecency(columns, significance, weights.recency, input.now);
  const scores = { lexical, semantic, neighbours, speaker, session, time, significance, recency };

  const places: number[] = [];
  const relevance = (place: number) =>
    relevanceOf(input.lexical.terms, found[place] ?? 0, input.semantic?.[place] ?? 0);
  const { minRelevance = 0 } = input;
  for (let place = 0; place < size; place++) {
    if ((recency[place] ?? 0) <= 0 || columns.n[place] === NONE || isHidden(input, place)) continue;
    const isAlone = found[place] === 0 && neighbours[place] === semantic[place];
    if (isAlone && (input.semantic?.[place] ?? 0) < LEAST_COSINE) continue;
    if (minRelevance <= 0 || relevance(place) >= minRelevance) places.push(place);
  }
  const order = (a: number, b: number) =>
    (recency[b] ?? 0) - (recency[a] ?? 0) || (columns.n[b] ?? 0) - (columns.n[a] ?? 0);
  return largest(places, recency, input.limit)
    .sort(order)
    .slice(0, input.limit)
    .map((place) => ({
      place,
      n: columns.n[place] ?? NONE,
      score: {
        total: recency[place] ?? 0,
        relevance: relevance(place),
        parts: partsOf(scores, place),
        terms: input.lexical.terms
          .filter((_, index) => ((found[place] ?? 0) & (1 << index)) !== 0)
          .map(({ word }) => word),
      },
    }));
}

function isHidden({ visible, allowed }: RankInput, place: number): boolean {
  return visible?.[place] === 0 || allowed?.[place] === 0;
}

/** Each divided by the largest. Sets the bits of the terms that were found. */
function lexicalScores({ columns, lexical, visible }: RankInput, found: Int32Array): Float64Array {
  const scores = new Float64Array(columns.size);
  let maximum = 0;
  for (const match of lexical.matches) {
    const place = columns.placeOf(match.n);
    if (place === undefined || visible?.[place] === 0) continue;
    scores[place] = match.score;
    found[place] = match.found;
    maximum = Math.max(maximum, match.score);
  }
  return scaled(scores, maximum, 1);
}

function semanticScores(
  { columns, lexical, semantic, visible }: RankInput,
  found: Int32Array,
  weight: number,
): Float64Array {
  const scores = new Float64Array(columns.size);
  if (semantic === undefined) return scores;
  let maximum = 0;
  for (let place = 0; place < columns.size; place++) {
    if (columns.n[place] === NONE || visible?.[place] === 0) continue;
    const cosine = semantic[place] ?? 0;
    if (cosine > 0) scores[place] = cosine;
    maximum = Math.max(maximum, cosine);
  }
  const all = 2 ** lexical.terms.length - 1;
  const isExact = lexical.terms.length > 0 && found.includes(all);
  return scaled(scores, maximum, weight * (isExact ? EXACT_SHARE : 1));
}

function withNeighbours({ columns, visible }: RankInput, scores: Float64Array, weight: number): Float64Array {
  const result = scores.slice();
  if (weight === 0) return result;
  const givers: number[] = [];
  for (let place = 0; place < columns.size; place++) {
    if ((scores[place] ?? 0) > 0 && columns.isInSession(place)) givers.push(place);
  }
  for (const giver of largest(givers, scores, MAX_GIVERS)) {
    for (const { away, share } of NEIGHBOURS) {
      const taker = neighbourOf(columns, giver, -away, visible);
      if (taker === undefined) continue;
      const gate = Math.min(1, SHORT_WORDS / Math.max(1, columns.words[taker] ?? 1)) ** 2;
      const asks = away === -1 && ((columns.flags[giver] ?? 0) & ASKS) !== 0;
      const given = (share + (asks ? ANSWER_SHARE : 0)) * (scores[giver] ?? 0);
      result[taker] = (result[taker] ?? 0) + weight * gate * given;
    }
  }
  return result;
}

/** Returns the memory that stands so many visible turns after (before, if negative) a place of a session. */
function neighbourOf(
  columns: MemoryColumns,
  place: number,
  away: number,
  visible?: Uint8Array,
): number | undefined {
  const places = columns.sessionPlaces(columns.session[place] ?? NONE);
  const step = Math.sign(away);
  let left = Math.abs(away);
  for (let index = columns.indexInSession(place) + step; index >= 0 && index < places.length; index += step) {
    const neighbour = places[index] ?? NONE;
    if (visible?.[neighbour] !== 0) left -= 1;
    if (left === 0) return neighbour;
  }
  return undefined;
}

function withSpeaker(
  columns: MemoryColumns,
  query: AnalyzedQuery,
  scores: Float64Array,
  factor: number,
): Float64Array {
  const [speaker, other] = query.speakers;
  if (speaker === undefined || other !== undefined) return scores;
  return each(scores, (score, place) => (columns.speaker[place] === speaker ? score * factor : score));
}

/** Adds a share of the mean of the session's two best. */
function withSessions(columns: MemoryColumns, scores: Float64Array, weight: number): Float64Array {
  if (weight === 0) return scores;
  const [first, second] = [new Float64Array(columns.sessions.size), new Float64Array(columns.sessions.size)];
  for (let place = 0; place < columns.size; place++) {
    const session = columns.session[place] ?? NONE;
    const score = scores[place] ?? 0;
    if (session === NONE || score <= (second[session] ?? 0)) continue;
    const best = first[session] ?? 0;
    first[session] = Math.max(best, score);
    second[session] = Math.min(best, score);
  }
  return each(scores, (score, place) => {
    const session = columns.session[place] ?? NONE;
    if (score <= 0 || session === NONE) return score;
    return score + (weight * ((first[session] ?? 0) + (second[session] ?? 0))) / 2;
  });
}

function withTimes(
  columns: MemoryColumns,
  query: AnalyzedQuery,
  scores: Float64Array,
  factor: number,
): Float64Array {
  const { windows, asksWhen } = query;
  if (windows.length === 0 && !asksWhen) return scores;
  return each(scores, (score, place) => {
    const time = columns.time[place] ?? 0;
    const isWithin = windows.some(({ from, until }) => time >= from && time < until);
    const answersWhen = asksWhen && ((columns.flags[place] ?? 0) & MENTIONS_TIME) !== 0;
    return score * (isWithin ? factor : 1) * (answersWhen ? WHEN_FACTOR : 1);
  });
}

function withSignificance(columns: MemoryColumns, scores: Float64Array, weight: number): Float64Array {
  if (weight === 0) return scores;
  return each(
    scores,
    (score, place) =>
      score *
      Math.max(
        0,
        1 + weight * ((columns.significance[place] ?? NEUTRAL_SIGNIFICANCE) - NEUTRAL_SIGNIFICANCE),
      ),
  );
}

function withRecency(
  columns: MemoryColumns,
  scores: Float64Array,
  weight: number,
  now: number,
): Float64Array {
  if (weight === 0) return scores;
  return each(scores, (score, place) => {
    const age = Math.max(0, now - (columns.time[place] ?? 0));
    return score * (1 + weight * 2 ** (-age / HALF_LIFE_MS));
  });
}

/** What each step added to the score of a place. */
function partsOf(scores: Scores, place: number): MemoryScore["parts"] {
  const parts: MemoryScore["parts"] = {};
  let before = 0;
  // SAFETY: the keys of an object literal of the type `Scores`, in the order of the steps.
  for (const step of Object.keys(scores) as (keyof Scores)[]) {
    const after = scores[step][place] ?? 0;
    if (after !== before) parts[step] = after - before;
    before = after;
  }
  return parts;
}

function scaled(scores: Float64Array, maximum: number, weight: number): Float64Array {
  return maximum > 0 ? each(scores, (score) => (score / maximum) * weight) : scores;
}

function added(a: Float64Array, b: Float64Array): Float64Array {
  return each(a, (value, place) => value + (b[place] ?? 0), true);
}

/** As `map`, several times as fast. A score of 0 stays so, unless `withZeros`. */
function each(
  scores: Float64Array,
  change: (score: number, place: number) => number,
  withZeros = false,
): Float64Array {
  const result = new Float64Array(scores.length);
  for (let place = 0; place < scores.length; place++) {
    const score = scores[place] ?? 0;
    if (score !== 0 || withZeros) result[place] = change(score, place);
  }
  return result;
}

const BINS = 1_024;

/** Returns at least `count` places with the largest values, above 0: those of the upper bins of a histogram. */
function largest(places: number[], values: Float64Array, count: number): number[] {
  if (places.length <= count) return places;
  let maximum = 0;
  for (const place of places) maximum = Math.max(maximum, values[place] ?? 0);
  const bins = new Int32Array(BINS);
  const ofPlaces = new Uint16Array(places.length);
  for (const [index, place] of places.entries()) {
    const bin = Math.min(BINS - 1, Math.floor(((values[place] ?? 0) / maximum) * BINS));
    ofPlaces[index] = bin;
    bins[bin] = (bins[bin] ?? 0) + 1;
  }
  let [bin, covered] = [BINS, 0];
  while (covered < count && bin > 0) covered += bins[--bin] ?? 0;
  return places.filter((_, index) => (ofPlaces[index] ?? 0) >= bin);
}
