/**
 * The words of messages in the index, and of queries. Pure.
 *
 * SEARCH-1  No query breaks the search. It consists of the quoted words of the query, and finds messages with all of them.
 * SEARCH-2  Words are folded, and scripts without spaces are split, as in the search of memories (WORDS-1, WORDS-2).
 * SEARCH-3  A message also has words for its agent, its person and its readers. No text contains such a word.
 */
import { inTable, quoted } from "../../memory/corpus/full-text.ts";
import { queryTerms, stemOf, textTerms, UNSPACED, WORD, wordsOf } from "../../memory/ranking/words.ts";
import type { FoundMessage, PublishedText } from "../../protocol/event-log.ts";
import { foldText } from "../../shared/folding.ts";

/** Begins the words of filters. Texts have no words with it, because it is no letter. */
const FILTER = "\ue000";
const FILTERS = { agent: "a", user: "u", reader: "r" } as const;

/** Marks the messages of a batch that arrived late. */
export const LATE = "late";

/** Returns the words of a message for the index, without the words for its readers. */
export function wordsOfMessage({ text, agentId, userId }: PublishedText, isLate: boolean): string {
  const filters = [
    filterWord("agent", agentId),
    ...(userId === undefined ? [] : [filterWord("user", userId)]),
    ...(isLate ? [FILTER + LATE] : []),
  ];
  return `${inTable(textTerms(text.toWellFormed()).join(" "))} ${filters.join(" ")}`;
}

/** Returns the words for the readers of a message, which follow the words of the message in the index. */
export function wordsOfReaders(readers: readonly string[]): string {
  return readers.map((reader) => ` ${filterWord("reader", reader)}`).join("");
}

export interface Query {
  /** `null` for a query without words. */
  match: string | null;
  /** `match`, for messages of late batches. */
  late: string;
  /** The words to mark, as `marked` returns them. */
  found: ReadonlySet<string>;
}

export function queryOf(
  q: string,
  filters: { agent?: string | undefined; user?: string | undefined; reader?: string | undefined },
): Query {
  const terms = queryTerms(q.toWellFormed());
  const words = [
    ...terms.map(({ word }) => quoted(word)),
    ...KINDS.flatMap((kind) => {
      const value = filters[kind];
      return value === undefined ? [] : [`"${filterWord(kind, value)}"`];
    }),
  ];
  const match = words.join(" AND ");
  return {
    match: terms.length === 0 ? null : match,
    late: `${match} AND "${FILTER}${LATE}"`,
    found: new Set(terms.map(({ word }) => marked(word))),
  };
}

/** Returns the form by which marks compare words: the index ignores endings and the accents of words with spaces. */
function marked(word: string): string {
  return UNSPACED.test(word) ? word : stemOf(word.normalize("NFD").replace(/\p{M}/gu, ""));
}

const KINDS = ["agent", "user", "reader"] as const;

/** Returns the word of a filter. It ends in a letter that no stemming removes. */
function filterWord(kind: keyof typeof FILTERS, value: string): string {
  const bytes = [...new TextEncoder().encode(value)];
  return `${FILTER}${FILTERS[kind]}${bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("")}q`;
}

/** Length of a snippet, and of its text before the first mark, in UTF-16 units. */
const SNIPPET = 240;
const BEFORE = 80;

/** Returns the part of a text around the first found word, with the places of found words. */
export function snippetOf(text: string, found: ReadonlySet<string>): Pick<FoundMessage, "snippet" | "marks"> {
  const places = placesOf(text, found);
  const first = places[0]?.[0] ?? 0;
  const from = beginOfWord(text, Math.max(0, first - BEFORE));
  const to = endOfWord(text, Math.min(text.length, from + SNIPPET));
  const begin = from > 0 ? "…" : "";
  const marks = places
    .filter(([, end]) => end <= to)
    .map(([start, end]): [number, number] => [start - from + begin.length, end - from + begin.length]);
  return { snippet: `${begin}${text.slice(from, to)}${to < text.length ? "…" : ""}`, marks };
}

/** Returns the begins and the ends of the found words. Adjacent places are joined. */
function placesOf(text: string, found: ReadonlySet<string>): [begin: number, end: number][] {
  const places: [number, number][] = [];
  const add = (begin: number, end: number) => {
    const last = places.at(-1);
    if (last !== undefined && last[1] >= begin) last[1] = Math.max(last[1], end);
    else places.push([begin, end]);
  };
  for (const { 0: word, index } of text.matchAll(WORD)) {
    if (!UNSPACED.test(word)) {
      if (wordsOf(word).some((one) => found.has(marked(one)))) add(index, index + word.length);
      continue;
    }
    let at = index;
    const characters = [...word];
    for (const [n, character] of characters.entries()) {
      const next = characters[n + 1] ?? "";
      const end = at + character.length;
      if (found.has(foldText(character, "NFKC"))) add(at, end);
      if (next !== "" && found.has(foldText(character + next, "NFKC"))) add(at, end + next.length);
      at = end;
    }
  }
  return places;
}

function beginOfWord(text: string, at: number): number {
  if (at === 0) return 0;
  const space = text.slice(at, at + BEFORE / 2).search(/\s/);
  return space === -1 ? wholeAt(text, at) : at + space + 1;
}

function endOfWord(text: string, at: number): number {
  if (at === text.length) return at;
  const space = text.slice(at - BEFORE / 2, at).search(/\s\S*$/);
  return space === -1 ? wholeAt(text, at) : at - BEFORE / 2 + space;
}

/** Moves a place that splits a surrogate pair. */
function wholeAt(text: string, at: number): number {
  return /[\udc00-\udfff]/.test(text[at] ?? "") ? at - 1 : at;
}
