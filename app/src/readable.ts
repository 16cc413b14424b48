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

/** Returns the members that read better as text: amounts of money, large numbers, dates and times. `locales` is the reader's by default. */
export function readableMembers(input: unknown, locales?: string): ReadableMember[] {
  return isJsonObject(input) ? membersOf(input, "", 1, locales).slice(0, MAX_MEMBERS) : [];
}

function membersOf(object: JsonObject, before: string, depth: number, locales?: string): ReadableMember[] {
  const currency = currencyOf(object);
  return Object.entries(object).flatMap(([name, value]) => {
    const label = `${before}${wordsOf(name.replaceAll(/([a-z])([A-Z])/g, (_, end, start) => `${end} ${start.toLowerCase()}`))}`;
    if (isJsonObject(value))
      return depth < MAX_DEPTH ? membersOf(value, `${label} · `, depth + 1, locales) : [];
    const text =
      typeof value === "number"
        ? numberText(value, AMOUNT.test(name) ? currency : undefined, locales)
        : typeof value === "string"
          ? timeText(value, locales)
          : undefined;
    return text === undefined ? [] : [{ label, text }];
  });
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

function timeText(text: string, locales?: string): string | undefined {
  if (!DATE.test(text) && !MOMENT.test(text)) return undefined;
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return undefined;
  if (DATE.test(text)) return at.toLocaleDateString(locales, { dateStyle: "full", timeZone: "UTC" });
  return at.toLocaleString(locales, { dateStyle: "full", timeStyle: "short" });
}

/** Returns the currency of the amounts of an object; `undefined` without a code of ISO 4217. */
function currencyOf({ currency }: JsonObject): string | undefined {
  return typeof currency === "string" && /^[A-Za-z]{3}$/.test(currency) ? currency.toUpperCase() : undefined;
}
