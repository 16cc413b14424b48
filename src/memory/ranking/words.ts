/**
 * Splits texts and queries into words. Pure.
 *
 * WORDS-1  A word is a run of letters, marks and digits, folded (FOLD-1) in Unicode's compatible form (NFKC).
 * WORDS-4  A pictograph and a flag are words. Skin colours and sequences of pictographs are ignored.
 * WORDS-2  Scripts without spaces between words, and Korean, are split into characters. A text has all single characters and all adjacent
 *          pairs. A query has the pairs, or a character without neighbours. So a word is found inside a sentence.
 * WORDS-3  A query drops English function words unless only such words remain. Words with the same stem, and forms of the same irregular
 *          word, count once.
 */
import { stemmer } from "stemmer";
import { foldText } from "../../shared/folding.ts";
import { isFunctionWord } from "./function-words.ts";
import { irregularForms } from "./irregular-forms.ts";

/** Characters of scripts that are split into pairs. */
export const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}ー]/u;

export const WORD = /[\p{L}\p{N}\p{M}]+|\p{Regional_Indicator}{2}|\p{Extended_Pictographic}/gu;

/** Longer words are cut, so a single term cannot fill the index. */
const MAX_WORD_LENGTH = 64;

/** Most terms of a query. Later terms are dropped. */
const MAX_QUERY_TERMS = 48;

export interface QueryTerm {
  /** Lower case, as from `wordsOf`. */
  word: string;
  /** Equal for words that the full text treats as equal, and for forms of an irregular word. */
  stem: string;
  /** The words to find: `word`, or the forms of an irregular word. Their stems differ. */
  forms: readonly string[];
}

export function wordsOf(text: string): string[] {
  const words = foldText(text, "NFKC").match(WORD) ?? [];
  return words.flatMap((word) => (UNSPACED.test(word) ? runsOf(word) : [cut(word)]));
}

/** Returns the search terms of a text: its words, and the characters and pairs of unspaced runs. */
export function textTerms(text: string): string[] {
  return wordsOf(text).flatMap((word) => (UNSPACED.test(word) ? [...singles(word), ...pairs(word)] : [word]));
}

/** Returns the terms of a query, without repetitions and without `ignored` words. */
export function queryTerms(text: string, ignored: ReadonlySet<string> = new Set()): QueryTerm[] {
  const terms = wordsOf(text).flatMap((word) => (UNSPACED.test(word) ? queryPairs(word) : [word]));
  const meant = terms.filter((word) => !isFunctionWord(word) && !ignored.has(word));
  const unique = new Map<string, QueryTerm>();
  for (const word of meant.length > 0 ? meant : terms) {
    const forms = irregularForms(stemOf(word)) ?? [word];
    const stem = stemOf(forms[0] ?? word);
    if (!unique.has(stem)) unique.set(stem, { word, stem, forms });
    if (unique.size === MAX_QUERY_TERMS) break;
  }
  return [...unique.values()];
}

export function stemOf(word: string): string {
  return /^[a-z]+$/.test(word) ? stemmer(word) : word;
}

/** Splits a word where unspaced scripts begin and end. */
function runsOf(word: string): string[] {
  const runs: string[] = [];
  let isOpen: boolean | undefined;
  for (const character of word) {
    // A mark belongs to the character before it.
    const isUnspaced = /\p{M}/u.test(character) ? (isOpen ?? false) : UNSPACED.test(character);
    if (isUnspaced === isOpen) runs[runs.length - 1] += character;
    else runs.push(character);
    isOpen = isUnspaced;
  }
  return runs.map((run) => (UNSPACED.test(run) ? run : cut(run)));
}

function singles(run: string): string[] {
  return [...run];
}

function pairs(run: string): string[] {
  const characters = [...run];
  return characters.slice(1).map((character, index) => `${characters[index]}${character}`);
}

function queryPairs(run: string): string[] {
  const all = pairs(run);
  return all.length > 0 ? all : [run];
}

function cut(word: string): string {
  return word.length <= MAX_WORD_LENGTH ? word : [...word].slice(0, MAX_WORD_LENGTH / 2).join("");
}
