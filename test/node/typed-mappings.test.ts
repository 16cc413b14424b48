/** The types of mappings. `tsc` checks each `@ts-expect-error`, and the tests check that the same mistakes are refused when the module loads. */
import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import {
  defineTask,
  defineWorkflow,
  type NodeInCode,
  node,
  step,
  type Task,
  type TransitionInCode,
} from "../../src/portable.ts";

const forecast = defineTask({
  id: "forecast",
  input: z.object({ city: z.string(), days: z.number().optional() }),
  output: z.object({ degrees: z.number(), sky: z.enum(["blue", "grey"]) }),
  effect: "pure",
  execute: ({ city }) => ({ degrees: city.length, sky: "blue" as const }),
});

const schemas = {
  input: z.object({ city: z.string(), limit: z.number().nullable(), place: z.object({ name: z.string() }) }),
  context: z.object({ sky: z.string(), degrees: z.number() }),
  output: z.object({ sky: z.string() }),
};

/** A workflow around its only node. */
const only = { ...schemas, initialNode: "a", outputMapping: { sky: "'blue'" } } as const;

describe("MAPTYPE-1 the compiler and the check at the start refuse", () => {
  test("MAPTYPE-1 a path that the input does not have", () => {
    expect(() =>
      defineWorkflow("x", {
        ...only,
        nodes: [
          // @ts-expect-error: Did you mean "input.city"?
          node("a", { task: forecast, inputMapping: { city: "input.cityy" } }),
        ],
      }),
    ).toThrow("input.cityy");
    expect(() =>
      defineWorkflow("x", {
        ...only,
        nodes: [
          // @ts-expect-error: Did you mean "input.place.name"?
          node("a", { task: forecast, inputMapping: { city: "input.place.nam" } }),
        ],
      }),
    ).toThrow("input.place.nam");
  });

  test("MAPTYPE-1 a path of a node without a builder, at the path itself", () => {
    expect(() =>
      defineWorkflow("x", {
        ...only,
        // @ts-expect-error: Did you mean "input.city"?
        nodes: [{ ref: "a", task: "lib/any", inputMapping: { city: "input.cityy" } }],
      }),
    ).toThrow("input.cityy");
  });

  test("MAPTYPE-1 a value of another type than the task takes", () => {
    expect(() =>
      defineWorkflow("x", {
        ...only,
        nodes: [
          // @ts-expect-error: input.place is an object that does not fit. Its reader takes a string.
          node("a", { task: forecast, inputMapping: { city: "input.place" } }),
        ],
      }),
    ).toThrow("input.place");
  });

  test("MAPTYPE-1 a member that the task requires, and a member that it does not have", () => {
    expect(() =>
      defineWorkflow("x", {
        ...only,
        // @ts-expect-error: Did you mean to write "city"?
        nodes: [node("a", { task: forecast, inputMapping: { cityy: "input.city" } })],
      }),
    ).toThrow("city");
    // @ts-expect-error: Did you mean to write "days"? It is optional, so the check at the start accepts another member.
    node("a", { task: forecast, inputMapping: { city: "input.city", dayss: "3" } });
  });

  test("MAPTYPE-1 a member that the result does not have", () => {
    const wrong = node("a", {
      task: forecast,
      inputMapping: { city: "input.city" },
      // @ts-expect-error: Did you mean "result.sky"?
      outputMapping: { "state.sky": "result.skyy" },
    });
    // @ts-expect-error: The same message.
    expect(() => defineWorkflow("x", { ...only, nodes: [wrong] })).toThrow("result.skyy");
  });

  test("MAPTYPE-1 a write that `context` does not accept, and a write to a member that it does not have", () => {
    const inputMapping = { city: "input.city" } as const;
    expect(() =>
      defineWorkflow("x", {
        ...only,
        nodes: [
          // @ts-expect-error: result.sky is a string that does not fit. Its reader takes a number.
          node("a", { task: forecast, inputMapping, outputMapping: { "state.degrees": "result.sky" } }),
        ],
      }),
    ).toThrow("state.degrees");
    expect(() =>
      defineWorkflow("x", {
        ...only,
        nodes: [
          // @ts-expect-error: `context` has no "skyy".
          node("a", { task: forecast, inputMapping, outputMapping: { "state.skyy": "result.sky" } }),
        ],
      }),
    ).toThrow("state.skyy");
  });

  test("MAPTYPE-1 a value that the next node does not take", () => {
    const first = node("a", {
      task: forecast,
      inputMapping: { city: "input.city" },
      outputMapping: { "state.degrees": "result.degrees" },
    });
    expect(() =>
      defineWorkflow("x", {
        ...only,
        nodes: [
          first,
          // @ts-expect-error: state.degrees is a number that does not fit. Its reader takes a string.
          node("b", { task: forecast, inputMapping: { city: "state.degrees" } }),
        ],
        transitions: [{ from: "a", to: "b" }],
      }),
    ).toThrow("state.degrees");
  });

  test("MAPTYPE-1 an output of the run that does not fit, and a missing output", () => {
    expect(() =>
      defineWorkflow("x", {
        ...only,
        nodes: [node("a")],
        // @ts-expect-error: input.place is an object that does not fit. Its reader takes a string.
        outputMapping: { sky: "input.place" },
      }),
    ).toThrow("input.place");
    expect(() =>
      defineWorkflow("x", {
        ...only,
        nodes: [node("a")],
        // @ts-expect-error: The property "sky" is missing.
        outputMapping: {},
      }),
    ).toThrow("sky");
  });

  test("MAPTYPE-1 the input and the result of a sub-workflow", () => {
    const inner = defineWorkflow("inner", { ...only, nodes: [node("a")] });
    expectTypeOf(inner).toExtend<{ types?: { input: { city: string }; result: { sky: string } } }>();
    const inputMapping = { city: "input.city", limit: "1", place: "input.place" } as const;
    // @ts-expect-error: Did you mean "result.sky"?
    node("a", { workflow: inner, inputMapping, outputMapping: { "output.sky": "result.skyy" } });
    // @ts-expect-error: The property "place" is missing.
    node("a", { workflow: inner, inputMapping: { city: "input.city", limit: "1" } });
  });
});

describe("MAPTYPE-1 the answer of a person", () => {
  const input = z.object({ order: z.string() });

  test("MAPTYPE-1 has the type of its zod schema, and the definition has the JSON Schema", () => {
    const schema = z.object({ reason: z.enum(["broken", "late"]), cents: z.int() });
    const asked = { kind: "human.input", prompt: "Why?" } as const;
    const task = defineTask({ id: "ask", input, steps: [step("ask", { action: { ...asked, schema } })] });
    expectTypeOf(task).toExtend<Task<{ order: string }, { reason: "broken" | "late"; cents: number }>>();
    // @ts-expect-error: Did you mean "result.reason"?
    node("ask", { task, outputMapping: { "state.reason": "result.reasn" } });
    const json = {
      type: "object" as const,
      properties: { reason: { type: "string", enum: ["broken", "late"] }, cents: { type: "integer" } },
      required: ["reason", "cents"],
      additionalProperties: false,
    };
    const { $schema: _, ...expected } = z.toJSONSchema(schema, { io: "input" });
    expect(task.definition.steps).toEqual([
      {
        ref: "ask",
        action: {
          ...asked,
          schema: JSON.parse(JSON.stringify(expected).replace(/,"(min|max)imum":-?\d+/g, "")),
        },
      },
    ]);
    const untyped = defineTask({
      id: "ask",
      input,
      steps: [step("ask", { action: { ...asked, schema: json } })],
    });
    expectTypeOf(untyped).toEqualTypeOf<Task<{ order: string }, unknown>>();
  });

  test("MAPTYPE-1 has a verdict if a person approves or reviews", () => {
    const approve = step("ask", { action: { kind: "human.approve", prompt: "Refund?" } });
    const task = defineTask({ id: "ask", input, steps: [approve] });
    node("ask", { task, outputMapping: { "state.a": "result.approved", "state.c": "result.comment" } });
    // @ts-expect-error: Did you mean "result.approved"?
    node("ask", { task, outputMapping: { "state.a": "result.aproved" } });
    const changes = z.object({ text: z.string() });
    const review = step("ask", { action: { kind: "human.review", prompt: "Fine?", schema: changes } });
    const reviewed = defineTask({ id: "ask", input, steps: [review] });
    node("ask", { task: reviewed, outputMapping: { "state.t": "result.changes.text" } });
    // @ts-expect-error: Did you mean "result.changes.text"?
    node("ask", { task: reviewed, outputMapping: { "state.t": "result.changes.txt" } });
  });
});

describe("MAPTYPE-2 without types are", () => {
  test("MAPTYPE-2 expressions other than paths, items, `output`, and definitions by reference", () => {
    const workflow = defineWorkflow("x", {
      ...only,
      nodes: [
        node("a", { task: "lib/list", outputMapping: { "output.list": "result.anything" } }),
        node("b", {
          task: forecast,
          inputMapping: { city: "item.city + input.city", days: "size(item.days)" },
        }),
        { ref: "c", task: "lib/any", inputMapping: { list: "output.list", city: "input['city']" } },
      ],
      transitions: [
        { from: "a", to: "b", siblingGroup: "g", foreach: { collection: "output.list", itemVar: "item" } },
        { from: "b", to: "c", synchronization: { siblingGroup: "g", strategy: "all" } },
      ],
    });
    expect(workflow.definition.nodes).toHaveLength(3);
  });

  test("MAPTYPE-2 nodes and mappings of texts that are not known before the run", () => {
    const nodes: NodeInCode[] = ["a", "b"].map((ref) =>
      node(ref, { task: forecast, inputMapping: { city: `input.${"city"}` } }),
    );
    const transitions: TransitionInCode[] = [{ from: "a", to: "b" }];
    const outputMapping: Record<string, string> = { sky: "'blue'" };
    const { definition } = defineWorkflow("x", { ...only, nodes, transitions, outputMapping });
    expect(definition.nodes.map(({ ref }) => ref)).toEqual(["a", "b"]);
  });
});

test("MAPTYPE-2 a value that may be missing, and a text for one of several texts, fit", () => {
  const paint = defineTask({
    id: "paint",
    input: z.object({ sky: z.enum(["blue", "grey"]), limit: z.number() }),
    effect: "pure",
    execute: () => null,
  });
  const mapped = node("a", { task: paint, inputMapping: { sky: "input.city", limit: "input.limit" } });
  expect(defineWorkflow("x", { ...only, nodes: [mapped] }).definition.nodes).toHaveLength(1);
});

test("MAPTYPE-2 a date of a result fits a text", () => {
  const stamp = defineTask({
    id: "stamp",
    input: z.object({ city: z.string() }),
    output: z.object({ at: z.date() }),
    effect: "pure",
    execute: () => ({ at: new Date(0) }),
  });
  const write = { "state.sky": "result.at" } as const;
  const nodes = [node("a", { task: stamp, inputMapping: { city: "input.city" }, outputMapping: write })];
  expect(defineWorkflow("x", { ...only, nodes }).definition.nodes).toMatchObject([{ outputMapping: write }]);
});

test("MAPTYPE-2 a workflow with types and a workflow of plain texts have the same definition", () => {
  const mappings = {
    inputMapping: { city: "input.city" },
    outputMapping: { "state.sky": "result.sky", "state.degrees": "result.degrees" },
  } as const;
  const outputMapping = { sky: "state.sky" } as const;
  const typed = defineWorkflow("x", {
    ...only,
    nodes: [node("a", { task: forecast, ...mappings })],
    outputMapping,
  });
  const texts: Record<string, string> = mappings.outputMapping;
  const plain: NodeInCode = {
    ref: "a",
    task: "forecast",
    inputMapping: { ...mappings.inputMapping },
    outputMapping: texts,
  };
  expect(typed.definition).toEqual(
    defineWorkflow("x", { ...only, nodes: [plain], outputMapping }).definition,
  );
});
