/**
 * The next time of a cron expression in a zone. Pure.
 *
 * CRONTIME-1  The expression names times of the zone's clock. A time that occurs twice fires once, the first time. Times that do not exist
 *             fire together, once, at the next minute that exists.
 */
import type { Cron } from "./cron.ts";
import type { Zone } from "./zone.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** A 29 February on one day of the week may be 40 years away. */
const MAX_DAYS = 41 * 366;

/** Returns the first instant after `after` at which the expression fires, in milliseconds; `undefined` if there is none. */
export function nextTime(cron: Cron, zone: Zone, after: number): number | undefined {
  // A time of the clock before this one has its instant before `after`: instants ascend with the clock (ZONE-1).
  for (const clock of timesFrom(cron, zone.clockAt(after))) {
    const instant = zone.instantOf(clock);
    if (instant > after) return instant;
  }
  return undefined;
}

/** Yields the times of the clock that an expression names, from the minute of `clock` on. */
function* timesFrom(cron: Cron, clock: number): Generator<number> {
  const first = Math.floor(clock / DAY_MS) * DAY_MS;
  const minute = Math.floor(clock / MINUTE_MS) * MINUTE_MS;
  for (let day = first, days = 0; days < MAX_DAYS; day += DAY_MS, days++) {
    if (!isDay(cron, new Date(day))) continue;
    for (const hour of cron.hours) {
      for (const minutes of cron.minutes) {
        const time = day + hour * HOUR_MS + minutes * MINUTE_MS;
        if (time >= minute) yield time;
      }
    }
  }
}

function isDay({ months, days, weekdays, eitherDay }: Cron, date: Date): boolean {
  if (!months.has(date.getUTCMonth() + 1)) return false;
  const [isDate, isWeekday] = [days.has(date.getUTCDate()), weekdays.has(date.getUTCDay())];
  return eitherDay ? isDate || isWeekday : isDate && isWeekday;
}
