/**
 * Finds the times that an English text names. Pure.
 *
 * NAMEDTIME-1  The parser of times reads only a few short pieces around words that can name a time, for any text. Its own patterns take
 *              unbounded time for long inputs.
 */
import { type ParsedResult, parse } from "chrono-node/en";

/** Pieces of a text that are read, and characters of each. */
const MAX_PIECES = 8;
const MAX_PIECE = 60;
/** Characters to read before the first word that can name a time, and after the last. */
const LEAD = 24;
const TAIL = 12;
/** Most characters between two such words of one piece. */
const GAP = 16;

/** Each time has at least one of these parts: a number, a month, a day, a part of a day, or a unit. */
const TIME_WORD = new RegExp(
  String.raw`\d+|\b(?:${[
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?",
    "sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?",
    "mon(?:day)?|tue(?:s(?:day)?)?|wed(?:s|nesday)?|thu(?:r(?:s(?:day)?)?)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?",
    "now|today|tonight|tomorrow|tmrw?|yesterday|noon|midday|midnight|morning|afternoon|evening|night",
    "sec(?:ond)?s?|min(?:ute)?s?|h(?:ou)?rs?|days?|week(?:end|day)?s?|months?|quarters?|qtrs?|years?|yrs?",
  ].join("|")})\b`,
  "giu",
);

export interface TimePiece {
  index: number;
  text: string;
}

/** Replaces each run of white space with one space. The places of named times refer to this text. */
export function spaced(text: string): string {
  return text.replace(/\s+/gu, " ");
}

/** Returns the pieces of a spaced text that may name a time: at most 8 of 60 characters, in their order, without overlaps. */
export function timePieces(text: string): TimePiece[] {
  const pieces: { from: number; last: number }[] = [];
  for (const { index, 0: word } of text.matchAll(TIME_WORD)) {
    const end = index + word.length;
    const open = pieces.at(-1);
    if (open !== undefined && index - open.last <= GAP && end - open.from <= MAX_PIECE) {
      open.last = end;
      continue;
    }
    if (pieces.length === MAX_PIECES) break;
    const from = wordFrom(text, Math.max(index - LEAD, open?.last ?? 0), index);
    pieces.push({ from, last: Math.min(end, from + MAX_PIECE) });
  }
  return pieces.map(({ from, last }, at) => {
    const end = Math.min(last + TAIL, from + MAX_PIECE, pieces[at + 1]?.from ?? text.length);
    return { index: from, text: text.slice(from, wordUntil(text, end, last)) };
  });
}

/** A time, or a span of time, that a text names. */
export interface EnglishTime {
  /** The place of its words, and the words. */
  index: number;
  text: string;
  start: ParsedResult["start"];
  /** Absent unless it is a span. */
  end: ParsedResult["start"] | undefined;
}

/** Returns the times that a spaced text names, as they are understood at `now` (milliseconds), `timezone` minutes ahead of UTC. */
export function namedTimes(text: string, now: number, timezone: number): EnglishTime[] {
  return timePieces(text).flatMap(({ index: at, text: piece }) =>
    parse(piece, { instant: new Date(now), timezone }).map(({ index, text: words, start, end }) => ({
      ...{ index: at + index, text: words, start },
      end: end ?? undefined,
    })),
  );
}

/** Returns the beginning of the first whole word from `from` on, `until` at the latest. */
function wordFrom(text: string, from: number, until: number): number {
  if (from === 0 || text[from - 1] === " ") return from;
  const space = text.indexOf(" ", from);
  return space === -1 || space >= until ? until : space + 1;
}

/** Returns the end of the last whole word up to `until`, `from` at the earliest. */
function wordUntil(text: string, until: number, from: number): number {
  if (until === text.length || text[until] === " ") return until;
  return Math.max(text.lastIndexOf(" ", until), from);
}
