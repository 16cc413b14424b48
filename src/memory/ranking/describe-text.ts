/** Properties of a memory's text for ranking, in addition to its words. Pure. */
import { mentionsTime } from "./times.ts";
import { wordsOf } from "./words.ts";

/** Bits of a memory's flags. */
export const ASKS = 1;
export const MENTIONS_TIME = 2;
export const ONLY_ASKS = 4;
export const MENTIONS_NUMBER = 8;
export const MENTIONS_NAME = 16;

/** The largest number of words that a column keeps. */
const MAX_WORDS = 65_535;

export interface TextDescription {
  /** Number of words, up to 65 535. */
  words: number;
  /**
   * `ASKS`: contains a question. `ONLY_ASKS`: ends with a question, and all other sentences are very short. `MENTIONS_TIME`,
   * `MENTIONS_NUMBER`, `MENTIONS_NAME`: mentions a time, a number, or a name or title.
   */
  flags: number;
}

export function describeText(text: string): TextDescription {
  const asks = QUESTION_MARK.test(text) ? ASKS : 0;
  const only = asks !== 0 && saysNothing(text) ? ONLY_ASKS : 0;
  const time = mentionsTime(text) ? MENTIONS_TIME : 0;
  const number = NUMBER.test(text) ? MENTIONS_NUMBER : 0;
  const name = NAME.test(text) ? MENTIONS_NAME : 0;
  return { words: Math.min(wordsOf(text).length, MAX_WORDS), flags: asks | only | time | number | name };
}

const NUMBER =
  /\p{N}|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundred|thousand|once|twice|couple|few|several|half|first|second|third)\b/iu;
/** A capital after a small letter or a comma, or a quotation mark. */
const NAME = /[\p{Ll},] \p{Lu}\p{Ll}+|["“„«「]/u;

const QUESTION_MARK = /[?？؟]/u;

/** Shorter sentences, such as "Wow!", count as empty. */
const STATEMENT_WORDS = 6;

/** Reports whether all sentences but questions are very short. */
function saysNothing(text: string): boolean {
  const sentences = text.match(/[^.!?？！。؟]+[.!?？！。؟]*/gu) ?? [];
  return sentences.every(
    (sentence) => QUESTION_MARK.test(sentence) || wordsOf(sentence).length < STATEMENT_WORDS,
  );
}
