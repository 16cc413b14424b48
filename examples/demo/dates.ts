/** The tool `dates`: calendar dates in UTC. */
import { z } from "zod";
import { defineTool } from "../../src/library/define/define.ts";
import { ToolError } from "../../src/library/tools/tool-error.ts";

const DAY_MS = 86_400_000;

const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

const amount = (unit: string) =>
  z.int().min(-100_000).max(100_000).optional().describe(`${unit} to add; may be negative`);

export const dates = defineTool({
  name: "dates",
  description:
    "Calculates with calendar dates (ISO 8601, UTC). today: the current date. add: a date some years, months, weeks and " +
    "days later or earlier. difference: the days from one date to another. weekday: the day of the week of a date.",
  input: z.object({
    action: z.enum(["today", "add", "difference", "weekday"]),
    date: z.iso.date().optional().describe("The date to begin with, as YYYY-MM-DD; today when absent"),
    until: z.iso.date().optional().describe("difference only: the date to count to; today when absent"),
    years: amount("Years"),
    months: amount("Months"),
    weeks: amount("Weeks"),
    days: amount("Days"),
  }),
  effect: "pure",
  execute(input, { now }) {
    const today = new Date(now());
    today.setUTCHours(0, 0, 0, 0);
    const date = input.date === undefined ? today : new Date(input.date);
    switch (input.action) {
      case "today":
        return described(today);
      case "weekday":
        return described(date);
      case "add":
        return described(later(date, input));
      case "difference": {
        const until = input.until === undefined ? today : new Date(input.until);
        return { from: iso(date), until: iso(until), days: (until.getTime() - date.getTime()) / DAY_MS };
      }
    }
  },
});

interface Span {
  years?: number | undefined;
  months?: number | undefined;
  weeks?: number | undefined;
  days?: number | undefined;
}

/** Adds a span: years and months first, with the day limited to the length of the month, then weeks and days. */
function later(date: Date, { years = 0, months = 0, weeks = 0, days = 0 }: Span): Date {
  const result = new Date(date);
  result.setUTCDate(1);
  result.setUTCMonth(result.getUTCMonth() + 12 * years + months);
  const lastOfMonth = new Date(result);
  lastOfMonth.setUTCMonth(lastOfMonth.getUTCMonth() + 1, 0);
  result.setUTCDate(Math.min(date.getUTCDate(), lastOfMonth.getUTCDate()) + 7 * weeks + days);
  const year = result.getUTCFullYear();
  if (year >= 0 && year <= 9999) return result;
  throw new ToolError("The result is outside the years 0 to 9999.", { code: "INVALID_INPUT" });
}

function described(date: Date): { date: string; weekday: string } {
  return { date: iso(date), weekday: WEEKDAYS[date.getUTCDay()] ?? "" };
}

function iso(date: Date): string {
  return date.toISOString().slice(0, 10);
}
