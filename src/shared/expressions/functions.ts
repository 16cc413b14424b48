/** The functions of expressions. `f(x, y)` and `x.f(y)` mean the same. Pure. */
import type { Json } from "../json.ts";
import type { Meter } from "../json-schema/meter.ts";
import { Patterns, stepsOfMatch } from "../json-schema/pattern.ts";
import { UnsupportedPattern } from "../json-schema/pattern-syntax.ts";
import {
  asList,
  asMap,
  asNumber,
  asText,
  compare,
  ExpressionError,
  equals,
  inRange,
  itemOf,
  mapOf,
  spendSearch,
  spendText,
  typeOf,
  type Value,
} from "./values.ts";

interface ExpressionFunction {
  /** The fewest and the most arguments. */
  readonly counts: readonly [number, number];
  run(values: readonly Value[], meter: Meter): Value;
}

/** Steps of compiling a pattern that an expression computes. */
const MAX_PATTERN_STEPS = 50_000;

type Run = (values: readonly Value[], meter: Meter) => Value;

function define(least: number, run: Run, most = least): ExpressionFunction {
  return { counts: [least, most], run };
}

/** A function of a text. Takes the steps of reading it. */
function ofText(
  run: (text: string, others: readonly Value[], meter: Meter) => Value,
  others = 0,
  optional = 0,
) {
  return define(
    1 + others,
    ([first, ...rest], meter) => {
      const text = asText(first, "The text");
      spendText(meter, text.length);
      return run(text, rest, meter);
    },
    1 + others + optional,
  );
}

/** A function of a list. Takes a step for each item. */
function ofList(
  run: (list: Json[], others: readonly Value[], meter: Meter) => Value,
  others = 0,
  optional = 0,
) {
  return define(
    1 + others,
    ([first, ...rest], meter) => {
      const list = asList(first, "The list");
      meter.spend(list.length);
      return run(list, rest, meter);
    },
    1 + others + optional,
  );
}

/** A function of a map. Takes a step for each member. */
function ofMap(
  run: (entries: [string, Json][], others: readonly Value[], meter: Meter) => Value,
  others = 0,
) {
  return define(1 + others, ([first, ...rest], meter) => {
    const entries = Object.entries(asMap(first, "The map"));
    meter.spend(entries.length);
    return run(entries, rest, meter);
  });
}

const ofNumber = (run: (value: number) => number) =>
  define(1, ([value]) => inRange(run(asNumber(value, "The number"))));

const isType = (...types: string[]) => define(1, ([value]) => types.includes(typeOf(value)));

function sizeOf([value]: readonly Value[], meter: Meter): number {
  if (typeof value === "string") {
    spendText(meter, value.length);
    return charactersOf(value);
  }
  if (Array.isArray(value)) return value.length;
  const { length } = Object.keys(asMap(value, "The argument of size()"));
  meter.spend(length);
  return length;
}

function charactersOf(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1) count += 1;
  return count;
}

/** Reports whether a text has a part, a list an item, or a map a member. */
export function includes(container: Value, part: Value, meter: Meter): boolean {
  if (typeof container === "string") {
    const searched = asText(part, "A part of a text");
    spendSearch(meter, container, searched);
    return container.includes(searched);
  }
  if (Array.isArray(container)) return container.some((item) => equals(item, part, meter));
  return Object.hasOwn(asMap(container, "The searched value"), asText(part, "The name of a member"));
}

function matches([text, pattern]: readonly Value[], meter: Meter): boolean {
  const source = asText(pattern, "A pattern");
  const subject = asText(text, "The text");
  const patterns = new Patterns(Math.min(MAX_PATTERN_STEPS, meter.left));
  try {
    const compiled = patterns.compile(source);
    meter.spend(patterns.spent + stepsOfMatch(compiled, subject));
    return compiled.test(subject);
  } catch (error) {
    if (error instanceof UnsupportedPattern)
      throw new ExpressionError("Syntax", `The pattern: ${error.message}`);
    throw error;
  }
}

/** Adds up the lengths of texts before they are joined, so that no text is made that is too long. */
function joined(parts: readonly Json[], separator: string, meter: Meter): string {
  const texts = parts.map((part) => textOf(part));
  const length = texts.reduce((sum, text) => sum + text.length + separator.length, 0);
  spendText(meter, length);
  return texts.join(separator);
}

function textOf(value: Value): string {
  if (typeof value === "object" && value !== null)
    throw new ExpressionError("Type", `A ${typeOf(value)} cannot be converted to text.`);
  return String(value ?? null);
}

function replaced(text: string, [search, by]: readonly Value[], meter: Meter, all: boolean): string {
  const [from, to] = [asText(search, "The replaced text"), asText(by, "The replacement")];
  if (from === "") throw new ExpressionError("Range", "An empty text cannot be replaced.");
  spendSearch(meter, text, from);
  const times = all ? countOf(text, from) : 1;
  meter.spend(times);
  spendText(meter, text.length + times * to.length);
  return all ? text.replaceAll(from, () => to) : text.replace(from, () => to);
}

function countOf(text: string, part: string): number {
  let count = 0;
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + part.length)) count += 1;
  return count;
}

function flat(list: readonly Json[], meter: Meter): Json[] {
  meter.spend(list.reduce<number>((sum, item) => sum + (Array.isArray(item) ? item.length : 1), 0));
  return list.flat() as Json[];
}

function unique(list: readonly Json[], meter: Meter): Json[] {
  const simple = new Set<Json>();
  const others: Json[] = [];
  return list.filter((item) => {
    if (typeof item !== "object" || item === null) return !simple.has(item) && simple.add(item);
    if (others.some((other) => equals(item, other, meter))) return false;
    others.push(item);
    return true;
  });
}

const sum = (list: readonly Json[]) =>
  list.reduce<number>((total, item) => inRange(total + asNumber(item, "An item")), 0);

/** Returns the bounds of a part, from its arguments: a start, and an end that may be absent. */
function part<Whole extends string | Json[]>(whole: Whole, [start, end]: readonly Value[]): Whole {
  const to = end === undefined || end === null ? whole.length : asNumber(end, "The end");
  // SAFETY: `slice` of a text is a text, and `slice` of a list is a list.
  return whole.slice(asNumber(start, "The start"), to) as Whole;
}

/** Returns the best number or text of a list or of the arguments. */
function best(isBetter: (order: number) => boolean): ExpressionFunction {
  return define(
    1,
    (values, meter) => {
      const items: readonly Value[] = Array.isArray(values[0]) ? values[0] : values;
      meter.spend(items.length);
      return items.reduce((one, other) => (isBetter(compare(other, one, meter)) ? other : one), items[0]);
    },
    8,
  );
}

const names = (value: Value) => asList(value, "The names").map((name) => asText(name, "A name"));

/** The functions by name. Own members only: look up with `Object.hasOwn`. */
export const FUNCTIONS: Readonly<Record<string, ExpressionFunction>> = {
  size: define(1, sizeOf),
  length: define(1, sizeOf),
  contains: define(2, ([one, other], meter) => includes(one, other, meter)),
  includes: define(2, ([one, other], meter) => includes(one, other, meter)),
  matches: define(2, matches),
  type: define(1, ([value]) => typeOf(value)),

  string: define(1, ([value], meter) => {
    const text = textOf(value);
    spendText(meter, text.length);
    return text;
  }),
  double: define(1, ([value], meter) => toNumber(value, meter)),
  int: define(1, ([value], meter) => Math.trunc(toNumber(value, meter))),

  startsWith: ofText((text, [start]) => text.startsWith(asText(start, "The start")), 1),
  endsWith: ofText((text, [end]) => text.endsWith(asText(end, "The end")), 1),
  upper: ofText((text) => text.toUpperCase()),
  lower: ofText((text) => text.toLowerCase()),
  trim: ofText((text) => text.trim()),
  split: ofText((text, [by], meter) => {
    const separator = asText(by, "The separator");
    spendSearch(meter, text, separator);
    meter.spend(Math.ceil(text.length / Math.max(1, separator.length)));
    return text.split(separator);
  }, 1),
  substring: ofText((text, bounds) => part(text, bounds), 1, 1),
  replace: ofText((text, others, meter) => replaced(text, others, meter, false), 2),
  replaceAll: ofText((text, others, meter) => replaced(text, others, meter, true), 2),

  join: ofList(
    (list, [separator = ""], meter) => joined(list, asText(separator, "The separator"), meter),
    0,
    1,
  ),
  first: ofList(([first]) => first),
  last: ofList((list) => list.at(-1)),
  slice: ofList((list, bounds) => part(list, bounds), 1, 1),
  append: ofList((list, [item]) => [...list, item ?? null], 1),
  concat: ofList((list, [other], meter) => {
    const more = asList(other, "The list");
    meter.spend(more.length);
    return [...list, ...more];
  }, 1),
  unique: ofList((list, _, meter) => unique(list, meter)),
  flatten: ofList((list, _, meter) => flat(list, meter)),
  reverse: ofList((list) => list.toReversed()),
  sort: ofList((list, _, meter) =>
    list.toSorted((one, other) => {
      meter.spend(4);
      return compare(one, other, meter);
    }),
  ),
  sum: ofList((list) => sum(list)),
  avg: ofList((list) => (list.length === 0 ? null : sum(list) / list.length)),
  min: best((order) => order < 0),
  max: best((order) => order > 0),

  keys: ofMap((entries) => entries.map(([name]) => name)),
  values: ofMap((entries) => entries.map(([, value]) => value)),
  entries: ofMap((entries) => entries.map(([key, value]) => ({ key, value }))),
  merge: ofMap((entries, [other], meter) => {
    const more = Object.entries(asMap(other, "The map"));
    meter.spend(more.length);
    return mapOf([...entries, ...more], meter);
  }, 1),
  pick: ofMap((entries, [wanted], meter) => {
    const kept = new Set(names(wanted));
    meter.spend(kept.size);
    return mapOf(
      entries.filter(([name]) => kept.has(name)),
      meter,
    );
  }, 1),
  omit: ofMap((entries, [unwanted], meter) => {
    const left = new Set(names(unwanted));
    meter.spend(left.size);
    return mapOf(
      entries.filter(([name]) => !left.has(name)),
      meter,
    );
  }, 1),
  get: define(2, ([value, index, otherwise]) => itemOf(value, index) ?? otherwise, 3),

  round: ofNumber(Math.round),
  floor: ofNumber(Math.floor),
  ceil: ofNumber(Math.ceil),
  abs: ofNumber(Math.abs),

  isArray: isType("list"),
  isObject: isType("map"),
  isString: isType("string"),
  isNumber: isType("number"),
  isBoolean: isType("bool"),
  isNull: isType("null"),
  isDefined: define(1, ([value]) => value !== undefined && value !== null),
  isEmpty: define(1, ([value], meter) => typeOf(value) === "null" || sizeOf([value], meter) === 0),
};

function toNumber(value: Value, meter: Meter): number {
  if (typeof value === "number") return value;
  const text = asText(value, "A number as text");
  spendText(meter, text.length);
  const number = /^\s*[-+]?[0-9]{1,40}(\.[0-9]{1,40})?(e[-+]?[0-9]{1,3})?\s*$/i.test(text)
    ? Number(text)
    : Number.NaN;
  if (!Number.isFinite(number)) throw new ExpressionError("Type", "The text is not a number.");
  return inRange(number);
}
