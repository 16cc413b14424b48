/** JSON text that loses no part of a value. */
import { describe, expect, test } from "vitest";
import { exactJson } from "../../src/shared/exact-json.ts";

class Account {
  readonly #owner = "ada";
  get owner(): string {
    return this.#owner;
  }
}

const lost: [string, () => unknown, RegExp][] = [
  ["a response", () => new Response("{}"), /a Response\. Return .*await response\.json\(\)/],
  ["a request", () => new Request("https://shop.test"), /a Request/],
  ["headers", () => new Headers({ a: "b" }), /Headers\. .*Object\.fromEntries\(headers\)/],
  ["parameters", () => new URLSearchParams("a=b"), /URLSearchParams/],
  ["a form", () => new FormData(), /FormData/],
  ["a blob", () => new Blob(["a"]), /a Blob/],
  ["a file", () => new File(["a"], "a.txt"), /a File\. .*blob\.text/],
  ["a stream", () => new ReadableStream(), /a ReadableStream/],
  ["an error", () => new TypeError("broken"), /a TypeError\. Throw it/],
  ["an error with members", () => Object.assign(new Error("broken"), { code: "X" }), /an Error\. Throw it/],
  ["a pattern", () => /a/, /a RegExp/],
  ["a map", () => new Map(), /a Map\. /],
  ["a set", () => new Set([1]), /a Set\. /],
  ["a promise", () => Promise.resolve(1), /not awaited/],
  ["another promise", () => Object.fromEntries([["then", () => undefined]]), /not awaited/],
  ["a generator", () => [1].values(), /an instance of /],
  ["private fields", () => new Account(), /an instance of Account, which JSON empties/],
  ["a function", () => () => 1, /a function/],
  ["a symbol", () => Symbol("a"), /a symbol/],
  ["symbols as names", () => ({ [Symbol("a")]: 1 }), /which JSON leaves out/],
  ["hidden members", () => Object.defineProperty({}, "a", { value: 1 }), /which JSON leaves out/],
  ["bytes", () => new Uint8Array(3), /binary data/],
  ["a buffer", () => new ArrayBuffer(3), /ArrayBuffer/],
  ["a conversion to undefined", () => ({ toJSON: () => undefined }), /`toJSON` that returns undefined/],
  ["an invalid date", () => new Date("tomorrow"), /an invalid Date/],
  ["NaN", () => Number.NaN, /NaN/],
  ["infinity", () => -Infinity, /-Infinity/],
  ["a bigint", () => 1n, /a bigint\. Return it as text/],
  ["the first integer that is not exact", () => 2 ** 53, /9007199254740992, beyond/],
  ["a long id", () => -(2 ** 60), /beyond the integers that are exact/],
];

describe("EXACT-1 values that JSON would empty, drop or round are refused", () => {
  test.each(lost)("%s, at any depth", (_, create, reason) => {
    expect(() => exactJson(create())).toThrow(reason);
    expect(() => exactJson({ rows: [{ cell: create() }] })).toThrow(reason);
    expect(() => exactJson({ rows: [{ cell: create() }] })).toThrow(/^"cell" is /);
    expect(() => exactJson([[create()]])).toThrow(/^"0" is /);
  });
});

class Point {
  constructor(readonly x: number) {}
}

test.each<[string, unknown, unknown]>([
  ["undefined", undefined, null],
  ["undefined in a list", [1, undefined], [1, null]],
  ["an undefined member", { a: 1, b: undefined }, { a: 1 }],
  ["a date", { at: new Date(0) }, { at: "1970-01-01T00:00:00.000Z" }],
  ["an address", new URL("https://shop.test/a"), "https://shop.test/a"],
  ["an instance with public members", new Point(1), { x: 1 }],
  ["an object without a prototype", Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
  ["empty containers", { a: {}, b: [] }, { a: {}, b: [] }],
  ["the largest exact integer", Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
  ["a number with an exponent", 6.02e23, 6.02e23],
  ["a fraction", 0.1, 0.1],
])("EXACT-2 %s is kept", (_, value, expected) => {
  expect(JSON.parse(exactJson(value))).toEqual(expected);
});
