/**
 * The parts of a search result's score, for a table with bars. Pure.
 *
 * MEMVIEW-1  Each part that contributed has one row, the largest first. The bars of a table share one scale.
 * MEMVIEW-3  A result below the floor of recall states that conversations do not recall it.
 */
import { MIN_RELEVANCE } from "../../../src/protocol/memory.ts";
import type { MemoryScore } from "../../../src/protocol/memory-schemas.ts";

type PartName = keyof MemoryScore["parts"];

const PART_TEXT: Record<PartName, string> = {
  lexical: "Words in common",
  semantic: "Meaning",
  neighbours: "Next to a match",
  speaker: "Speaker",
  session: "Same session",
  time: "Matching time",
  answer: "Kind of answer",
  significance: "Importance",
  recency: "How recent",
};

// SAFETY: `keys` returns the keys of the record.
const NAMES = Object.keys(PART_TEXT) as PartName[];

export interface ScorePart {
  name: PartName;
  label: string;
  value: number;
  /** The length of the bar, from 0 to 1. */
  width: number;
}

/** Returns the parts of a score, the largest first. */
export function partsOf({ parts }: Pick<MemoryScore, "parts">): ScorePart[] {
  const found = NAMES.map((name) => ({ name, label: PART_TEXT[name], value: parts[name] ?? 0 })).filter(
    ({ value }) => value !== 0 && Number.isFinite(value),
  );
  const largest = Math.max(...found.map(({ value }) => Math.abs(value)));
  return found
    .map((part) => ({ ...part, width: Math.abs(part.value) / largest }))
    .toSorted((a, b) => b.value - a.value);
}

/** Returns a score with two decimal places. */
export function scoreText(value: number, locales?: string): string {
  return value.toLocaleString(locales, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
}

/** Returns how relevant a result is, and whether conversations recall it (MEMVIEW-3). A persona may set another floor. */
export function relevanceNote(relevance: number): string {
  const text = `${relevanceText(relevance)} relevant`;
  return relevance < MIN_RELEVANCE
    ? `${text}. Conversations do not recall it: the minimum is ${relevanceText(MIN_RELEVANCE)}`
    : text;
}

/** Returns a relevance from 0 to 1 as a percentage. */
export function relevanceText(relevance: number): string {
  return `${Math.round(Math.min(1, Math.max(0, relevance)) * 100)} %`;
}
