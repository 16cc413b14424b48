/** The cost of checking the definitions of tasks. */
import { describe, expect, test } from "vitest";
import { schemaIssues } from "../../src/library/tasks/schema-check.ts";
import { stepsIssues } from "../../src/library/tasks/steps-schema.ts";
import { completeTask } from "../../src/library/tasks/task-schema.ts";
import type { StepDefinition } from "../../src/protocol/task-definition.ts";
import type { Json, JsonObject } from "../../src/shared/json.ts";
import { filled, withDefaults } from "../../src/shared/json-schema/defaults.ts";
import { Meter, Spent } from "../../src/shared/json-schema/meter.ts";
import { MAX_TEMPLATE_LENGTH } from "../../src/shared/templates/limits.ts";

const INPUT: JsonObject = { type: "object" };
const mocks = (schemas: readonly JsonObject[]): StepDefinition[] =>
  schemas.map((schema, index) => ({ ref: `s${index}`, action: { kind: "mock.return", schema } }));

describe("PATTERN-2 F13 the schemas of a task share one budget for compiling patterns", () => {
  const costly = (count: number) => ({ patternProperties: { [`^(?:[\\p{L}\\p{N}]i){1,${count}}$`]: {} } });

  test("one schema with a costly pattern is accepted, 64 are not", () => {
    expect(completeTask({ inputSchema: INPUT, steps: mocks([costly(99)]) })).toMatchObject({ steps: [{}] });
    const steps = mocks(Array.from({ length: 64 }, (_, index) => costly(99 - index)));
    expect(() => completeTask({ inputSchema: INPUT, steps })).toThrow(
      /\/steps\/\d+\/action\/schema\/patternProperties\/.* too much to compile/,
    );
  });

  test("those of its input and its output count, too", () => {
    const all = { type: "object", ...costly(99) };
    expect(() =>
      completeTask({ inputSchema: all, outputSchema: costly(98), steps: mocks([costly(97)]) }),
    ).toThrow("too much to compile");
  });

  test("a problem of a schema has its place", () => {
    const outputSchema = { type: "text" };
    const steps = mocks([{ $ref: "https://example.com/x" }]);
    expect(() => completeTask({ inputSchema: INPUT, outputSchema, steps })).toThrow(
      expect.objectContaining({
        code: "INVALID_INPUT",
        options: {
          errors: [
            expect.objectContaining({ path: "/outputSchema/type" }),
            expect.objectContaining({ path: "/steps/0/action/schema/$ref" }),
          ],
        },
      }),
    );
  });
});

describe("TEMPLATE-5 F13 the templates of a task share one budget for compiling", () => {
  const llm = (count: number): StepDefinition[] =>
    Array.from({ length: count }, (_, index) => {
      const template = `${"{{a}}".repeat(92)}${index}`;
      return { ref: `s${index}`, action: { kind: "llm", systemPrompt: template, template } };
    });

  test("those of some steps are accepted, those of 64 are not", () => {
    expect(stepsIssues(llm(12))).toEqual([]);
    expect(stepsIssues(llm(64))[0]).toMatchObject({
      path: expect.stringMatching(/^\/steps\/\d+\/action\/(systemPrompt|template)$/),
      message: expect.stringContaining("too much to compile"),
    });
  });

  test("any one template within the limits is accepted", () => {
    const code = "{{aaaa}}{{ a | upcase }}".repeat(400);
    const template = code + "x".repeat(MAX_TEMPLATE_LENGTH - code.length);
    const action = { kind: "llm" as const, template };
    expect(stepsIssues([{ ref: "s", action }])).toEqual([]);
  });
});

describe("DEFAULT-1 F13 defaults at any depth", () => {
  const line = { type: "object", properties: { count: { type: "integer", default: 1 } } };
  test.each<[string, JsonObject, Json, Json]>([
    ["items of a list", { items: line }, [{}, { count: 2 }, 3], [{ count: 1 }, { count: 2 }, 3]],
    ["the first items", { prefixItems: [line], items: {} }, [{}, {}], [{ count: 1 }, {}]],
    ["what may be null", { anyOf: [{ type: "null" }, line] }, {}, { count: 1 }],
    ["null", { oneOf: [line, { type: "null" }] }, null, null],
    ["several alternatives", { anyOf: [line, { type: "object" }] }, {}, {}],
    ["further members", { additionalProperties: line }, { a: {} }, { a: { count: 1 } }],
    ["members of a default", { properties: { a: { ...line, default: {} } } }, {}, { a: { count: 1 } }],
    [
      "lists in what may be null",
      { properties: { a: { anyOf: [{ type: "array", items: line }, { type: "null" }] } } },
      { a: [{}] },
      { a: [{ count: 1 }] },
    ],
  ])("%s", (_, schema, value, expected) => {
    const before = structuredClone(value);
    expect(withDefaults(schema, value)).toEqual(expected);
    expect(value).toEqual(before);
  });

  test("DEFAULT-2 a long default in many items ends with the steps", () => {
    const schema = { items: { properties: { a: { default: "x".repeat(60_000) } } } };
    const meter = new Meter(250_000);
    const value = Array<Json>(10_000).fill({});
    expect(() => filled(schema, value, meter)).toThrow(Spent);
    expect(() => withDefaults(schema, value)).toThrow("too large to be filled in");
    expect(meter.spent).toBeLessThanOrEqual(250_000);
  });

  test.each<[string, JsonObject, string]>([
    ["a member", { properties: { n: { type: "integer", default: "oops" } } }, "/properties/n/default"],
    [
      "a member of an item",
      { properties: { l: { items: { properties: { n: { minimum: 1, default: 0 } } } } } },
      "/properties/l/items/properties/n/default",
    ],
    [
      "what a reference refuses",
      { properties: { n: { $ref: "#/$defs/n", default: 0 } }, $defs: { n: { minimum: 1 } } },
      "/properties/n/default",
    ],
    [
      "what may be null",
      {
        properties: {
          a: { anyOf: [{ properties: { "x/y": { type: "null", default: 0 } } }, { type: "null" }] },
        },
      },
      "/properties/a/anyOf/0/properties/x~1y/default",
    ],
  ])("a default that does not fit is refused: %s", (_, schema, path) => {
    expect(schemaIssues([{ path: "/inputSchema", schema }])).toEqual([
      { path: `/inputSchema${path}`, message: expect.stringContaining("Does not fit its schema") },
    ]);
    expect(() => completeTask({ inputSchema: { type: "object", ...schema }, steps: mocks([{}]) })).toThrow(
      "Does not fit its schema",
    );
  });

  test("defaults that fit are accepted", () => {
    const schema = { properties: { a: { ...line, default: {} }, l: { items: line, default: [{}] } } };
    expect(schemaIssues([{ path: "", schema }])).toEqual([]);
  });
});
