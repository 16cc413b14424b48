/** Properties of a memory's text that ranking uses beside its words. Pure. */
import { mentionsTime } from "./times.ts";
import { wordsOf } from "./words.ts";

/** Bits of a memory's flags. */
export const ASKS = 1;
export const MENTIONS_TIME = 2;

/** The largest number of words that a column keeps. */
const MAX_WORDS = 65_535;

/** What ranking keeps of a text. */
export interface TextDescription {
  /** Number of words, up to 65 535. */
  words: number;
  /** `ASKS`: it contains a question. `MENTIONS_TIME`: it mentions a time. */
  flags: number;
}

/** Describes the text of a memory. */
export function describeText(text: string): TextDescription {
  const asks = /[?？؟]/u.test(text) ? ASKS : 0;
  const time = mentionsTime(text) ? MENTIONS_TIME : 0;
  return { words: Math.min(wordsOf(text).length, MAX_WORDS), flags: asks | time };
}
