/** The values of templates: JSON, and `undefined` for missing values. Liquid conversions never fail. Pure. */
import { ExpressionError, memberOf, spendText, type Value } from "../expressions/values.ts";
import { isJsonObject, type Json, MAX_DEPTH } from "../json.ts";
import type { Meter } from "../json-schema/meter.ts";
import { MAX_RENDERED_LENGTH } from "./template-limits.ts";

/** Members that no template reads, although JSON may have them. */
const BLOCKED: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);
/** Most characters that one character can become in JSON. */
const GROWTH_IN_JSON = 6;

/** Takes the steps of making a text. Throws if it would be too long. */
export function spendMade(meter: Meter, length: number): void {
  if (length > MAX_RENDERED_LENGTH)
    throw new ExpressionError("Range", `A text would have more than ${MAX_RENDERED_LENGTH} characters.`);
  spendText(meter, length);
}

/**
 * Returns a value as text. A missing value is empty, the items of a list are concatenated, and a map is JSON. Charges the steps before it
 * makes the text.
 */
export function textOf(value: Value, meter: Meter): string {
  if (typeof value === "string") return value;
  if (value === undefined || value === null) return "";
  if (Array.isArray(value)) return joined(value, "", meter);
  return typeof value === "object" ? jsonOf(value, meter) : String(value);
}

/** Joins the texts of items. A list in a list is JSON, so that no recursion follows the nesting. */
export function joined(items: readonly Json[], separator: string, meter: Meter): string {
  let length = 0;
  const texts: string[] = [];
  for (const item of items) {
    meter.spend(1);
    const text = Array.isArray(item) ? jsonOf(item, meter) : textOf(item, meter);
    length += text.length + separator.length;
    if (length > MAX_RENDERED_LENGTH) break;
    texts.push(text);
  }
  spendMade(meter, length);
  return texts.join(separator);
}

export function jsonOf(value: Value, meter: Meter): string {
  const length = lengthOf(value ?? null, meter, MAX_DEPTH);
  spendMade(meter, length);
  return JSON.stringify(value ?? null);
}

/** Returns the length of a value's JSON, or more. Takes a step for each part. */
function lengthOf(value: Json, meter: Meter, depth: number): number {
  meter.spend(1);
  if (typeof value === "string") return lengthOfText(value, meter);
  if (typeof value !== "object" || value === null) return 24;
  if (depth === 0) throw new ExpressionError("Range", `The value nests more than ${MAX_DEPTH} levels deep.`);
  if (Array.isArray(value))
    return value.reduce<number>((sum, item) => sum + 1 + lengthOf(item, meter, depth - 1), 2);
  return Object.entries(value).reduce(
    (sum, [name, member]) => sum + 2 + lengthOfText(name, meter) + lengthOf(member, meter, depth - 1),
    2,
  );
}

function lengthOfText(text: string, meter: Meter): number {
  spendText(meter, text.length * GROWTH_IN_JSON);
  return JSON.stringify(text).length;
}

export function numberOf(value: Value, meter: Meter): number {
  if (typeof value === "number") return value;
  if (typeof value !== "string") return 0;
  spendText(meter, value.length);
  const number = value.length > 100 || value.trim() === "" ? 0 : Number(value);
  return Number.isFinite(number) ? number : 0;
}

/** Returns a value as a list. A missing value is an empty list. A single value is a list of one item. */
export function listOf(value: Value): Json[] {
  if (Array.isArray(value)) return value;
  return value === undefined || value === null ? [] : [value];
}

/** Returns the items of a loop: the items of a list, the pairs of a map, or a whole text. */
export function itemsOf(value: Value, meter: Meter): readonly Json[] {
  if (Array.isArray(value)) return value;
  if (!isJsonObject(value)) return typeof value === "string" && value !== "" ? [value] : [];
  const entries = Object.entries(value);
  meter.spend(entries.length);
  return entries;
}

/** Returns an own member, an item, or the size of a value, if it exists. */
export function readMember(value: Value, key: Value, meter: Meter): Value {
  if (isJsonObject(value)) {
    if (typeof key !== "string" && typeof key !== "number") return undefined;
    const name = String(key);
    if (BLOCKED.has(name)) return undefined;
    if (Object.hasOwn(value, name) || name !== "size") return memberOf(value, name);
    const { length } = Object.keys(value);
    meter.spend(length);
    return length;
  }
  if (typeof value !== "string" && !Array.isArray(value)) return undefined;
  if (key === "size") return value.length;
  if (typeof value === "string") return undefined;
  if (key === "first") return value[0];
  if (key === "last") return value.at(-1);
  return typeof key === "number" && Number.isInteger(key) ? value.at(key) : undefined;
}

/** Reports whether a condition holds. Only `false` and missing values do not hold. */
export function isTrue(value: Value): boolean {
  return value !== false && value !== undefined && value !== null;
}

/** Reports whether a value equals `empty`: a text, list or map without content. */
export function isEmpty(value: Value, meter: Meter): boolean {
  if (typeof value === "string" || Array.isArray(value)) return value.length === 0;
  if (!isJsonObject(value)) return false;
  const { length } = Object.keys(value);
  meter.spend(length);
  return length === 0;
}

/** Reports whether a value equals `blank`: it is empty, `false`, missing, or a text of spaces. */
export function isBlank(value: Value, meter: Meter): boolean {
  if (typeof value !== "string") return !isTrue(value) || isEmpty(value, meter);
  spendText(meter, value.length);
  return value.trim() === "";
}
