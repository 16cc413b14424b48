/** The cost of checking the definitions of tasks. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineLibrary } from "../../src/library/define/define.ts";
import { defineAction, definePrompt, defineTask } from "../../src/library/define/define-task.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { Registry } from "../../src/library/registry/registry.ts";
import { promptSchema } from "../../src/library/tasks/prompt.ts";
import { readIssues } from "../../src/library/tasks/reads.ts";
import { schemaIssues } from "../../src/library/tasks/schema-check.ts";
import { step } from "../../src/library/tasks/step.ts";
import { stepsIssues } from "../../src/library/tasks/steps-schema.ts";
import { completeTask } from "../../src/library/tasks/task-schema.ts";
import type { StepDefinition } from "../../src/protocol/task-definition.ts";
import type { Json, JsonObject } from "../../src/shared/json.ts";
import { filled, withDefaults } from "../../src/shared/json-schema/defaults.ts";
import { Meter, Spent } from "../../src/shared/json-schema/meter.ts";
import { MAX_TEMPLATE_LENGTH } from "../../src/shared/templates/template-limits.ts";

const INPUT: JsonObject = { type: "object" };
const mocks = (schemas: readonly JsonObject[]): StepDefinition[] =>
  schemas.map((schema, index) => ({ ref: `s${index}`, action: { kind: "mock.return", schema } }));

describe("PATTERN-2 F13 the schemas of a task share one budget for compiling patterns", () => {
  const costly = (count: number) => ({ patternProperties: { [`^(?:[\\p{L}\\p{N}]i){1,${count}}$`]: {} } });

  test("one schema with a costly pattern is accepted, 64 are not", () => {
    expect(completeTask({ inputSchema: INPUT, steps: mocks([costly(99)]) })).toMatchObject({ steps: [{}] });
    const steps = mocks(Array.from({ length: 64 }, (_, index) => costly(99 - index)));
    expect(() => completeTask({ inputSchema: INPUT, steps })).toThrow(
      /\/steps\/\d+\/action\/schema\/patternProperties\/.* too complex to compile/,
    );
  });

  test("the schemas of its input and its output count, too", () => {
    const all = { type: "object", ...costly(99) };
    expect(() =>
      completeTask({ inputSchema: all, outputSchema: costly(98), steps: mocks([costly(97)]) }),
    ).toThrow("too complex to compile");
  });

  test("PIN-4 the schemas of its actions count, too, if they are pinned", async () => {
    const schema = (index: number): JsonObject => ({ type: "object", ...costly(99 - index) });
    const action = (index: number) =>
      defineAction({ id: `mock_${index}`, kind: "mock.return", schema: schema(index) });
    const pin = async (count: number) => {
      const actions = Array.from({ length: count }, (_, index) => action(index));
      const steps = actions.map((one, index) => step(`s${index}`, { action: one }));
      const task = defineTask({ id: "all", input: z.looseObject({}), steps });
      const library = defineLibrary("lib", { actions, tasks: [task] });
      return new Registry(new DeployedCode([library])).runnable({ library: "lib", id: "all" });
    };
    expect(await pin(1)).toMatchObject({ task: { id: "all" } });
    const refused = /\/steps\/\d+\/action\/schema\/.* too complex to compile/;
    await expect(pin(20)).rejects.toThrow(refused);
    // Only successful checks are cached.
    expect(await pin(1)).toMatchObject({ task: { id: "all" } });
    await expect(pin(20)).rejects.toThrow(refused);
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

  test("the templates of some steps are accepted, the templates of 64 are not", () => {
    expect(stepsIssues(llm(12))).toEqual([]);
    expect(stepsIssues(llm(64))[0]).toMatchObject({
      path: expect.stringMatching(/^\/steps\/\d+\/action\/(systemPrompt|template)$/),
      message: expect.stringContaining("too complex to compile"),
    });
  });

  test("any single template within the limits is accepted", () => {
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
    ["a nullable value", { anyOf: [{ type: "null" }, line] }, {}, { count: 1 }],
    ["null", { oneOf: [line, { type: "null" }] }, null, null],
    ["several alternatives", { anyOf: [line, { type: "object" }] }, {}, {}],
    ["further members", { additionalProperties: line }, { a: {} }, { a: { count: 1 } }],
    ["members of a default", { properties: { a: { ...line, default: {} } } }, {}, { a: { count: 1 } }],
    [
      "lists in a nullable value",
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
      "a value that a reference refuses",
      { properties: { n: { $ref: "#/$defs/n", default: 0 } }, $defs: { n: { minimum: 1 } } },
      "/properties/n/default",
    ],
    [
      "a nullable value",
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

describe("F10 reads and writes of a task are checked in its definition", () => {
  const input: JsonObject = {
    type: "object",
    properties: { n: { type: "number" }, order: { type: "object", properties: { id: { type: "string" } } } },
  };
  const set = (values: Record<string, string>) => ({ kind: "update_context" as const, values });
  const issues = (steps: Partial<StepDefinition>[], outputSchema?: JsonObject) =>
    readIssues({
      inputSchema: input,
      outputSchema,
      steps: steps.map((one, index) => ({ ref: `s${index}`, action: set({}), ...one })),
    }).map(({ path, message }) => `${path}: ${message}`);

  test("STEPREAD-1 an expression reads members of the input, and the writes of an earlier step", () => {
    const write = { outputMapping: { "state.a.b": "result", "output.c": "input.n" } };
    const read = (source: string) => ({ inputMapping: { x: source } });
    for (const source of [
      "input.n",
      "input.order.id",
      "input",
      "state",
      "state.a",
      "state.a.b.c",
      "state.a['b']",
      "output.c + 1",
      "has(state.z) ? state.z.y : 2",
      "state.z == null ? 1 : state.z",
      "null != input.nn",
      "'z' in state ? state.z : 1",
      "[1].map(state, state.q)",
      "state._lastOutput",
      "state._errors.size()",
      "'input.nn'",
    ])
      expect(issues([write, read(source)]), source).toEqual([]);
    expect(issues([read("input.nn + 1")])).toEqual([
      expect.stringMatching(
        /^\/steps\/0\/inputMapping\/x: Reads `input.nn`, which `inputSchema` does not have/,
      ),
    ]);
    for (const source of ["state.a.d", "state.q", "output.d", "state.aa", "state == null ? 1 : state.q"])
      expect(issues([write, read(source)]), source).toEqual([
        expect.stringContaining("no step before it writes that"),
      ]);
    expect(issues([read("state.a.b"), write]), "later is too late").toHaveLength(1);
    expect(
      issues([{ outputMapping: { "state.a": "1", "state.b": "state.a" } }]),
      "and so is the same",
    ).toHaveLength(1);
    expect(issues([{ condition: { if: "has(input.nn)" }, ...read("input.nn + 1") }]), "guarded").toEqual([]);
    expect(
      issues([{ condition: { if: "has(input.nn)" } }, read("input.nn")]),
      "not by another step",
    ).toHaveLength(1);
    expect(issues([{ condition: { if: "input.nn == 1" } }])).toHaveLength(1);
    expect(issues([{ idempotencyKey: "input.nn" }])).toHaveLength(1);
    expect(issues([{ action: set({ y: "input.nn" }) }])).toEqual([
      expect.stringContaining("/steps/0/action/values/y: "),
    ]);
  });

  test("STEPREAD-2 an output has the members that its schema requires, and no excluded members", () => {
    const schema: JsonObject = { type: "object", properties: { total: {} }, required: ["total"] };
    const write = (path: string) => [{ outputMapping: { [path]: "1" } }];
    expect(issues(write("output.total"), schema)).toEqual([]);
    expect(issues(write("output.total.net"), schema)).toEqual([]);
    expect(issues(write("state.x"), schema), "the last result is the output").toEqual([]);
    expect(issues(write("output.totl"), schema)).toEqual([
      '/outputSchema: Requires "total", but no step writes `output.total`. Write it, or do not require it.',
    ]);
    expect(issues(write("output.totl"), { ...schema, required: [], additionalProperties: false })).toEqual([
      expect.stringContaining('/steps/0/outputMapping/output.totl: `outputSchema` has no member "totl"'),
    ]);
  });

  test("STEPREAD-3 a text names what its step maps, its task gets, or its prompt requires", () => {
    const letter = (inputMapping?: Record<string, string>) => ({
      action: { kind: "llm" as const, template: "Dear {{ customer }}{% if n %}, {{ n }}{% endif %}" },
      ...(inputMapping && { inputMapping }),
    });
    expect(issues([letter({ customer: "'Ann'" })])).toEqual([]);
    expect(issues([letter({ custmer: "'Ann'" })])).toEqual([
      expect.stringMatching(
        /^\/steps\/0\/action\/template: Names `customer`, which `inputMapping` does not give/,
      ),
    ]);
    expect(issues([letter()])).toEqual([expect.stringContaining("which `inputSchema` does not have")]);
    const prompt = (requires: JsonObject) =>
      promptSchema.safeParse({ template: "Dear {{ customer }}", requires }).error?.issues[0]?.message;
    expect(prompt({ type: "object", properties: { customer: {} } })).toBeUndefined();
    expect(prompt({ type: "object", properties: { custmer: {} } })).toContain("`requires` does not have");
    expect(prompt({ type: "object" })).toBeUndefined();
    const broken = promptSchema.safeParse({
      template: "{{ a | }",
      requires: { type: "object", properties: {} },
    });
    expect(broken.error?.issues).toMatchObject([{ path: ["template"] }]);
  });

  test("STEPREAD-3 a prompt that a step names is checked when the task is pinned", async () => {
    const prompt = definePrompt("letter", { template: "Dear {{ customer }}" });
    const pin = (inputMapping?: Record<string, string>) => {
      const write = step("write", { action: { kind: "llm", prompt }, ...(inputMapping && { inputMapping }) });
      const task = defineTask({ id: "all", input: z.looseObject({}), steps: [write] });
      const library = defineLibrary("lib", { tasks: [task] });
      return new Registry(new DeployedCode([library])).runnable({ library: "lib", id: "all" });
    };
    expect(await pin({ customer: "'Ann'" })).toMatchObject({ task: { id: "all" } });
    expect(await pin()).toMatchObject({ task: { id: "all" } });
    await expect(pin({ custmer: "'Ann'" })).rejects.toThrow(
      /\/steps\/0\/action\/prompt: Names `customer`, which `inputMapping` does not give/,
    );
  });

  test("reads, writes and required members are found by look-ups, in any number", () => {
    const names = Array.from({ length: 10_000 }, (_, index) => `m${index}`);
    const write = { outputMapping: Object.fromEntries(names.map((name) => [`output.${name}`, "1"])) };
    const read = {
      inputMapping: Object.fromEntries(names.map((name) => [name, `output.${name} + state.${name}`])),
    };
    const schema: JsonObject = { type: "object", properties: {}, required: [...names, "more"] };
    const found = issues([write, read], schema);
    expect(found).toHaveLength(names.length + 1);
    expect(found.at(-1)).toContain('Requires "more"');
  });

  test("a task is refused with all of its places", () => {
    const steps: StepDefinition[] = [{ ref: "a", action: set({ x: "input.nn", y: "state.q" }) }];
    expect(() => completeTask({ inputSchema: input, steps })).toThrow(
      /\/steps\/0\/action\/values\/x: .*\/steps\/0\/action\/values\/y: /s,
    );
  });
});

describe("TASKDEF-3 the attempts of a task of a function", () => {
  const define = (more: object) =>
    defineTask({ id: "work", input: z.object({}), execute: () => null, ...more });

  test("are stored like the attempts of a task of steps, and a single attempt is omitted", () => {
    const retry = { maxAttempts: 3, backoff: "linear", initialDelayMs: 5 };
    expect(define({ effect: "idempotent", retry }).definition.retry).toEqual(retry);
    expect(define({ effect: "once", retry: { maxAttempts: 1 } }).definition).not.toHaveProperty("retry");
  });

  test("are refused in another form, and if a second attempt could repeat an effect", () => {
    expect(() => define({ effect: "pure", retry: { maxAttempts: 3, backoffMs: 5 } })).toThrow(/backoffMs/);
    expect(() => define({ retry: { maxAttempts: 2 } })).toThrow(/`once` task has one attempt/);
  });
});

describe("TASKDEF-1 errors name what the author of code wrote", () => {
  const loose = (change: object) => ({
    ...{ id: "count", input: z.object({}), ...change },
    ...("steps" in change ? {} : { execute: () => null }),
  });

  test.each<[string, (options: never) => unknown, object, string]>([
    [
      "an option of a task",
      defineTask,
      { effct: "pure" },
      'Task "count" is not valid: /effct: Unknown field.',
    ],
    [
      "an option of an action",
      defineAction,
      { effct: "pure" },
      'Action "count" is not valid: /effct: Unknown',
    ],
    [
      "an input",
      defineTask,
      { input: z.string() },
      'Task "count" is not valid: /input: Must describe an object.',
    ],
    [
      "an input of steps",
      defineTask,
      {
        input: z.string(),
        steps: [step("a", { action: { kind: "mock.return", schema: { type: "null" } } })],
      },
      'Task "count" is not valid: /input: Must describe an object.',
    ],
    ["no id", defineTask, { id: undefined }, "The task is not valid: "],
  ])("%s", (_, define, change, message) => {
    // SAFETY: what an author without types may write.
    expect(() => define(loose(change) as never)).toThrow(message);
  });
});
