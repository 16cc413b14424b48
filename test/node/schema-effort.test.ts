/** Schemas and patterns from outside: what they may cost the actor that checks against them. */
import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { checkTurnSchemas, violations } from "../../src/agents/conversation/core/planning/schema-check.ts";
import { inputSchemaIssues } from "../../src/library/input-schema.ts";
import type { Json, JsonObject } from "../../src/shared/json.ts";
import { effortOf } from "../../src/shared/json-schema/effort.ts";
import { patternProblem, patternSteps } from "../../src/shared/json-schema/pattern-effort.ts";

describe("PATTERN-1 a pattern", () => {
  test.each([
    ...["(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(a?){40}a{40}", "^(\\d+\\s*)*$", "^(?:[a-z]+-?)*x$", "(a*)*"],
    ...["^([\\w.-]+\\s?)+$", "(?:\\w|_)*!", "(a{1,3})*b", "^(?:(?:ab)*a?b?)*$", "((?=a*)a?)*"],
    ...["\\d*\\d*\\d*\\d*\\d*\\d*x", "(\\u{61}|\\x61)+$", "(\\p{L}|\\d)*x", "(\\cA|\\x01)*x", "([^a]|b)*c"],
    ...["(.*)\\1", "(?<a>x)\\k<a>", "(?<=a)b", "(?<!a)b", "(", "[b-a]", "a".repeat(501)],
    ...["((a{99}){99}){99}", `${"(".repeat(30)}a${")".repeat(30)}`],
  ])("that may take for ever is refused: %s", (pattern) => {
    expect(patternProblem(pattern)).toMatch(/^(Must|Can|Unlimited) /);
  });

  test.each([
    ...[
      "^[a-z0-9]+(-[a-z0-9]+)*$",
      "^\\S+@\\S+\\.\\S+$",
      "^(\\w+\\.)*\\w+$",
      ".*foo.*",
      "^https?://.+\\.png$",
    ],
    ...["^(red|rose)( (red|rose))*$", "^#?([a-f0-9]{6}|[a-f0-9]{3})$", "^\\+?[1-9]\\d{1,14}$", "\\bfoo\\b"],
    ...[
      "^(?!.*--)[a-z-]{1,63}$",
      "^\\s+|\\s+$",
      "^[^\\s].*[^\\s]$",
      "^\\p{Lu}\\p{L}*( \\p{L}+)?$",
      "[\\]\\-b]",
    ],
    ...["^(?<year>\\d{4})-\\d\\d$", "^[\\u{1F600}-\\u{1F64F}]$", "^\\ud83d\\ude00*$", "[\\b]", "^a{2,}b*?$"],
  ])("that people write is taken: %s", (pattern) => {
    expect(patternProblem(pattern)).toBeNull();
  });

  test("of the formats that zod knows is taken", () => {
    const { email, uuid, ipv4, ipv6, base64, cuid, e164, iso } = z;
    for (const type of [
      email(),
      uuid(),
      ipv4(),
      ipv6(),
      base64(),
      cuid(),
      e164(),
      iso.datetime(),
      iso.date(),
    ])
      expect(patternProblem(z.toJSONSchema(type).pattern), z.toJSONSchema(type).pattern).toBeNull();
  });

  test("takes no more steps than estimated, as a matcher that tries one way after another counts them", () => {
    const part = fc.constantFrom("a", "b", "[ab]", "[^a]", ".", "\\w", "(?=a)", "\\b");
    const { pattern } = fc.letrec<{ pattern: string }>((tie) => ({
      pattern: fc.oneof(
        { maxDepth: 4 },
        part,
        fc.array(tie("pattern"), { minLength: 1, maxLength: 3 }).map((parts) => parts.join("")),
        fc.array(tie("pattern"), { minLength: 2, maxLength: 3 }).map((parts) => `(?:${parts.join("|")})`),
        fc
          .tuple(tie("pattern"), fc.constantFrom("*", "+", "?", "{0,2}", "{2}", "{1,}"))
          .map(([body, times]) => `(?:${body})${times}`),
      ),
    }));
    const text = fc.array(fc.constantFrom("a", "b", "c"), { maxLength: 24 }).map((chars) => chars.join(""));
    let taken = 0;
    fc.assert(
      fc.property(pattern, text, (source, said) => {
        const anchored = `^(?:${source})$`;
        if (patternProblem(anchored) !== null) return;
        taken += 1;
        expect(stepsOf(anchored, said)).toBeLessThanOrEqual(8 * patternSteps(anchored, said.length) + 64);
      }),
      { numRuns: 200 },
    );
    expect(taken).toBeGreaterThan(20);
  });
});

describe("EFFORT-1 a value", () => {
  const nested = (levels: number): Json => (levels === 0 ? {} : { a: nested(levels - 1) });
  const list = (count: number): Json => Array.from({ length: count }, (_, n) => n);
  const named = (count: number): Json => Object.fromEntries(Array.from({ length: count }, (_, n) => [n, 1]));
  const doubling = { type: "object", properties: { a: { allOf: [{ $ref: "#" }, { $ref: "#" }] } } };
  const email = { type: "object", properties: { a: { pattern: "^\\S+@\\S+\\.\\S+$" } } };

  test.each<[what: string, schema: JsonObject, value: Json]>([
    ["that doubles the schemas at each level", doubling, nested(60)],
    ["long, for a pattern that takes cubic time", email, { a: "@.".repeat(2_000) }],
    ["of very many items", { type: "object", properties: { a: { items: {} } } }, { a: list(30_000) }],
    ["compared with itself", { properties: { a: { uniqueItems: true } } }, { a: list(10_000) }],
    ["compared with many", { properties: { a: { items: { enum: list(5_000) } } } }, { a: list(2_000) }],
    ["with very many names", { type: "object", propertyNames: { maxLength: 9 } }, named(30_000)],
  ])("%s is not checked, and told to be too large", (_, schema, value) => {
    expect(effortOf(schema, value)).toBe("large");
    expect(violations(schema, value)).toEqual([expect.stringContaining("too large to be checked")]);
  });

  test("of usual size is checked, also against a schema that refers to itself", () => {
    expect(violations(doubling, nested(8))).toEqual([]);
    expect(violations(email, { a: "ada@example.com" })).toEqual([]);
    expect(violations(email, { a: "ada" })).toEqual(["/a: String does not match pattern"]);
    const tree = { type: "object", properties: { kids: { type: "array", items: { $ref: "#" } } } };
    expect(violations(tree, { kids: [{ kids: [] }, { kids: [{}] }] })).toEqual([]);
    const rows = Array.from({ length: 1_000 }, (_, n) => ({ id: n, name: `n${n}` }));
    const row = { type: "object", properties: { id: { type: "integer" }, name: { type: "string" } } };
    expect(violations({ type: "object", properties: { a: { items: row } } }, { a: rows })).toEqual([]);
  });

  test.each<[what: string, schema: JsonObject]>([
    ["a pattern that may take for ever", { properties: { a: { pattern: "(a+)+$" } } }],
    ["a format that may", { properties: { a: { format: "url" } } }],
    ["a reference to elsewhere", { properties: { a: { $ref: "https://example.com/schema" } } }],
  ])("of deployed code's tool is left to the tool: %s", (_, schema) => {
    const quiet = vi.spyOn(console, "error").mockImplementation(() => undefined);
    expect(violations({ type: "object", ...schema }, { a: `${"a".repeat(60)}!` })).toBeNull();
    quiet.mockRestore();
  });
});

describe("INSCHEMA-1 a schema", () => {
  const allOf = (parts: Json[]): JsonObject => ({ type: "object", allOf: parts });
  const twice = (name: string) => ({ anyOf: [{ $ref: `#/$defs/${name}` }, { $ref: `#/$defs/${name}` }] });
  test.each<[path: string, schema: JsonObject]>([
    ["/properties/a/pattern", { type: "object", properties: { a: { pattern: "(a+)+$" } } }],
    ["/patternProperties/(a+)+$", { type: "object", patternProperties: { "(a+)+$": {} } }],
    ["/properties/a/format", { type: "object", properties: { a: { format: "url" } } }],
    ["", allOf([{ $ref: "#" }])],
    ["/properties/a", { type: "object", properties: { a: { not: { $ref: "#/properties/a" } } } }],
    ["", allOf(Array.from({ length: 1_001 }, () => ({})))],
    [
      "",
      {
        ...allOf([{ $ref: "#/$defs/d0" }]),
        $defs: {
          d12: {},
          ...Object.fromEntries(Array.from({ length: 12 }, (_, n) => [`d${n}`, twice(`d${n + 1}`)])),
        },
      },
    ],
    [
      "",
      {
        type: "object",
        properties: Object.fromEntries(
          Array.from({ length: 30 }, (_, n) => [`p${n}`, { pattern: `^${"a".repeat(400)}$` }]),
        ),
      },
    ],
  ])("whose cost has no bound is refused at its place, for tools and answers alike: %s", (path, schema) => {
    expect(inputSchemaIssues(schema, "/x")[0]?.path).toBe(`/x${path}`);
    const tool = { name: "t", description: "", inputSchema: schema };
    for (const [place, brought] of [
      ["/tools/0/inputSchema", { tools: [tool] }],
      ["/output/schema", { output: { name: "x", schema } }],
    ] as const) {
      expect(() => checkTurnSchemas(brought)).toThrow(
        expect.objectContaining({
          code: "INVALID_INPUT",
          options: {
            errors: expect.arrayContaining([{ path: `${place}${path}`, message: expect.any(String) }]),
          },
        }),
      );
    }
  });
});

/** Steps of a matcher that backtracks, as engines do: greedy, leftmost, no memory of what failed. */
function stepsOf(source: string, text: string): number {
  const budget = 3_000_000;
  let steps = 0;
  const tree = parse(source);
  const run = (node: Node, at: number, go: (at: number) => boolean): boolean => {
    steps += 1;
    if (steps > budget) throw new Error("Takes too many steps.");
    switch (node.type) {
      case "chars":
        return at < text.length && node.test(text[at] ?? "") && go(at + 1);
      case "assert":
        return node.test(text, at) && go(at);
      case "look":
        return run(node.body, at, () => true) && go(at);
      case "sequence": {
        const next = (index: number, from: number): boolean => {
          const item = node.items[index];
          return item === undefined ? go(from) : run(item, from, (to) => next(index + 1, to));
        };
        return next(0, at);
      }
      case "choice":
        return node.items.some((item) => run(item, at, go));
      case "repeat": {
        const again = (count: number, from: number): boolean => {
          const more =
            count < node.max &&
            run(node.body, from, (to) => (to > from || count < node.min) && again(count + 1, to));
          return more || (count >= node.min && go(from));
        };
        return again(0, at);
      }
    }
  };
  run(tree, 0, () => true);
  return steps;
}

type Node =
  | { type: "chars"; test: (char: string) => boolean }
  | { type: "assert"; test: (text: string, at: number) => boolean }
  | { type: "look"; body: Node }
  | { type: "sequence" | "choice"; items: Node[] }
  | { type: "repeat"; body: Node; min: number; max: number };

/** The few forms that the property above makes. */
function parse(source: string): Node {
  let at = 0;
  const isWord = (char: string | undefined) => char !== undefined && /\w/.test(char);
  const choice = (): Node => {
    const items = [sequence()];
    while (source[at] === "|") {
      at += 1;
      items.push(sequence());
    }
    return { type: "choice", items };
  };
  const sequence = (): Node => {
    const items: Node[] = [];
    while (at < source.length && source[at] !== "|" && source[at] !== ")") items.push(repeated(atom()));
    return { type: "sequence", items };
  };
  const repeated = (body: Node): Node => {
    const [times] = /^(?:[*+?]|\{\d,?\d?\})/.exec(source.slice(at)) ?? [];
    if (times === undefined) return body;
    at += times.length;
    const [least = "0", most = least] = times.startsWith("{") ? times.slice(1, -1).split(",") : [];
    const max = most === "" ? Number.POSITIVE_INFINITY : Number(most);
    if (times === "*") return { type: "repeat", body, min: 0, max: Number.POSITIVE_INFINITY };
    if (times === "+") return { type: "repeat", body, min: 1, max: Number.POSITIVE_INFINITY };
    if (times === "?") return { type: "repeat", body, min: 0, max: 1 };
    return { type: "repeat", body, min: Number(least), max };
  };
  const atom = (): Node => {
    const [token = ""] = /^(?:\(\?[:=]|\[[^\]]*\]|\\.|.)/.exec(source.slice(at)) ?? [];
    at += token.length;
    if (token.startsWith("(?")) {
      const body = choice();
      at += 1;
      return token === "(?=" ? { type: "look", body } : body;
    }
    if (token === "^") return { type: "assert", test: (_, place) => place === 0 };
    if (token === "$") return { type: "assert", test: (text, place) => place === text.length };
    if (token === "\\b")
      return { type: "assert", test: (text, place) => isWord(text[place - 1]) !== isWord(text[place]) };
    const matcher = new RegExp(`^${token}$`, "u");
    return { type: "chars", test: (char) => matcher.test(char) };
  };
  return choice();
}
