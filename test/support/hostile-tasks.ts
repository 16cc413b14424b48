/** Tasks with expensive runs: generated values, embeddings, expressions and texts. */
import type { StepOptions } from "../../src/library/tasks/step.ts";
import type { JsonObject } from "../../src/shared/json.ts";

/** A task and its most expensive input. */
export interface HostileTask {
  id: string;
  steps: StepOptions[];
  input: JsonObject;
}

const hostile = (id: string, steps: StepOptions[], input: JsonObject = {}): HostileTask => ({
  id,
  steps,
  input,
});
const times = (count: number, one: StepOptions): StepOptions[] => Array.from({ length: count }, () => one);
const mock = (schema: JsonObject): StepOptions[] => [{ action: { kind: "mock.return", schema } }];
const numbers = Array.from({ length: 1_500 }, (_, index) => index);
const properties = Object.fromEntries(
  Array.from({ length: 2_000 }, (_, index) => [`p${index}`, { type: "integer" }]),
);
const part = { title: "a", minimum: 1, type: "integer" };
const values = (first: number) => Array.from({ length: 3_000 }, (_, index) => first + index);

export const HOSTILE_TASKS: readonly HostileTask[] = [
  hostile("mock_parts", mock({ type: "array", minItems: 9_000, items: { allOf: Array(60).fill(part) } })),
  hostile(
    "mock_members",
    mock({ type: "array", minItems: 9_000, items: { type: "object", properties, required: ["p1"] } }),
  ),
  hostile("mock_values", mock({ allOf: [{ enum: values(0) }, { enum: values(2_999) }] })),
  hostile(
    "mock_unique",
    mock({ type: "array", minItems: 9_000, uniqueItems: true, items: { type: "integer" } }),
  ),
  hostile("mock_long", mock({ type: "array", minItems: 9_000, items: { const: "x".repeat(60_000) } })),
  hostile("embeddings", times(8, { action: { kind: "llm.embed" } }), {
    texts: Array.from({ length: 400 }, (_, index) => `one two ${index}`),
  }),
  hostile("long_text", times(2, { action: { kind: "llm.embed" } }), {
    texts: [Array.from({ length: 60_000 }, (_, index) => index.toString(36)).join(" ")],
  }),
  hostile(
    "expressions",
    times(40, { action: { kind: "update_context", values: { l: "input.l.map(x, x)" } } }),
    { l: numbers },
  ),
  hostile(
    "texts",
    [
      {
        action: {
          kind: "llm",
          template: "{% for a in l %}{% for b in l %}{{ a }}{{ b }}{% endfor %}{% endfor %}",
        },
      },
    ],
    { l: numbers },
  ),
];
