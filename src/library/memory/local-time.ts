/**
 * Times as people write them, in their time zone. Pure.
 *
 * LOCALTIME-1  A day without an hour means noon in the time zone. At 00:30 in Tokyo, "yesterday" means noon of the previous day in Tokyo.
 */
import { namedTimes, spaced } from "../../shared/named-times.ts";

/** A local date and time, without a zone. */
interface WallTime {
  year: number;
  /** From 1. */
  month: number;
  day: number;
  hour?: number;
  minute?: number;
}

const NOON = 12;
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

export function isZone(zone: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: zone }) !== undefined;
  } catch {
    return false;
  }
}

/** Returns the zone if the platform supports it; otherwise `UTC`. */
export function knownZone(zone: string | undefined): string {
  return zone !== undefined && isZone(zone) ? zone : "UTC";
}

/** Formats a time in a zone, for a model: `Saturday, 2026-03-14 00:30 (Asia/Tokyo)`. */
export function localText(time: number, zone: string): string {
  const { year, month, day, hour = 0, minute = 0 } = wallTimeAt(time, zone);
  const weekday = new Intl.DateTimeFormat("en", { weekday: "long", timeZone: zone }).format(time);
  const two = (value: number) => String(value).padStart(2, "0");
  return `${weekday}, ${year}-${two(month)}-${two(day)} ${two(hour)}:${two(minute)} (${zone})`;
}

/** Reads `YYYY-MM-DD`, `YYYY-MM-DDTHH:MM` in a zone, or a time with an offset. Returns milliseconds; `undefined` for other texts. */
export function readLocalTime(text: string, zone: string): number | undefined {
  const [, year, month, day, hour, minute, offset] =
    /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::\d{2}(?:\.\d+)?)?(Z|[+-]\d{2}:\d{2})?)?$/.exec(
      text.trim(),
    ) ?? [];
  if (year === undefined) return undefined;
  if (offset !== undefined) {
    const exact = Date.parse(text.trim().replace(" ", "T"));
    return Number.isNaN(exact) ? undefined : exact;
  }
  const wall = { year: Number(year), month: Number(month), day: Number(day) };
  return timeOf(hour === undefined ? wall : { ...wall, hour: Number(hour), minute: Number(minute) }, zone);
}

export interface NamedTime {
  /** Milliseconds since 1970. */
  time: number;
  /** The words that name it, with single spaces. */
  words: string;
}

/**
 * Returns the day that an English sentence about the past names; `undefined` if it names no day. `now` is the time of the sentence. A weekday
 * means its last occurrence before `now`.
 */
export function dayIn(sentence: string, now: number, zone: string): NamedTime | undefined {
  const [found] = namedTimes(spaced(sentence), now, offsetAt(now, zone) / MINUTE_MS);
  if (found === undefined) return undefined;
  const { start, text: words } = found;
  const isWeekday = start.isCertain("weekday") && !start.isCertain("day");
  if (!isWeekday && !start.isCertain("day")) return undefined;
  const [year, month, day] = [start.get("year"), start.get("month"), start.get("day")];
  if (year === null || month === null || day === null) return undefined;
  const hour = start.isCertain("hour") ? start.get("hour") : null;
  const wall = { year, month, day, ...(hour === null ? {} : { hour, minute: start.get("minute") ?? 0 }) };
  const time = timeOf(wall, zone);
  if (time === undefined) return undefined;
  return { time: isWeekday && time > now ? time - 7 * DAY_MS : time, words };
}

/** Converts a local time to milliseconds (LOCALTIME-1). Returns `undefined` for a date that does not exist. */
function timeOf({ year, month, day, hour = NOON, minute = 0 }: WallTime, zone: string): number | undefined {
  const asUtc = Date.UTC(year, month - 1, day, hour, minute);
  const shown = new Date(asUtc);
  if (
    shown.getUTCFullYear() !== year ||
    shown.getUTCMonth() !== month - 1 ||
    shown.getUTCDate() !== day ||
    shown.getUTCHours() !== hour
  )
    return undefined;
  // Near a clock change, the offset of the result may differ from the offset of the first guess.
  const guess = asUtc - offsetAt(asUtc, zone);
  return asUtc - offsetAt(guess, zone);
}

/** Returns the offset of the zone from UTC, in milliseconds. */
function offsetAt(time: number, zone: string): number {
  const { year, month, day, hour = 0, minute = 0 } = wallTimeAt(time, zone);
  const minutes = Math.floor(time / MINUTE_MS) * MINUTE_MS;
  return Date.UTC(year, month - 1, day, hour, minute) - minutes;
}

function wallTimeAt(time: number, zone: string): WallTime {
  const parts = new Intl.DateTimeFormat("en", {
    ...{ timeZone: zone, hourCycle: "h23", year: "numeric", month: "numeric", day: "numeric" },
    ...{ hour: "numeric", minute: "numeric" },
  }).formatToParts(time);
  const part = (type: string) => Number(parts.find((each) => each.type === type)?.value ?? 0);
  return {
    ...{ year: part("year"), month: part("month"), day: part("day") },
    ...{ hour: part("hour"), minute: part("minute") },
  };
}
