/** The action `mock.return`: values that fit their schemas. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { mockValue, runMock } from "../../src/agents/executor/actions/mock.ts";
import { ToolError } from "../../src/library/tools/tool-error.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { MockAction } from "../../src/protocol/task-definition.ts";
import type { Json, JsonObject } from "../../src/shared/json.ts";
import { Meter, Spent } from "../../src/shared/json-schema/meter.ts";
import { violations } from "../../src/shared/json-schema/violations.ts";

const ORDER: JsonObject = {
  type: "object",
  required: ["id", "lines"],
  additionalProperties: false,
  properties: {
    id: { type: "string", format: "uuid" },
    mail: { type: "string", format: "email" },
    at: { type: "string", format: "date-time" },
    site: { type: "string", format: "uri" },
    state: { enum: ["open", "paid"] },
    currency: { const: "EUR" },
    note: { type: ["string", "null"], maxLength: 12 },
    rush: { type: "boolean", default: true },
    total: { type: "number", minimum: 1, exclusiveMaximum: 2 },
    lines: {
      type: "array",
      minItems: 2,
      maxItems: 3,
      items: { $ref: "#/$defs/line" },
    },
  },
  $defs: {
    line: {
      type: "object",
      required: ["count"],
      properties: {
        count: { type: "integer", minimum: 1, maximum: 9 },
        parts: { type: "array", items: { $ref: "#/$defs/line" } },
      },
    },
  },
};

describe("MOCK-1 F13 values depend on the schema, the seed and the mode only", () => {
  test("equal seeds give equal values, and others differ", () => {
    const [one, again, other] = [1, 1, 2].map((seed) => mockValue({ schema: ORDER, seed }));
    expect(again).toEqual(one);
    expect(other).not.toEqual(one);
    expect(mockValue({ schema: ORDER })).toEqual(one);
    expect(violations(ORDER, one ?? null)).toEqual([]);
  });

  test("texts are words, letters or empty", () => {
    const schema = { type: "string" };
    expect(mockValue({ schema })).toMatch(/^[a-z]+ [a-z]+$/);
    expect(mockValue({ schema, stringMode: "letters" })).toMatch(/^[a-z]{8}$/);
    expect(mockValue({ schema, stringMode: "empty" })).toBe("");
    expect(mockValue({ schema: { ...schema, minLength: 3 }, stringMode: "empty" })).toHaveLength(3);
  });
});

describe("MOCK-3 F13 values in the schema win", () => {
  test.each<[string, JsonObject, Json]>([
    ["const", { const: { a: 1 } }, { a: 1 }],
    ["enum", { type: "string", enum: ["only"] }, "only"],
    ["default", { type: "integer", default: 7 }, 7],
    ["a default that does not fit is left out", { type: "integer", default: "7", minimum: 3, maximum: 3 }, 3],
    ["the first alternative", { anyOf: [{ const: 1 }, { const: 2 }] }, 1],
    [
      "a later alternative, if the first has no value",
      { oneOf: [{ type: "string", pattern: "^\\d{40}$" }, { const: 2 }] },
      2,
    ],
    [
      "a later alternative, if the first fits twice",
      { oneOf: [{ const: 1 }, { type: "integer", minimum: 1, maximum: 1 }, { type: "null" }] },
      null,
    ],
    ["null", { type: "null" }, null],
    [
      "parts of allOf",
      {
        allOf: [
          { type: "integer", minimum: 4 },
          { type: "number", maximum: 4 },
        ],
      },
      4,
    ],
    [
      "a recursion that may end",
      { $ref: "#/$defs/a", $defs: { a: { type: "array", items: { $ref: "#/$defs/a" }, maxItems: 0 } } },
      [],
    ],
  ])("%s", (_, schema, expected) => {
    expect(mockValue({ schema })).toEqual(expected);
  });

  test("a list that needs itself ends with its last alternative", () => {
    const schema: JsonObject = {
      $ref: "#/$defs/node",
      $defs: {
        node: {
          type: "object",
          required: ["next"],
          properties: { next: { anyOf: [{ $ref: "#/$defs/node" }, { type: "null" }] } },
        },
      },
    };
    expect(JSON.stringify(mockValue({ schema }))).toMatch(/^(\{"next":){5,6}null\}{5,6}$/);
  });
});

describe("MOCK-2 F13 a schema without a value is an error", () => {
  test.each<[string, JsonObject, RegExp]>([
    [
      "a pattern",
      { type: "object", required: ["a"], properties: { a: { type: "string", pattern: "^\\d{40}$" } } },
      /could be made: \/a: .*Give a const/,
    ],
    ["not", { not: {} }, /could be made/],
    ["false", { type: "object", required: ["a"], properties: { a: false } }, /allows no value/],
    ["no number", { type: "integer", minimum: 2, maximum: 1 }, /no number is between 2 and 1/],
    ["no common type", { allOf: [{ type: "string" }, { type: "integer" }] }, /no common type/],
    [
      "too few for a set",
      { type: "array", minItems: 3, uniqueItems: true, items: { type: "boolean" } },
      /could be made/,
    ],
    [
      "an endless recursion",
      {
        $ref: "#/$defs/a",
        $defs: { a: { type: "object", required: ["a"], properties: { a: { $ref: "#/$defs/a" } } } },
      },
      /nests more than 48/,
    ],
    ["a schema that cannot be checked", { $ref: "https://example.com/schema" }, /cannot be checked/],
  ])("%s", (_, schema, message) => {
    expect(() => mockValue({ schema })).toThrow(ToolError);
    expect(() => mockValue({ schema })).toThrow(message);
  });
});

describe("MOCK-4 F13 values are bounded", () => {
  test.each<[string, JsonObject, RegExp]>([
    ["items", { type: "array", minItems: 1_000_000_000 }, /more than 10000 parts/],
    ["members", { type: "object", minProperties: 1_000_000_000 }, /more than 10000 parts/],
    ["characters", { type: "string", minLength: 1_000_000_000 }, /more than 262144 characters/],
    [
      "nested items",
      { type: "array", minItems: 200, items: { type: "array", minItems: 200 } },
      /more than 10000 parts/,
    ],
  ])("%s", (_, schema, message) => {
    expect(() => mockValue({ schema })).toThrow(message);
  });

  test("many optional members that hold themselves are left out", () => {
    const names = Array.from({ length: 30 }, (_, index) => `m${index}`);
    const $ref = "#/$defs/a";
    const schema: JsonObject = {
      $ref,
      $defs: { a: { type: "object", properties: Object.fromEntries(names.map((name) => [name, { $ref }])) } },
    };
    expect(JSON.stringify(mockValue({ schema })).length).toBeLessThan(200_000);
  });
});

test("MOCK-2 F13 a property: values for schemas of known keywords are valid", () => {
  const name = fc.constantFrom("a", "b", "c", "d");
  const range = fc.tuple(fc.integer({ min: -50, max: 50 }), fc.integer({ min: 0, max: 60 }));
  const count = fc.tuple(fc.integer({ min: 0, max: 4 }), fc.integer({ min: 0, max: 4 }));
  const { schema } = fc.letrec<{ schema: JsonObject }>((tie) => ({
    schema: fc.oneof(
      { depthSize: "small" },
      fc.constantFrom<JsonObject>(
        {},
        { type: "null" },
        { type: "boolean" },
        { type: "string" },
        { type: "number" },
      ),
      fc
        .constantFrom(
          "date-time",
          "date",
          "time",
          "email",
          "uuid",
          "uri",
          "hostname",
          "ipv4",
          "ipv6",
          "duration",
        )
        .map((format): JsonObject => ({ type: "string", format })),
      count.map(([low, more]): JsonObject => ({ type: "string", minLength: low, maxLength: low + more })),
      range.map(([low, more]): JsonObject => ({ type: "integer", minimum: low, maximum: low + more })),
      range.map(
        ([low, more]): JsonObject => ({
          type: "number",
          exclusiveMinimum: low / 10,
          exclusiveMaximum: low / 10 + more + 0.5,
        }),
      ),
      fc
        .tuple(range, fc.constantFrom(0.01, 0.1, 0.5, 3, 7))
        .map(([[low], step]): JsonObject => ({ type: "number", minimum: low, multipleOf: step })),
      fc
        .tuple(range, fc.constantFrom(2, 5))
        .map(
          ([[low, more], step]): JsonObject => ({ type: "integer", maximum: low + more, multipleOf: step }),
        ),
      fc
        .uniqueArray(fc.oneof(fc.string(), fc.integer(), fc.constant(null)), { minLength: 1, maxLength: 4 })
        .map((values): JsonObject => ({ enum: values })),
      fc.tuple(tie("schema"), count).map(
        ([items, [low, more]]): JsonObject => ({
          type: "array",
          items,
          minItems: low,
          maxItems: low + more,
        }),
      ),
      count.map(
        ([low]): JsonObject => ({
          type: "array",
          items: { type: "string" },
          minItems: low,
          uniqueItems: true,
        }),
      ),
      fc
        .array(tie("schema"), { minLength: 1, maxLength: 3 })
        .map((prefixItems): JsonObject => ({ type: "array", prefixItems, items: false })),
      fc
        .tuple(fc.dictionary(name, tie("schema"), { noNullPrototype: true, maxKeys: 4 }), fc.boolean(), count)
        .map(
          ([properties, isClosed, [low]]): JsonObject => ({
            type: "object",
            properties,
            required: Object.keys(properties).slice(0, low),
            ...(isClosed ? { additionalProperties: false } : { minProperties: low }),
          }),
        ),
      fc.tuple(tie("schema"), tie("schema")).map(([one, other]): JsonObject => ({ anyOf: [one, other] })),
      tie("schema").map((one): JsonObject => ({ allOf: [one, {}] })),
      fc.constant<JsonObject>({ $ref: "#/$defs/shared" }),
    ),
  }));
  const mode = fc.constantFrom<MockAction["stringMode"]>("words", "letters", "empty");
  fc.assert(
    fc.property(schema, fc.integer(), mode, (part, seed, stringMode) => {
      const whole = {
        type: "object",
        required: ["value"],
        properties: { value: part },
        $defs: { shared: { type: "array", items: { $ref: "#/$defs/shared" }, maxItems: 2 } },
      };
      const value = mockValue({ schema: whole, seed, ...(stringMode && { stringMode }) });
      expect(violations(whole, value)).toEqual([]);
    }),
    { numRuns: 2_000 },
  );
});

describe("MOCK-5 F13 making a value ends with its steps", () => {
  const names = Array.from({ length: 3_000 }, (_, index) => `m${index}`);
  const numbers = Array.from({ length: 3_000 }, (_, index) => index);
  const item = { title: "a", minimum: 1, type: "integer" };
  test.each<[string, JsonObject, (typeof Spent | RegExp)?]>([
    [
      "an object of many properties for each item",
      {
        type: "array",
        minItems: 9_000,
        items: {
          type: "object",
          required: ["m0"],
          properties: Object.fromEntries(names.map((name) => [name, true])),
        },
      },
    ],
    ["two long lists of values", { allOf: [{ enum: numbers }, { enum: numbers.map((one) => -one - 1) }] }],
    ["a set of many items", { type: "array", minItems: 9_000, uniqueItems: true }],
    [
      "a long constant for each item",
      { type: "array", minItems: 9_000, items: { const: "x".repeat(60_000) } },
      /more than 262144 characters/,
    ],
    ["many schemas in one place", { allOf: Array.from({ length: 450 }, () => ({ ...item, allOf: [item] })) }],
    [
      "letters",
      { type: "array", minItems: 9, items: { type: "string", minLength: 20_000, pattern: "^a*$" } },
    ],
  ])("%s", (_, schema, error = Spent) => {
    const meter = new Meter(40_000);
    expect(() => mockValue({ schema, stringMode: "letters" }, meter)).toThrow(error);
    expect(meter.spent).toBeLessThanOrEqual(40_000);
  });

  test("a schema of many parts is resolved once for all items", () => {
    const steps = (minItems: number) => {
      const meter = new Meter(250_000);
      const allOf = Array.from({ length: 300 }, () => item);
      mockValue({ schema: { type: "array", minItems, maxItems: minItems, items: { allOf } } }, meter);
      return meter.spent;
    };
    expect(steps(20) - steps(10)).toBe(steps(30) - steps(20));
  });
});

describe("the pause", () => {
  test("F13 lasts between both limits, the same for the same seed", async () => {
    const clock = new VirtualClock(0);
    const action: MockAction = {
      kind: "mock.return",
      schema: { const: 1 },
      delay: { minMs: 100, maxMs: 200 },
    };
    const { signal } = new AbortController();
    const ends: number[] = [];
    for (const _ of [1, 2]) {
      const before = clock.now();
      const running = runMock(action, { clock, signal, meter: new Meter(1_000) });
      await clock.runNext();
      expect(await running).toBe(1);
      ends.push(clock.now() - before);
    }
    expect(ends[0]).toBeGreaterThanOrEqual(100);
    expect(ends[0]).toBeLessThanOrEqual(200);
    expect(ends[1]).toBe(ends[0]);
  });

  test("F13 ends with an abort", async () => {
    const clock = new VirtualClock(0);
    const controller = new AbortController();
    const action: MockAction = { kind: "mock.return", schema: {}, delay: { minMs: 60_000, maxMs: 60_000 } };
    const running = runMock(action, { clock, signal: controller.signal, meter: new Meter(1_000) });
    controller.abort(new Error("stopped"));
    await expect(running).rejects.toThrow("stopped");
  });
});
