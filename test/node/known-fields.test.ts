/** Suggestions for unknown fields. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { actionBody, workflowBody } from "../../src/http/openapi/library-views.ts";
import {
  defineLibrary,
  defineModelProfile,
  definePersona,
  defineTool,
} from "../../src/library/define/define.ts";
import { defineTask } from "../../src/library/define/define-task.ts";
import { defineWorkflow, node } from "../../src/library/define/define-workflow.ts";
import { inputSchemaOf } from "../../src/library/definitions/json-schema-of.ts";
import { didYouMean } from "../../src/shared/known-ids.ts";
import { validate } from "../../src/shared/validation.ts";

/** Calls with fields that the types do not have. */
const loosely = (call: (input: never) => unknown, input: object) => () => call(input as never);

const identity = { systemPrompt: "You sell." };
const tool = { name: "take", description: "Takes.", input: z.object({}), execute: () => null };

test("FIELD-1 a short name suggests no field of another object", () => {
  const schema = z.strictObject({ when: z.string(), starts: z.strictObject({ id: z.string() }) });
  expect(() => validate(schema, { when: "now", starts: { id: "a" }, id: "b" })).toThrow(
    "/id: Unknown field. Known fields: when, starts.",
  );
});

describe("FIELD-1 an unknown field suggests the field that is meant", () => {
  test.each<[string, () => unknown, string]>([
    [
      "of a persona, deeper",
      loosely((persona) => definePersona("seller", persona), { identity, modelProfileId: "fast" }),
      '/modelProfileId: Unknown field. Did you mean "identity.modelProfileId"?',
    ],
    [
      "of a persona, misspelt within",
      loosely((persona) => definePersona("seller", persona), {
        identity: { ...identity, system_prompts: "" },
      }),
      '/identity/system_prompts: Unknown field. Did you mean "systemPrompt"?',
    ],
    [
      "of a persona, two levels down",
      loosely((persona) => definePersona("seller", persona), {
        identity,
        tools: { toolIds: [], constraints: { maxMoves: 3 } },
      }),
      '/tools/constraints/maxMoves: Unknown field. Did you mean "maxMovesPerTurn"?',
    ],
    ["of a tool", loosely(defineTool as never, { ...tool, effects: "pure" }), 'Did you mean "effect"?'],
    [
      "of a profile",
      loosely((profile) => defineModelProfile("fast", profile), {
        provider: "openai",
        modelID: "m",
      }),
      'Did you mean "modelId"?',
    ],
    [
      "of a task",
      loosely(defineTask as never, { id: "a", input: z.object({}), steps: [], timeoutMS: 1 }),
      'Did you mean "timeoutMs"?',
    ],
    [
      "of a workflow",
      loosely((flow) => defineWorkflow("a", flow), {
        input: z.object({}),
        initialNode: "a",
        nodes: [node("a", { task: "lib/a" })],
        outputMappings: {},
      }),
      'Did you mean "outputMapping"?',
    ],
    [
      "of a node of a workflow",
      () =>
        defineWorkflow("a", {
          input: z.object({}),
          initialNode: "start",
          nodes: [node("start", { tsk: "lib/a" } as object)],
        }),
      '/nodes/0/tsk: Unknown field. Did you mean "task"?',
    ],
    [
      "of a library",
      loosely((contents) => defineLibrary("acme", contents), { persona: [] }),
      'Did you mean "personas"?',
    ],
  ])("%s", (_, define, message) => {
    expect(define).toThrow(message);
  });

  test("within lists, records and unions", () => {
    const item = z.strictObject({ retry: z.strictObject({ maxAttempts: z.number() }).optional() });
    const schema = z.strictObject({
      items: z.array(item),
      byName: z.record(z.string(), item),
      either: z.union([z.strictObject({ kind: z.literal("a"), size: z.number() }), z.string()]).optional(),
    });
    const check = (value: object) => () => validate(schema, value);
    expect(check({ items: [{ maxAttempts: 1 }], byName: {} })).toThrow(
      '/items/0/maxAttempts: Unknown field. Did you mean "items.0.retry.maxAttempts"?',
    );
    expect(check({ items: [], byName: { ada: { retries: {} } } })).toThrow(
      '/byName/ada/retries: Unknown field. Did you mean "retry"?',
    );
    expect(check({ items: [], byName: {}, either: { kind: "a", size: 1, sizes: 2 } })).toThrow(
      '/either/sizes: Unknown field. Did you mean "size"?',
    );
  });

  test("FIELD-2 unless no field is similar: then the known fields are listed", () => {
    expect(() => validate(z.strictObject({ name: z.string() }), { name: "a", zebra: 1 })).toThrow(
      "/zebra: Unknown field. Known fields: name.",
    );
    const many = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`f${n}`, z.string().optional()]));
    expect(() => validate(z.strictObject({ in: z.strictObject(many) }), { in: { zebra: 1 } })).toThrow(
      /Unknown field\. Known fields: f0, f1, .*, f19, and more\.$/,
    );
  });

  test.each(["message", "messages", "token", "pages"])(
    "FIELD-2 unless the longer name only contains it: %s",
    (name) => {
      const schema = z.strictObject({
        content: z.string(),
        replyToMessageId: z.string().optional(),
        maxOutputTokensPerTurn: z.number().optional(),
      });
      expect(() => validate(schema, { content: "Hi", [name]: 1 })).toThrow(
        `/${name}: Unknown field. Known fields: content, replyToMessageId, maxOutputTokensPerTurn.`,
      );
    },
  );
});

describe("A7 LIB-1 z.coerce in the input of a tool", () => {
  const input = z.object({
    count: z.coerce.number().int().min(1).describe("How many."),
    due: z.coerce.date(),
    note: z.coerce.string().optional(),
    total: z.coerce.bigint().optional(),
    urgent: z.coerce.boolean().optional(),
  });

  test("accepts values that it coerces, and the code gets the coerced values", async () => {
    const seen: unknown[] = [];
    const take = defineTool({ ...tool, input, execute: (value) => void seen.push(value) });
    expect(take.definition.inputSchema).toMatchObject({
      properties: {
        count: { description: "How many.", anyOf: [{ type: "integer", minimum: 1 }, { type: "string" }] },
        due: { anyOf: [{ type: "string" }, { type: "integer" }] },
        note: { type: ["string", "number", "boolean"] },
        total: { type: ["integer", "string"] },
        urgent: { type: ["boolean", "number"] },
      },
      required: ["count", "due"],
    });
    await take.run({ count: "2", due: "2026-05-01", note: 7, total: "9" }, {} as never);
    expect(seen).toEqual([{ count: 2, due: new Date("2026-05-01"), note: "7", total: 9n }]);
  });

  test("a type that JSON does not have is still refused without it", () => {
    expect(() => inputSchemaOf("The input", z.object({ due: z.date() }))).toThrow(
      /Date cannot be represented/,
    );
  });
});

test.each([
  ["an action", actionBody, '{"id": "ask", "kind": "http.request", "__proto__": {"a": 1}}'],
  ["a workflow", workflowBody, '{"id": "greet", "__proto__": {"nodes": []}}'],
])("a body of %s with a field `__proto__` is refused", (_, schema, body) => {
  expect(() => validate(schema, JSON.parse(body))).toThrow("/__proto__: Unknown field.");
});

describe("a name that is meant", () => {
  const letters = fc.uniqueArray(fc.constantFrom(..."abcdefghijklmnop"), { minLength: 6, maxLength: 12 });

  test("is found if a letter lacks, and is always one of the names", () => {
    fc.assert(
      fc.property(letters, fc.nat(), fc.array(fc.string()), (name, at, others) => {
        const wanted = name.toSpliced(at % name.length, 1).join("");
        expect(didYouMean(wanted, [name.join("")])).toBe(` Did you mean "${name.join("")}"?`);
        const names = ["", ...others.map((other) => ` Did you mean "${other}"?`)];
        expect(names).toContain(didYouMean(wanted, others));
      }),
    );
  });
});
