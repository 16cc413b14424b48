/** Expressions over JSON, and mappings of them. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compileExpression } from "../../src/shared/expressions/expression.ts";
import {
  MAX_EXPRESSION_LENGTH,
  MAX_EXPRESSION_PARTS,
  MAX_MAPPED_KEYS,
} from "../../src/shared/expressions/expression-limits.ts";
import { mapped, mappingIssues } from "../../src/shared/expressions/mapping.ts";
import { ExpressionError } from "../../src/shared/expressions/values.ts";
import { isJson, type Json, type JsonObject } from "../../src/shared/json.ts";
import { Meter, Spent } from "../../src/shared/json-schema/meter.ts";
import { checkBudget } from "../../src/shared/json-schema/violations.ts";
import { jsonValues } from "../support/json-values.ts";

const INPUT: JsonObject = {
  count: 2,
  name: "Ann",
  items: [1, 2, 3],
  users: [
    { name: "Ann", age: 30, tags: ["a", "b"] },
    { name: "Bob", age: 20, tags: [] },
  ],
  nothing: null,
  nested: { list: [[1], [2, 3]], flag: true },
};

function value(source: string, input: Json = INPUT, meter = checkBudget()): Json | undefined {
  return compileExpression(source, ["input"]).evaluate({ input }, meter);
}

describe("EXPR-1 numbers are of one type, and values are JSON", () => {
  test.each<[string, Json]>([
    ["input.count + 1", 3],
    ["input.items.map(i, i * 2)", [2, 4, 6]],
    ["size(input.items)", 3],
    ["10 / 4", 2.5],
    ["10 / 4 == 2.5", true],
    ["7 % 3 - -1", 2],
    ["1 == 1.0", true],
    ["0x10 + 1", 17],
    ["sum(input.items) / input.items.size()", 2],
    ["avg(input.items)", 2],
    ["max(1, 3, 2) + min(input.items)", 4],
    ["int('12') + double('1.5')", 13.5],
    ["round(2.5) + floor(1.9) + ceil(1.1) + abs(-1)", 7],
  ])("%s", (source, expected) => {
    expect(value(source)).toEqual(expected);
  });

  test.each(["9007199254740991 + 1", "9007199254740992", "1e300 * 1e300", "1 / 0", "1 % 0"])(
    "%s is beyond the range",
    (source) => {
      expect(() => value(source)).toThrow(/^Range error/);
    },
  );
});

describe("EXPR-2 missing values read as null, and only own members are read", () => {
  test.each<[string, Json]>([
    ["input.none == null", true],
    ["input.none.deeper == null", true],
    ["input.items[7] == null", true],
    ["[input.none]", [null]],
    ["{'a': input.none}", { a: null }],
    ["has(input.nothing)", true],
    ["has(input.none)", false],
    ["has(input.none.deeper)", false],
    ["get(input, 'none', 'other')", "other"],
    ["'toString' in input", false],
    ["input['valueOf'] == null", true],
    ["input.hasOwnProperty == null", true],
  ])("%s", (source, expected) => {
    expect(value(source)).toEqual(expected);
  });

  test("the path of something missing has no value", () => {
    for (const source of [
      "input.none",
      "input.none.deeper",
      "input.items[9]",
      "input['none']",
      "input.count > 1 ? input.none : 1",
    ])
      expect(value(source)).toBeUndefined();
  });

  test.each([
    "input.__proto__",
    "input.constructor",
    "{'prototype': 1}",
    "input['__proto__']",
    "{'con' + 'structor': 1}",
  ])("F13 %s is refused", (source) => {
    expect(() => value(source)).toThrow(/^Reference error: The name ".*" is not allowed/);
  });

  test("F13 results are independent copies, and no prototype changes", () => {
    const input = JSON.parse('{"__proto__": {"polluted": true}, "items": [{"a": 1}]}');
    const copy = value("input", input);
    expect(JSON.stringify(copy)).toBe(JSON.stringify(input));
    expect((value("input.items", input) as Json[])[0]).not.toBe(input.items[0]);
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype);
    expect("polluted" in {}).toBe(false);
  });
});

describe("operators, macros and functions", () => {
  test.each<[string, Json]>([
    ["input.name + '!'", "Ann!"],
    ["input.items + [4]", [1, 2, 3, 4]],
    ["input.users.filter(u, u.age > 25).map(u, u.name)", ["Ann"]],
    ["input.users.map(u, u.age > 25, u.name)", ["Ann"]],
    ["input.users.exists(u, u.name == 'Bob') && !input.users.all(u, u.age > 25)", true],
    ["input.users.exists_one(u, u.age == 20)", true],
    ["input.users.find(u, u.age < 25).name", "Bob"],
    [
      "input.items.map(i, input.items.map(j, i * j))",
      [
        [1, 2, 3],
        [2, 4, 6],
        [3, 6, 9],
      ],
    ],
    ["input.nested.map(key, key)", ["list", "flag"]],
    ["input.count > 1 ? 'many' : 'one'", "many"],
    ["false && input.none", false],
    ["'Ann' < 'Bob' && 2 <= 2 && 3 >= 2", true],
    ["2 in input.items && 'name' in input", true],
    ["input.users[0] == {'age': 30, name: 'Ann', 'tags': ['a', 'b']}", true],
    ["input.users[0] != input.users[1]", true],
    ["type(1) + type('') + type([]) + type({}) + type(null) + type(true)", "numberstringlistmapnullbool"],
    ["input.name.matches('^A.n$')", true],
    ["'a-b-c'.split('-').join('+')", "a+b+c"],
    ["' Ab '.trim().lower() + upper('c')", "abC"],
    ["'banana'.replace('a', 'o') + 'banana'.replaceAll('a', '$&')", "bonanab$&n$&n$&"],
    ["substring('banana', 1, 3) + 'x'", "anx"],
    ["'banana'.startsWith('ba') && 'banana'.endsWith('na') && 'banana'.contains('nan')", true],
    ["size('a😀b')", 3],
    ["flatten(input.nested.list).reverse()", [3, 2, 1]],
    ["unique([1, 1, 'a', [1], [1], {'a': 1}, {'a': 1}])", [1, "a", [1], { a: 1 }]],
    ["sort(['b', 'a'])", ["a", "b"]],
    ["first(input.items) + last(input.items)", 4],
    ["slice(input.items, 1)", [2, 3]],
    ["append(input.items, 4).concat([5])", [1, 2, 3, 4, 5]],
    ["keys(input.nested)", ["list", "flag"]],
    ["values(pick(input, ['count', 'none']))", [2]],
    ["entries(omit(input.users[1], ['name', 'tags']))", [{ key: "age", value: 20 }]],
    ["merge({'a': 1, 'b': 1}, {'b': 2})", { a: 1, b: 2 }],
    ["isEmpty('') && isEmpty([]) && isEmpty({}) && isEmpty(input.none) && !isEmpty('a')", true],
    ["isArray([]) && isObject({}) && isString('') && isNumber(1) && isBoolean(true) && isNull(null)", true],
    ["isDefined(input.nothing)", false],
    ["string(1.5) + string(true)", "1.5true"],
  ])("%s", (source, expected) => {
    expect(value(source)).toEqual(expected);
  });

  test.each([
    ["input.count + 'a'", /^Type error: What "\+" adds to a number must be a number, not a string/],
    ["input.none + 1", /^Type error/],
    ["input.none ? 1 : 2", /^Type error: A condition must be a bool, not a null/],
    ["input.name.first", /^Type error/],
    ["input.items.map(i, i > 'a')", /^Type error/],
    ["input.items[-1]", /^Range error/],
    ["input.count.all(i, true)", /^Type error: The collection of a loop must be a list, not a number/],
    ["int('1x')", /^Type error/],
    ["'a'.matches('(a')", /^Syntax error: The pattern/],
    ["'a'.matches('(a)\\\\1')", /^Syntax error: The pattern/],
  ])("%s fails", (source, message) => {
    expect(() => value(source)).toThrow(message);
  });
});

describe("EXPR-4 errors that do not depend on values are found by compiling", () => {
  test.each([
    ["input.", /^Syntax error: .* at character/],
    ["1 +* 2", /^Syntax error/],
    ["", /^Syntax error/],
    ["inputs.name", /^Reference error: There is no variable "inputs". Known variables: input/],
    ["evil(input)", /^Reference error: There is no function "evil"/],
    ["constructor(input)", /^Reference error/],
    ["input.toString()", /^Reference error/],
    ["size()", /^Syntax error: "size" takes 1 arguments/],
    ["has(input)", /^Syntax error/],
    ["b'ab'", /^Syntax error: Bytes/],
    ["input.items.map(i, i + j)", /^Reference error: There is no variable "j"/],
    ["(".repeat(500), /^Syntax error/],
    [`${"!".repeat(MAX_EXPRESSION_LENGTH - 4)}true`, /^Syntax error/],
    [`1${"+1".repeat(MAX_EXPRESSION_PARTS)}`, /^Syntax error/],
    [`"${"a".repeat(MAX_EXPRESSION_LENGTH)}"`, /^Syntax error: Must have at most 10000 characters/],
  ])("%s", (source, message) => {
    expect(() => compileExpression(source, ["input"])).toThrow(ExpressionError);
    expect(() => compileExpression(source, ["input"])).toThrow(message);
  });
});

const LIST: Json[] = Array.from({ length: 40_000 }, (_, index) => index);
const TEXT = "a".repeat(2_000_000);

describe("F13 EXPR-3 hostile expressions end within their steps", () => {
  test.each<[string, string, Json]>([
    ["loops in loops", "input.map(a, input.map(b, input.map(c, a + b + c)))", LIST],
    ["loops with empty results", "input.filter(a, input.exists(b, b < 0))", LIST],
    ["a text that doubles", `[input]${".map(a, a + a)".repeat(40)}`, "ab"],
    ["a list that doubles", `[[input]]${".map(a, a + a)".repeat(40)}`, "ab"],
    ["a value that contains itself twice", `[input]${".map(a, [a, a])".repeat(40)}`, "ab"],
    ["comparing such values", `[input]${".map(a, [a, a])".repeat(30)}.map(a, a == [a[0], a[1]])`, "ab"],
    ["a search at every place", `input.contains('b' + input.substring(0, 1000000))`, TEXT],
    ["replacing by a long text", `input.replaceAll('a', input)`, TEXT],
    ["joining long texts", `[input, input].map(a, [input, input, input].join(input)).join(input)`, TEXT],
    ["splitting", `input.split('')`, TEXT],
    ["a pattern over a long text", `input.matches('^(a|aa)+$')`, TEXT],
    ["patterns without end", `input.map(a, string(a).matches('(x{1,200}y{1,100})' + string(a)))`, LIST],
    ["numbered members", `input.map(a, {'1000': 0})`, LIST],
    ["unequal objects", `unique(input.map(a, [a]))`, LIST],
    ["sorting", `sort(input.map(a, string(a) + '${"x".repeat(200)}'))`, LIST],
    ["copying", "[input, input, input, input, input, input, input, input]", LIST],
  ])("%s", (_, source, input) => {
    const { evaluate } = compileExpression(source, ["input"]);
    expect(() => evaluate({ input }, checkBudget())).toThrow(Spent);
  });

  test("a property: for any expression and value, the budget is checked before each result is built, and results are JSON", () => {
    const names = fc.constantFrom(
      "input",
      "input.a",
      "input.b",
      "input.a[0]",
      "1",
      "2.5",
      "'x'",
      "true",
      "null",
      "[]",
      "{}",
    );
    const { tree } = fc.letrec<{ tree: string }>((tie) => ({
      tree: fc.oneof(
        { depthSize: "small" },
        names,
        fc
          .tuple(tie("tree"), fc.constantFrom("+", "-", "*", "/", "%", "==", "<", "in", "&&"), tie("tree"))
          .map(([a, o, b]) => `(${a} ${o} ${b})`),
        fc
          .tuple(tie("tree"), fc.constantFrom("map", "filter", "all", "exists"), tie("tree"))
          .map(([a, f, b]) => `(${a}).${f}(i, ${b})`),
        fc
          .tuple(
            fc.constantFrom(
              "size",
              "keys",
              "sort",
              "unique",
              "flatten",
              "string",
              "isEmpty",
              "min",
              "upper",
              "join",
              "entries",
            ),
            tie("tree"),
          )
          .map(([f, a]) => `${f}(${a})`),
        fc
          .tuple(tie("tree"), tie("tree"), tie("tree"))
          .map(([a, b, c]) => `(${a} ? ${b} : [${c}, {'k': ${a}}])`),
      ),
    }));
    fc.assert(
      fc.property(tree, jsonValues({ maxDepth: 4 }), jsonValues({ maxDepth: 4 }), (source, a, b) => {
        const input = JSON.parse(JSON.stringify({ a, b }));
        const before = JSON.stringify(input);
        const meter = new Meter(20_000);
        let result: Json | undefined;
        try {
          result = compileExpression(source, ["input"]).evaluate({ input }, meter);
        } catch (error) {
          if (!(error instanceof Spent)) expect(error).toBeInstanceOf(ExpressionError);
        }
        expect(meter.spent).toBeLessThanOrEqual(20_000);
        expect(JSON.stringify(input)).toBe(before);
        if (result !== undefined) expect(isJson(result)).toBe(true);
      }),
      { numRuns: 3_000 },
    );
  });
});

describe("mappings", () => {
  test("MAPPING-1 A8 the object has the mapped members, without missing members", () => {
    const mapping = {
      query: "input.name",
      limit: "input.none",
      many: "input.count > 1",
      fallback: "get(input, 'none', 5)",
    };
    expect(mapped(mapping, { input: INPUT }, checkBudget())).toEqual({
      query: "Ann",
      many: true,
      fallback: 5,
    });
    expect(mapped({}, { input: INPUT }, checkBudget())).toEqual({});
  });

  test("MAPPING-2 every problem is named by its member", () => {
    expect(
      mappingIssues(
        { ok: "input.a", "a/b": "input.", other: "none", ["__proto__"]: "1" },
        ["input"],
        "/inputMapping",
      ),
    ).toEqual([
      { path: "/inputMapping/a~1b", message: expect.stringMatching(/^Syntax error/) },
      { path: "/inputMapping/other", message: expect.stringMatching(/^Reference error/) },
      { path: "/inputMapping/__proto__", message: expect.stringMatching(/^Reference error/) },
    ]);
    const many = Object.fromEntries(
      Array.from({ length: MAX_MAPPED_KEYS + 1 }, (_, index) => [`k${index}`, "1"]),
    );
    expect(mappingIssues(many, ["input"])).toEqual([
      { path: "", message: expect.stringContaining("at most 64 members") },
    ]);
    const long = { one: `"${"a".repeat(6_000)}"`, two: `"${"a".repeat(6_000)}"` };
    expect(mappingIssues(long, ["input"])).toEqual([
      { path: "", message: expect.stringContaining("at most 10000 characters") },
    ]);
    expect(() => mapped({ sum: "input.name + 1" }, { input: INPUT }, checkBudget())).toThrow(
      "/sum: Type error",
    );
  });
});
