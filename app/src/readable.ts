/** Readable texts for the amounts and dates of an input. They stand beside the exact input, and never replace it. Pure. */
import { isJsonObject, type JsonObject } from "../../src/shared/json.ts";
import { wordsOf } from "./format.ts";

export interface ReadableMember {
  label: string;
  text: string;
}

const AMOUNT = /amount|price|total|cost|fee|sum|balance|salary|budget/i;
const DATE = /^\d{4}-\d{2}-\d{2}$/;
const MOMENT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})$/;
const MAX_DEPTH = 3;
const MAX_MEMBERS = 12;

interface Found {
  label: string;
  value: number | string;
  currency: string | undefined;
  /** `false` in arrays and deep objects. */
  isShown: boolean;
}

/**
 * Returns the members that read better as text: amounts of money, large numbers, dates and times. `more` counts those that it leaves out:
 * after the first 12, in arrays, and in deep objects. `locales` is the reader's by default.
 */
export function readableMembers(
  input: unknown,
  locales?: string,
): { members: ReadableMember[]; more: number } {
  const found = isContainer(input) ? membersOf(input, "", 1, isJsonObject(input)) : [];
  const members = found
    .filter(({ isShown }) => isShown)
    .slice(0, MAX_MEMBERS)
    .map(({ label, value, currency }) => ({ label, text: textOf(value, currency, locales) }));
  return { members, more: found.length - members.length };
}

function membersOf(container: object, before: string, depth: number, isShown: boolean): Found[] {
  const code = isJsonObject(container) ? currencyOf(container) : undefined;
  return Object.entries(container).flatMap(([name, value]: [string, unknown]) => {
    const label = `${before}${wordsOf(name.replaceAll(/([a-z])([A-Z])/g, (_, end, start) => `${end} ${start.toLowerCase()}`))}`;
    if (isContainer(value))
      return membersOf(value, `${label} · `, depth + 1, isShown && depth < MAX_DEPTH && isJsonObject(value));
    const currency = AMOUNT.test(name) ? code : undefined;
    return isReadable(value, currency) ? [{ label, value, currency, isShown }] : [];
  });
}

function isContainer(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function isReadable(value: unknown, currency: string | undefined): value is number | string {
  if (typeof value === "number") return currency !== undefined || Math.abs(value) >= 1_000;
  return typeof value === "string" && (DATE.test(value) || MOMENT.test(value));
}

function textOf(value: number | string, currency: string | undefined, locales?: string): string {
  return typeof value === "number"
    ? (numberText(value, currency, locales) ?? String(value))
    : timeText(value, locales);
}

/** Returns a number with separators; `undefined` if it reads the same without them. */
export function numberText(value: number, currency?: string, locales?: string): string | undefined {
  const digits = { maximumFractionDigits: 20 } as const;
  if (currency !== undefined)
    return value.toLocaleString(locales, {
      style: "currency",
      currency,
      ...digits,
      minimumFractionDigits: 2,
    });
  return Math.abs(value) < 1_000 ? undefined : value.toLocaleString(locales, digits);
}

/** Returns a date or time as text. One that no calendar has stays as it is: `Date` would take it for another day. */
function timeText(text: string, locales?: string): string {
  const day = text.slice(0, 10);
  const midnight = new Date(day);
  const at = new Date(text);
  if (Number.isNaN(at.getTime()) || !midnight.toISOString().startsWith(day)) return text;
  if (DATE.test(text)) return at.toLocaleDateString(locales, { dateStyle: "full", timeZone: "UTC" });
  return at.toLocaleString(locales, { dateStyle: "full", timeStyle: "short" });
}

/** Returns the currency of the amounts of an object; `undefined` without a code of ISO 4217. */
function currencyOf({ currency }: JsonObject): string | undefined {
  return typeof currency === "string" && /^[A-Za-z]{3}$/.test(currency) ? currency.toUpperCase() : undefined;
}
