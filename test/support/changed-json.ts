/** JSON with another value at one place. */
import fc from "fast-check";
import { isJsonObject, type Json } from "../../src/shared/json.ts";

/** A marker in the text of a line. It is replaced by a number that JSON allows but a double cannot hold. */
export const BEYOND = "@beyond@";
const numbers = [-1, 0, 0.5, 1, 2, 2 ** 31, 2 ** 32, 2 ** 53, 8.64e15, -8.64e15, 1e16, 1e308, -1e308];
const texts = [
  "",
  " ",
  "NaN",
  "Infinity",
  "1e999",
  "\udc00",
  "\u0000",
  "__proto__",
  "conv_1",
  "conv_8",
  "x".repeat(201),
];
const ids = [
  "mem_00000000000000000000000000",
  "mem_7ZZZZZZZZZZZZZZZZZZZZZZZZZ",
  "mem_01KDVDNA00WEQJ2K7RQ0000001",
];
/** Any JSON, most of it such that reads of it may fail. */
export const anything = fc.oneof(
  fc.constantFrom<Json>(...numbers, ...texts, ...ids, null, true, false, [], {}, BEYOND),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.string({ unit: "binary" }),
  fc.jsonValue().map((value): Json => JSON.parse(JSON.stringify(value))),
);

/** Returns the places in a value, as the names on the way to each. */
export function placesIn(value: Json, path: string[] = []): string[][] {
  if (typeof value !== "object" || value === null) return [path];
  return [path, ...Object.entries(value).flatMap(([name, inner]) => placesIn(inner, [...path, name]))];
}

/** Returns a copy of a value with another value at a place, or without the member if it is `undefined`. */
export function withValue(value: Json, [name, ...rest]: string[], other: Json | undefined): Json {
  if (name === undefined) return other ?? null;
  if (Array.isArray(value))
    return value.flatMap((inner, index) =>
      String(index) === name
        ? rest.length === 0 && other === undefined
          ? []
          : withValue(inner, rest, other)
        : inner,
    );
  if (!isJsonObject(value)) return value;
  const entries = Object.entries(value).filter(
    ([one]) => one !== name || rest.length > 0 || other !== undefined,
  );
  return Object.fromEntries(
    entries.map(([one, inner]) => [one, one === name ? withValue(inner, rest, other) : inner]),
  );
}
