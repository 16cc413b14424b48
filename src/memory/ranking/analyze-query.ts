/** Analyzes a query: its terms, the speakers and times that it names, and whether it asks for a time. Pure. */
import { cut } from "../../shared/text.ts";
import { MENTIONS_NAME, MENTIONS_NUMBER, MENTIONS_TIME } from "./describe-text.ts";
import type { SpokenNames } from "./names.ts";
import { type TimeWindow, windowsOf } from "./times.ts";
import { type QueryTerm, queryTerms, wordsOf } from "./words.ts";

const MAX_QUERY_LENGTH = 2_000;

/** The kinds of answers, and the words of a query that ask for them. */
const ANSWERS = [
  [
    MENTIONS_TIME,
    /\bwhen\b|\b(?:what|which) (?:date|day|month|year|time)\b|何時|いつ|什么时候|什麼時候|언제/iu,
  ],
  [MENTIONS_NUMBER, /\bhow (?:many|much|long|often|old|far)\b/iu],
  [MENTIONS_NAME, /\b(?:who|whom|whose|where|which|called|names?|titles?)\b/iu],
] as const;

export type KnownSpeakers = Pick<SpokenNames, "withWord">;

export interface AnalyzedQuery {
  /** The query, cut at `MAX_QUERY_LENGTH`. */
  text: string;
  terms: QueryTerm[];
  speakers: number[];
  windows: TimeWindow[];
  /** The flags of texts that may answer it: `MENTIONS_TIME` of "when …?", and so on. */
  answers: number;
}

/**
 * Analyzes a query at `now`, in milliseconds. Names of known speakers are dropped from the terms unless no other term remains. Never
 * throws.
 */
export function analyzeQuery(query: string, now: number, speakers: KnownSpeakers): AnalyzedQuery {
  const text = cut(query, MAX_QUERY_LENGTH);
  const named = new Map<string, ReadonlySet<number>>();
  for (const word of wordsOf(text)) {
    const numbers = speakers.withWord(word);
    if (numbers !== undefined) named.set(word, numbers);
  }
  return {
    text,
    terms: queryTerms(text, new Set(named.keys())),
    speakers: namedSpeakers([...named.values()]),
    windows: windowsOf(text, now),
    answers: ANSWERS.reduce((flags, [flag, asks]) => (asks.test(text) ? flags | flag : flags), 0),
  };
}

/** An ambiguous word names a speaker only if another word decides. */
function namedSpeakers(byWord: ReadonlySet<number>[]): number[] {
  const decided = new Set(byWord.filter(({ size }) => size === 1).flatMap((numbers) => [...numbers]));
  const undecided = byWord.filter((numbers) => ![...numbers].some((number) => decided.has(number)));
  return [...new Set([...decided, ...undecided.flatMap((numbers) => [...numbers])])];
}
