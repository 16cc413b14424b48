/**
 * Finds the times that a query names, as windows, and whether a text mentions a time. Pure.
 *
 * TIMES-1  Relative times refer to the time of the question. A month or a weekday without a year is the most recent before it.
 * TIMES-2  A window is extended at its end, because people mention an event after it: by 10 days for a day or a week, 12 for a month, 15
 *          for a season, 31 for a year.
 */
import { type EnglishTime, namedTimes, spaced } from "../../shared/named-times.ts";

/** A time span in milliseconds since the epoch, excluding `until`. */
export interface TimeWindow {
  from: number;
  until: number;
}

const DAY_MS = 86_400_000;
const PADDING_DAYS = { day: 10, week: 10, month: 12, season: 15, year: 31 };
type Span = keyof typeof PADDING_DAYS;

const MAX_WINDOWS = 4;

const SEASON_MONTHS: Record<string, number> = { spring: 2, summer: 5, fall: 8, autumn: 8, winter: 11 };
const SEASON =
  /\b(?:(last|this|in the|during the)\s+)?(spring|summer|fall|autumn|winter)\b(?:\s+(?:of\s+)?((?:19|20)\d\d))?/giu;
const YEAR = /(?<![\p{L}\p{N}.,:/-])(?:19|20)\d\d(?![\p{L}\p{N}:/-])/gu;
const MONTH_OR_VERB = /^(?:may|march|sat|sun|second|now)$/u;

const TIME_WORDS =
  /\b(?:today|tonight|yesterday|tomorrow|(?:mon|tues|wednes|thurs|fri|satur|sun)day|weekend|morning|evening|afternoon|night|january|february|march|april|june|july|august|september|october|november|december|spring|summer|autumn|winter|days?|weeks?|months?|years?|ago|recently|(?:19|20)\d\d|\d{1,2}(?:st|nd|rd|th)|birthday|christmas)\b|\bMay\b|\d{1,2}[/:.]\d{2}|[年月日]/iu;

export function mentionsTime(text: string): boolean {
  return TIME_WORDS.test(text);
}

/** Returns the extended windows of the times that a query names. `now` is in milliseconds. */
export function windowsOf(asked: string, now: number): TimeWindow[] {
  const query = spaced(asked);
  const results = Number.isFinite(now) && Math.abs(now) < 8e15 ? parsed(query, now) : [];
  const taken = results.map(({ index, text }) => [index, index + text.length] as const);
  const isFree = (index: number) => taken.every(([from, to]) => index < from || index >= to);
  const windows = [
    ...results.flatMap((result) => windowOf(result, now) ?? []),
    ...seasonsOf(query, now),
    ...[...query.matchAll(YEAR)]
      .filter((match) => isFree(match.index) && !isSeasonYear(query, match.index))
      .map(([year]) => padded(Date.UTC(Number(year), 0), Date.UTC(Number(year) + 1, 0), "year")),
  ];
  return windows.filter(({ from, until }) => Number.isFinite(from) && until > from).slice(0, MAX_WINDOWS);
}

function parsed(query: string, now: number): EnglishTime[] {
  return namedTimes(query, now, 0).filter(isMeant);
}

/** Skips hours without a day, and verbs that are spelled like a month. */
function isMeant({ text, start }: EnglishTime): boolean {
  if (MONTH_OR_VERB.test(text)) return false;
  return (
    start.isCertain("day") ||
    start.isCertain("month") ||
    start.isCertain("year") ||
    start.isCertain("weekday")
  );
}

function windowOf(result: EnglishTime, now: number): TimeWindow | undefined {
  const { text, start, end } = result;
  const span = spanOf(text, result);
  let from = beginning(start.date().getTime(), span);
  let until = ending(end === undefined ? from : beginning(end.date().getTime(), span), span);
  if (from > now && !start.isCertain("year") && !/\b(?:next|tomorrow|in)\b/iu.test(text)) {
    const back = start.isCertain("month") ? yearBefore(from) - from : -7 * DAY_MS;
    from += back;
    until += back;
  }
  return padded(from, until, span);
}

function spanOf(text: string, { start }: EnglishTime): Span {
  if (/\bweek(?:s|end|ends)?\b/iu.test(text)) return "week";
  if (start.isCertain("day") || start.isCertain("weekday")) return "day";
  return start.isCertain("month") ? "month" : "year";
}

/** Returns the start of the day, the week (Monday), the month or the year. */
function beginning(time: number, span: Span): number {
  const date = new Date(time);
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()];
  if (span === "year") return Date.UTC(year, 0);
  if (span === "month") return Date.UTC(year, month);
  const midnight = Date.UTC(year, month, day);
  return span === "week" ? midnight - ((date.getUTCDay() + 6) % 7) * DAY_MS : midnight;
}

function ending(from: number, span: Span): number {
  const date = new Date(from);
  if (span === "year") return Date.UTC(date.getUTCFullYear() + 1, 0);
  if (span === "month") return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
  return from + (span === "week" ? 7 : 1) * DAY_MS;
}

function yearBefore(time: number): number {
  const date = new Date(time);
  return date.setUTCFullYear(date.getUTCFullYear() - 1);
}

function padded(from: number, until: number, span: Span): TimeWindow {
  return { from, until: until + PADDING_DAYS[span] * DAY_MS };
}

/** Finds seasons with a year, or after "last" or "this". */
function seasonsOf(query: string, now: number): TimeWindow[] {
  return [...query.matchAll(SEASON)].flatMap(([, word, season = "", year]) => {
    const month = SEASON_MONTHS[season.toLowerCase()] ?? 0;
    const thisYear = new Date(now).getUTCFullYear();
    if (year === undefined && word === undefined) return [];
    let first = year === undefined ? thisYear : Number(year);
    if (year === undefined && Date.UTC(first, month) > now) first -= 1;
    // The winter of a year begins in its December. Its January and February belong to the winter before.
    if (month === 11 && year !== undefined)
      return [padded(Date.UTC(first, 0), Date.UTC(first + 1, 2), "season")];
    return [padded(Date.UTC(first, month), Date.UTC(first, month + 3), "season")];
  });
}

function isSeasonYear(query: string, index: number): boolean {
  return /\b(?:spring|summer|fall|autumn|winter)\s+(?:of\s+)?$/iu.test(
    query.slice(Math.max(0, index - 20), index),
  );
}
