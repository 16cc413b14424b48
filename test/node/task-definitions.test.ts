/** What the definitions of tasks may cost where they are checked. */
import { describe, expect, test } from "vitest";
import { stepsIssues } from "../../src/library/tasks/steps-schema.ts";
import { completeTask } from "../../src/library/tasks/task-schema.ts";
import type { StepDefinition } from "../../src/protocol/task-definition.ts";
import type { JsonObject } from "../../src/shared/json.ts";
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
