/**
 * Cron expressions of five fields: minute, hour, day of the month, month, day of the week. Pure.
 *
 * CRON-1  A field is `*`, a number, a range such as `1-5`, a range or `*` with a step behind `/`, or a list of these. Months and days
 *         of the week may have their English names of three letters; Sunday is 0 or 7.
 * CRON-2  Where neither the day of the month nor the day of the week begins with `*`, a day matches that one of them names. Otherwise it
 *         must match both.
 * CRON-3  An expression that no day matches is refused.
 */
import { DramatisError } from "../../../shared/errors.ts";

/** A cron expression: ascending numbers of each field. */
export interface Cron {
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  readonly days: ReadonlySet<number>;
  readonly months: ReadonlySet<number>;
  /** 0 is Sunday. */
  readonly weekdays: ReadonlySet<number>;
  /** One of `days` and `weekdays` suffices (CRON-2). */
  readonly eitherDay: boolean;
}

interface Field {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  /** Names of the numbers from `min`. */
  readonly names?: readonly string[];
}

const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const MINUTE: Field = { name: "minute", min: 0, max: 59 };
const HOUR: Field = { name: "hour", min: 0, max: 23 };
const DAY: Field = { name: "day of the month", min: 1, max: 31 };
const MONTH: Field = { name: "month", min: 1, max: 12, names: MONTHS };
const WEEKDAY: Field = { name: "day of the week", min: 0, max: 7, names: WEEKDAYS };

/** The most days that each month has. */
const LONGEST = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** Returns the expression. Throws `INVALID_INPUT` with the field that is wrong; `path` is its place in the request. */
export function parseCron(text: string, path = "/when/cron"): Cron {
  try {
    return parsed(text);
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    const { message } = error;
    throw new DramatisError("INVALID_INPUT", `The cron expression "${text}" is not valid: ${message}`, {
      errors: [{ path, message }],
    });
  }
}

class Unreadable extends Error {}

/** Short forms that other systems accept, and what they mean. */
const ALIASES: Record<string, string> = {
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
  "@monthly": "0 0 1 * *",
  "@weekly": "0 0 * * 0",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@hourly": "0 * * * *",
};

function parsed(text: string): Cron {
  const alias = ALIASES[text.trim().toLowerCase()];
  if (alias !== undefined) throw new Unreadable(`Write \`${alias}\`.`);
  const fields = text.trim().split(/\s+/);
  if (fields.length !== 5)
    throw new Unreadable(
      `It has ${fields.length} fields. Give five: minute, hour, day of the month, month, day of the week.`,
    );
  const [minute = "", hour = "", day = "", month = "", weekday = ""] = fields;
  const cron = {
    minutes: numbersOf(minute, MINUTE),
    hours: numbersOf(hour, HOUR),
    days: new Set(numbersOf(day, DAY)),
    months: new Set(numbersOf(month, MONTH)),
    weekdays: new Set(numbersOf(weekday, WEEKDAY).map((number) => number % 7)),
    eitherDay: !day.startsWith("*") && !weekday.startsWith("*"),
  };
  const isPossible = [...cron.months].some((number) =>
    [...cron.days].some((date) => date <= (LONGEST[number - 1] ?? 0)),
  );
  if (!isPossible && !cron.eitherDay)
    throw new Unreadable("No such day exists. Give a day that one of the months has.");
  return cron;
}

function numbersOf(text: string, field: Field): number[] {
  const numbers = text.split(",").flatMap((part) => rangeOf(part, field));
  return [...new Set(numbers)].sort((a, b) => a - b);
}

function rangeOf(part: string, field: Field): number[] {
  const match = /^(?:(\*)|(\w+)(?:-(\w+))?)(?:\/(\d{1,4}))?$/.exec(part);
  if (match === null)
    throw new Unreadable(`"${part}" is no ${field.name}. Write \`*\`, \`5\`, \`1-5\`, \`*/15\` or a list.`);
  const [, all, first = "", last, stepText] = match;
  if (stepText !== undefined && all === undefined && last === undefined)
    throw new Unreadable(
      `"${part}" has a step without a range. Write \`${first}-${field.max}/${stepText}\`.`,
    );
  const step = Number(stepText ?? 1);
  if (step < 1) throw new Unreadable(`The step of "${part}" must be 1 or more.`);
  const start = all === undefined ? numberOf(first, field) : field.min;
  const end = all === undefined ? endOf(last ?? first, field) : field.max - (field === WEEKDAY ? 1 : 0);
  if (start > end) throw new Unreadable(`The range "${part}" ends before it begins.`);
  return Array.from({ length: Math.floor((end - start) / step) + 1 }, (_, index) => start + index * step);
}

/** Returns the end of a range: `sat-sun` ends on day 7. */
function endOf(text: string, field: Field): number {
  const number = numberOf(text, field);
  return field === WEEKDAY && number === 0 && text !== "0" ? 7 : number;
}

function numberOf(text: string, { name, min, max, names = [] }: Field): number {
  const index = names.indexOf(text.toLowerCase());
  if (index >= 0) return min + index;
  const number = /^\d{1,4}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= min && number <= max) return number;
  throw new Unreadable(
    `"${text}" is no ${name}: give a number from ${min} to ${max}${names.length > 0 ? `, or a name such as ${names[1]}` : ""}.`,
  );
}
