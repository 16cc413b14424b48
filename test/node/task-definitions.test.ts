/** What the definitions of tasks may cost where they are checked. */
import { describe, expect, test } from "vitest";
import { completeTask } from "../../src/library/tasks/task-schema.ts";
import type { StepDefinition } from "../../src/protocol/task-definition.ts";
import type { JsonObject } from "../../src/shared/json.ts";

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
