/** Cron expressions and their next times in zones, held against a clock that is read minute by minute. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Cron, parseCron } from "../../src/agents/trigger/core/cron.ts";
import { nextTime } from "../../src/agents/trigger/core/next-time.ts";
import { Zone } from "../../src/agents/trigger/core/zone.ts";

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

const iso = (time: number | undefined) => (time === undefined ? undefined : new Date(time).toISOString());

/** The next times of an expression, as ISO texts. */
function timesOf(expression: string, zone: string, after: string, count: number): (string | undefined)[] {
  const [cron, at] = [parseCron(expression), new Zone(zone)];
  const times: number[] = [];
  while (times.length < count) {
    const next = nextTime(cron, at, times.at(-1) ?? Date.parse(after));
    if (next === undefined) break;
    times.push(next);
  }
  return times.map(iso);
}

describe("G13 CRON-1 the fields of an expression", () => {
  test.each<[string, Partial<Record<keyof Cron, unknown>>]>([
    ["5 4 * * *", { minutes: [5], hours: [4] }],
    ["*/20 1-3,22 * * *", { minutes: [0, 20, 40], hours: [1, 2, 3, 22] }],
    [
      "10-30/10,3 0 1,15 jan,DEC *",
      { minutes: [3, 10, 20, 30], days: new Set([1, 15]), months: new Set([1, 12]) },
    ],
    ["0 0 * * mon-fri", { weekdays: new Set([1, 2, 3, 4, 5]) }],
    ["0 0 * * sat-sun", { weekdays: new Set([6, 0]) }],
    ["0 0 * * 7", { weekdays: new Set([0]) }],
    ["0 0 * * */2", { weekdays: new Set([0, 2, 4, 6]) }],
    ["  0   0 1 * 1 ", { eitherDay: true }],
    ["0 0 */2 * 1", { eitherDay: false }],
  ])("%s", (text, expected) => {
    expect(parseCron(text)).toMatchObject(expected);
  });

  test.each([
    ["", "fields"],
    ["* * * *", "fields"],
    ["* * * * * *", "fields"],
    ["@daily", "Write `0 0 * * *`."],
    ["@reboot", "fields"],
    ["60 * * * *", "minute"],
    ["5x * * * *", "minute"],
    ["-1 * * * *", "minute"],
    ["* 24 * * *", "hour"],
    ["* * 0 * *", "day of the month"],
    ["* * * 13 *", "month"],
    ["* * * foo *", "month"],
    ["* * * * 8", "day of the week"],
    ["*/0 * * * *", "step"],
    ["5/10 * * * *", "step"],
    ["30-10 * * * *", "ends before"],
    ["1,,2 * * * *", "minute"],
    ["* * L * *", "day of the month"],
  ])("refuses %j, and names the fault", (text, fault) => {
    expect(() => parseCron(text)).toThrow(expect.objectContaining({ code: "INVALID_INPUT" }));
    expect(() => parseCron(text)).toThrow(fault);
  });

  test("CRON-3 refuses days that do not exist", () => {
    expect(() => parseCron("0 0 30 2 *")).toThrow("No such day");
    expect(() => parseCron("0 0 31 apr,jun *")).toThrow("No such day");
    expect(() => parseCron("0 0 31 apr,may *")).not.toThrow();
    expect(() => parseCron("0 0 30 2 1")).not.toThrow();
    expect(timesOf("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", 1)).toEqual(["2104-02-29T00:00:00.000Z"]);
  });

  test("CRON-2 either day suffices, unless one of the fields begins with a star", () => {
    // The first of May 2026 is a Friday.
    expect(timesOf("0 0 1 5 mon", "UTC", "2026-04-30T00:00:00Z", 2)).toEqual([
      "2026-05-01T00:00:00.000Z",
      "2026-05-04T00:00:00.000Z",
    ]);
    expect(timesOf("0 0 */2 5 mon", "UTC", "2026-04-30T00:00:00Z", 2)).toEqual([
      "2026-05-11T00:00:00.000Z",
      "2026-05-25T00:00:00.000Z",
    ]);
  });
});

describe("G13 ZONE-1 CRONTIME-1 a change of the clock", () => {
  test("02:30 in Berlin fires once at both changes", () => {
    expect(timesOf("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", 3)).toEqual([
      "2026-03-28T01:30:00.000Z",
      "2026-03-29T01:00:00.000Z",
      "2026-03-30T00:30:00.000Z",
    ]);
    expect(timesOf("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2)).toEqual([
      "2026-10-25T00:30:00.000Z",
      "2026-10-26T01:30:00.000Z",
    ]);
  });

  test("half an hour in Lord Howe, midnight in São Paulo, a day in Samoa", () => {
    expect(timesOf("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", 1)).toEqual([
      "2026-10-03T15:30:00.000Z",
    ]);
    expect(timesOf("0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00Z", 2)).toEqual([
      "2018-11-04T03:00:00.000Z",
      "2018-11-05T02:00:00.000Z",
    ]);
    expect(timesOf("0 9 * * *", "Pacific/Apia", "2011-12-29T18:00:00Z", 3)).toEqual([
      "2011-12-29T19:00:00.000Z",
      "2011-12-30T10:00:00.000Z",
      "2011-12-30T19:00:00.000Z",
    ]);
  });

  test("refuses what is no zone of the database", () => {
    for (const name of ["Europe/Atlantis", "+02:00", ""])
      expect(() => new Zone(name)).toThrow(expect.objectContaining({ code: "INVALID_INPUT" }));
  });
});

/** Reads a clock on the wall, with another function of the platform than the code under test. */
function clockOf(timeZone: string): (instant: number) => number {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone,
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
  });
  const read = new Map<number, number>();
  return (instant) => {
    const known = read.get(instant);
    if (known !== undefined) return known;
    const parts = format.formatToParts(instant).map(({ type, value }) => [type, Number(value)]);
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0 } = Object.fromEntries(parts);
    const clock = Date.UTC(year, month - 1, day, hour, minute);
    read.set(instant, clock);
    return clock;
  };
}

const clocks = new Map<string, (instant: number) => number>();

/**
 * All firings between two instants, found by looking at the clock at every minute: a time fires when the clock first comes to it, or
 * passes it.
 */
function naive(cron: Cron, zone: string, from: number, to: number): number[] {
  const wall = clocks.get(zone) ?? clockOf(zone);
  clocks.set(zone, wall);
  const matches = (clock: number) => {
    const date = new Date(clock);
    const [isDate, isWeekday] = [cron.days.has(date.getUTCDate()), cron.weekdays.has(date.getUTCDay())];
    return (
      cron.minutes.includes(date.getUTCMinutes()) &&
      cron.hours.includes(date.getUTCHours()) &&
      cron.months.has(date.getUTCMonth() + 1) &&
      (cron.eitherDay ? isDate || isWeekday : isDate && isWeekday)
    );
  };
  const fired: number[] = [];
  // The latest time that the clock has come to.
  let latest = wall(from - DAY);
  for (let instant = from - DAY + MINUTE; instant <= to; instant += MINUTE) {
    const clock = wall(instant);
    let isDue = false;
    for (; latest < clock; latest += MINUTE) isDue ||= matches(latest + MINUTE);
    if (isDue && instant > from) fired.push(instant);
  }
  return fired;
}

const zones = [
  ["Europe/Berlin", "2026-03-29T01:00:00Z"],
  ["Europe/Berlin", "2026-10-25T01:00:00Z"],
  ["America/New_York", "2026-03-08T07:00:00Z"],
  ["America/New_York", "2026-11-01T06:00:00Z"],
  ["Australia/Lord_Howe", "2026-10-03T15:30:00Z"],
  ["Australia/Lord_Howe", "2026-04-04T15:00:00Z"],
  ["America/Sao_Paulo", "2018-11-04T03:00:00Z"],
  ["America/Sao_Paulo", "2019-02-17T02:00:00Z"],
  ["Africa/Casablanca", "2026-02-15T02:00:00Z"],
  ["Pacific/Apia", "2011-12-30T10:00:00Z"],
  ["Asia/Kathmandu", "2026-05-05T05:05:00Z"],
] as const;

/** A field of a few numbers, a range, a step, or all. */
const field = (min: number, max: number, all = 3) =>
  fc.oneof(
    { weight: all, arbitrary: fc.constant("*") },
    fc.integer({ min: 2, max: 17 }).map((step) => `*/${step}`),
    fc.uniqueArray(fc.integer({ min, max }), { minLength: 1, maxLength: 3 }).map((list) => list.join()),
    fc
      .tuple(fc.integer({ min, max }), fc.integer({ min, max }))
      .map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`),
  );

test("G13 CRONTIME-1 the times of any expression around a change are those of a clock that is read at every minute", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...zones),
      fc.tuple(field(0, 59, 1), field(0, 23), field(1, 31), fc.constant("*"), field(0, 6)),
      fc.integer({ min: -20 * 60, max: 60 }),
      ([name, change], fields, offset) => {
        const cron = parseCron(fields.join(" "));
        const from = Date.parse(change) + offset * MINUTE;
        const to = from + 36 * 60 * MINUTE;
        const zone = new Zone(name);
        const times: number[] = [];
        for (let time = nextTime(cron, zone, from); time !== undefined && time <= to; ) {
          times.push(time);
          time = nextTime(cron, zone, time);
        }
        expect(times.map(iso)).toEqual(naive(cron, name, from, to).map(iso));
      },
    ),
    { numRuns: 100 },
  );
});
