/** The filters of templates: the filters of Liquid that do not read clock, chance or files, and that terminate. Pure. */
import { FUNCTIONS } from "../expressions/functions.ts";
import { compare, ExpressionError, equals, inRange, spendText, type Value } from "../expressions/values.ts";
import type { Json } from "../json.ts";
import type { Meter } from "../json-schema/meter.ts";
import { cut } from "../text.ts";
import { isTrue, joined, jsonOf, listOf, numberOf, readMember, spendMade, textOf } from "./values.ts";

/** A filter. The value before it is the first argument. */
interface TemplateFilter {
  /** The fewest and the most arguments after the value. */
  readonly counts: readonly [number, number];
  run(values: readonly Value[], meter: Meter): Value;
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&#34;",
  "'": "&#39;",
};
/** Digits after the point that `round` keeps. */
const MAX_DIGITS = 15;

function ofText(
  run: (text: string, others: readonly string[], meter: Meter) => Value,
  least = 0,
  most = least,
) {
  return define(least, most, (values, meter) => {
    const [text = "", ...others] = values.map((value) => textOf(value, meter));
    spendMade(meter, text.length);
    return run(text, others, meter);
  });
}

function ofNumbers(run: (value: number, other: number) => number, least = 0, most = least) {
  return define(least, most, (values, meter) => {
    const [value = 0, other = 0] = values.map((one) => numberOf(one, meter));
    return inRange(run(value, other));
  });
}

/** A filter of a list. Takes a step for each item. */
function ofList(
  run: (list: Json[], others: readonly Value[], meter: Meter) => Value,
  least = 0,
  most = least,
) {
  return define(least, most, ([value, ...others], meter) => {
    const list = listOf(value);
    meter.spend(list.length);
    return run(list, others, meter);
  });
}

function define(least: number, most: number, run: TemplateFilter["run"]): TemplateFilter {
  return { counts: [least, most], run };
}

/** A function of expressions as a filter, with texts as arguments. */
const asIn = (name: string, least: number, by?: string) =>
  ofText((text, others, meter) => {
    const more = by === undefined ? others : [...others, by];
    const made = FUNCTIONS[name]?.run([text, ...more], meter);
    if (typeof made === "string") spendMade(meter, made.length);
    return made;
  }, least);

const divided = (operate: (value: number, other: number) => number) =>
  ofNumbers((value, other) => {
    if (other === 0) throw new ExpressionError("Range", "A number is divided by zero.");
    return operate(value, other);
  }, 1);

/** Cuts the end of a text to at most `length`, including the ellipsis. */
function truncated([value, length, ellipsis]: readonly Value[], meter: Meter): string {
  const [text, end] = [textOf(value, meter), ellipsis === undefined ? "..." : textOf(ellipsis, meter)];
  const most = length === undefined ? 50 : numberOf(length, meter);
  spendMade(meter, text.length + end.length);
  return text.length <= most ? text : cut(text, Math.max(0, most - end.length)) + end;
}

function withoutLaterWords([value, count, ellipsis]: readonly Value[], meter: Meter): string {
  const [text, end] = [textOf(value, meter), ellipsis === undefined ? "..." : textOf(ellipsis, meter)];
  const most = Math.max(1, count === undefined ? 15 : numberOf(count, meter));
  spendMade(meter, text.length * 2 + end.length);
  const words = text.trim().split(/\s+/);
  meter.spend(words.length);
  return words.length <= most ? words.join(" ") : words.slice(0, most).join(" ") + end;
}

function sliced([value, start, length]: readonly Value[], meter: Meter): Value {
  const whole = Array.isArray(value) ? value : textOf(value, meter);
  const count = length === undefined ? 1 : Math.max(0, numberOf(length, meter));
  const at = Math.trunc(numberOf(start, meter));
  const from = at < 0 ? whole.length + at : at;
  if (from < 0) return typeof whole === "string" ? "" : [];
  spendText(meter, Math.min(whole.length, count) * (typeof whole === "string" ? 1 : 16));
  return whole.slice(from, from + count);
}

function escaped(text: string, _: readonly string[], meter: Meter): string {
  const parts = text.match(/[&<>"']/g)?.length ?? 0;
  meter.spend(parts);
  spendMade(meter, text.length + parts * 4);
  return text.replace(/[&<>"']/g, (one) => ENTITIES[one] ?? one);
}

/** Sorts items, by a member if one is named. Items without it come last. */
function sorted(list: readonly Json[], [name]: readonly Value[], meter: Meter): Json[] {
  const keyed = list.map((item) => ({
    item,
    key: name === undefined ? item : readMember(item, name, meter),
  }));
  const isMissing = (key: Value) => key === undefined || key === null;
  const order = keyed.toSorted((one, other) => {
    meter.spend(4);
    if (isMissing(one.key) || isMissing(other.key))
      return Number(isMissing(one.key)) - Number(isMissing(other.key));
    return compare(one.key, other.key, meter);
  });
  return order.map(({ item }) => item);
}

function split(text: string, [separator = ""]: readonly string[], meter: Meter): Value {
  const parts = FUNCTIONS.split?.run([text, separator], meter);
  const list = listOf(parts);
  return list.slice(0, list.findLastIndex((part) => part !== "") + 1);
}

/** The filters by name. Own members only: look up with `Object.hasOwn`. */
export const FILTERS: Readonly<Record<string, TemplateFilter>> = {
  append: ofText((text, [end = ""], meter) => {
    spendMade(meter, text.length + end.length);
    return text + end;
  }, 1),
  prepend: ofText((text, [start = ""], meter) => {
    spendMade(meter, text.length + start.length);
    return start + text;
  }, 1),
  capitalize: ofText((text) => text.charAt(0).toUpperCase() + text.slice(1).toLowerCase()),
  downcase: ofText((text) => text.toLowerCase()),
  upcase: ofText((text) => text.toUpperCase()),
  strip: ofText((text) => text.trim()),
  lstrip: ofText((text) => text.trimStart()),
  rstrip: ofText((text) => text.trimEnd()),
  strip_newlines: ofText((text) => text.replaceAll("\r", "").replaceAll("\n", "")),
  escape: ofText(escaped),
  replace: asIn("replaceAll", 2),
  replace_first: asIn("replace", 2),
  remove: asIn("replaceAll", 1, ""),
  remove_first: asIn("replace", 1, ""),
  split: ofText(split, 1),
  truncate: define(0, 2, truncated),
  truncatewords: define(0, 2, withoutLaterWords),
  slice: define(1, 2, sliced),

  plus: ofNumbers((value, other) => value + other, 1),
  minus: ofNumbers((value, other) => value - other, 1),
  times: ofNumbers((value, other) => value * other, 1),
  divided_by: divided((value, other) => value / other),
  modulo: divided((value, other) => value % other),
  abs: ofNumbers(Math.abs),
  ceil: ofNumbers(Math.ceil),
  floor: ofNumbers(Math.floor),
  round: ofNumbers(
    (value, digits) => {
      const unit = 10 ** Math.min(MAX_DIGITS, Math.max(0, Math.trunc(digits)));
      const units = value * unit;
      return Math.abs(units) < 2 ** 53 ? Math.round(units) / unit : value;
    },
    0,
    1,
  ),
  at_least: ofNumbers(Math.max, 1),
  at_most: ofNumbers(Math.min, 1),

  size: define(0, 0, ([value], meter) => readMember(value, "size", meter) ?? 0),
  first: ofList(([first]) => first),
  last: ofList((list) => list.at(-1)),
  join: ofList(
    (list, [separator], meter) =>
      joined(list, separator === undefined ? " " : textOf(separator, meter), meter),
    0,
    1,
  ),
  reverse: ofList((list) => list.toReversed()),
  compact: ofList((list) => list.filter((item) => item !== null)),
  uniq: ofList((list, _, meter) => FUNCTIONS.unique?.run([list], meter)),
  concat: ofList((list, [other], meter) => {
    const more = listOf(other);
    meter.spend(more.length);
    return [...list, ...more];
  }, 1),
  sort: ofList(sorted, 0, 1),
  map: ofList((list, [name], meter) => list.map((item) => readMember(item, name, meter) ?? null), 1),
  where: ofList(
    (list, [name, wanted], meter) =>
      list.filter((item) => {
        const member = readMember(item, name, meter);
        return wanted === undefined ? isTrue(member) : equals(member, wanted, meter);
      }),
    1,
    2,
  ),
  sum: ofList(
    (list, [name], meter) =>
      list.reduce<number>(
        (sum, item) =>
          inRange(sum + numberOf(name === undefined ? item : readMember(item, name, meter), meter)),
        0,
      ),
    0,
    1,
  ),

  default: define(1, 1, ([value, other], meter) => {
    meter.spend(1);
    return !isTrue(value) || ((typeof value === "string" || Array.isArray(value)) && value.length === 0)
      ? other
      : value;
  }),
  json: define(0, 0, ([value], meter) => jsonOf(value, meter)),
};
