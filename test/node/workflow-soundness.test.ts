/** The soundness check of workflows: each rule, with a broken graph and its mended neighbour, and random graphs judged by their runs. */
import { describe, expect, test } from "vitest";
import { formIssues } from "../../src/library/workflows/check-form.ts";
import { soundnessIssues } from "../../src/library/workflows/soundness/check.ts";
import { checkWorkflow } from "../../src/library/workflows/soundness/check-workflow.ts";
import { findMeetings } from "../../src/library/workflows/soundness/meetings.ts";
import type { Lookup } from "../../src/library/workflows/soundness/schemas.ts";
import {
  MAX_FAN_OUT_DEPTH,
  MAX_NODES,
  MAX_TRANSITIONS,
} from "../../src/library/workflows/workflow-limits.ts";
import { workflowSchema } from "../../src/library/workflows/workflow-schema.ts";
import type { WorkflowDefinition, WorkflowTransition } from "../../src/protocol/workflow-definition.ts";
import type { JsonObject } from "../../src/shared/json.ts";
import { Random } from "../../src/testing/random.ts";
import { generate } from "../support/workflows/generate.ts";
import { run } from "../support/workflows/interpreter.ts";
import { type Effort, judge } from "../support/workflows/judge.ts";

type Edge = Partial<Omit<WorkflowTransition, "synchronization">> & { synchronization?: object };

/** Returns a graph from edges such as `a>b`. Its first node is the initial one. */
function graph(edges: readonly (readonly [string, Edge?])[], more: JsonObject = {}): WorkflowDefinition {
  const ends = edges.map(([edge]) => edge.split(">") as [string, string]);
  const refs = [...new Set(ends.flat())];
  const given = (more.nodes as JsonObject[] | undefined) ?? [];
  return workflowSchema.parse({
    inputSchema: { type: "object", properties: { id: { type: "string" } }, required: ["id"] },
    initialNode: refs[0],
    transitions: edges.map(([, options], index) => ({
      ref: `t${index}`,
      from: ends[index]?.[0],
      to: ends[index]?.[1],
      ...options,
    })),
    ...more,
    nodes: [...refs, ...given.map(({ ref }) => String(ref))]
      .filter((ref, index, all) => all.indexOf(ref) === index)
      .map((ref) => given.find((one) => one.ref === ref) ?? { ref, task: "lib/task" }),
  });
}

const fan = (group: string, spawnCount = 2): Edge => ({ siblingGroup: group, spawnCount });
const join = (siblingGroup: string, strategy: unknown = "all", more: object = {}): Edge => ({
  synchronization: { siblingGroup, strategy, ...more },
});

/** Returns the issues as `path rule`. */
function issuesOf(definition: WorkflowDefinition, lookup?: Lookup): string[] {
  return checkWorkflow(definition, lookup).map(({ path, message }) => `${path} ${message.split(":")[0]}`);
}

const branches: readonly [string, Edge?][] = [
  ["a>b", fan("g")],
  ["b>c", join("g")],
];

describe("the graph of a workflow", () => {
  test.each<[string, WorkflowDefinition, string[], WorkflowDefinition]>([
    [
      "SOUND-1 an unreachable node",
      graph([["a>b"]], { nodes: [{ ref: "lost", task: "lib/task" }] }),
      ["/nodes/2 SOUND-1"],
      graph([["a>b"], ["b>lost"]]),
    ],
    [
      "SOUND-1 an unreachable loop",
      graph([["a>b"], ["c>d"], ["d>c", { loopConfig: { maxIterations: 2 } }]]),
      ["/nodes/2 SOUND-1", "/nodes/3 SOUND-1"],
      graph([["a>b"], ["b>c"], ["c>d"], ["d>c", { loopConfig: { maxIterations: 2 } }]]),
    ],
    [
      "SOUND-2 a transition behind a transition that always fires",
      graph([["a>b"], ["b>c"], ["a>c", { priority: 1 }]]),
      ["/transitions/2 SOUND-2"],
      graph([["a>b", { condition: "input.id == 'x'" }], ["b>c"], ["a>c", { priority: 1 }]]),
    ],
    [
      "SOUND-2 a transition behind a bound that is never used up",
      graph([["a>b", { loopConfig: { maxIterations: 3 } }], ["b>c"], ["a>c", { priority: 1 }]]),
      ["/transitions/2 SOUND-2"],
      graph([["a>b", { loopConfig: { maxIterations: 3 } }], ["b>a"], ["a>c", { priority: 1 }]]),
    ],
    [
      "SOUND-2 a condition that is false",
      graph([["a>b"], ["a>b", { condition: "false" }]]),
      ["/transitions/1 SOUND-2"],
      graph([["a>b"], ["a>b", { condition: "input.id != 'x'" }]]),
    ],
    [
      "SOUND-2 a transition with a token that an `any` fan-in cancels at once",
      graph([["a>b", fan("g")], ["b>c", join("g", "any")], ["b>d"]]),
      ["/nodes/3 SOUND-1", "/transitions/2 SOUND-2"],
      graph([["a>b", fan("g")], ["b>c", join("g", "all")], ["b>d"]]),
    ],
    [
      "SOUND-3 a fan-in that no branch reaches",
      graph([...branches, ["c>d", join("g")]]),
      ["/transitions/2 SOUND-3"],
      graph([...branches, ["c>d"]]),
    ],
    [
      "SOUND-3 a fan-in that waits for more branches than there are",
      graph([branches[0] ?? ["a>b"], ["b>c", join("g", { mOfN: 3 })]]),
      ["/transitions/1/synchronization/strategy SOUND-3"],
      graph([
        ["a>b", fan("g", 3)],
        ["b>c", join("g", { mOfN: 3 })],
      ]),
    ],
    [
      "SOUND-3 transitions of two priorities, which never fire together",
      graph([
        ["a>b", { siblingGroup: "g", condition: "input.id == 'x'" }],
        ["a>c", { siblingGroup: "g", priority: 1 }],
        ["b>d", join("g", { mOfN: 2 })],
        ["c>d", join("g", { mOfN: 2 })],
      ]),
      ["/transitions/2/synchronization/strategy SOUND-3", "/transitions/3/synchronization/strategy SOUND-3"],
      graph([
        ["a>b", { siblingGroup: "g", condition: "input.id == 'x'" }],
        ["a>c", { siblingGroup: "g" }],
        ["b>d", join("g", { mOfN: 2 })],
        ["c>d", join("g", { mOfN: 2 })],
      ]),
    ],
    [
      "SOUND-4 branches that meet at two nodes",
      graph([["a>b", fan("g")], ["a>c", fan("g")], ["b>d", join("g")], ["c>e", join("g")], ["d>e"]]),
      ["/transitions/3 SOUND-4"],
      graph([["a>b", fan("g")], ["a>c", fan("g")], ["b>d", join("g")], ["c>d", join("g")], ["d>e"]]),
    ],
    [
      "SOUND-4 two transitions of one fan-in that differ",
      graph([
        ["a>b", fan("g")],
        ["a>c", fan("g")],
        ["b>d", join("g")],
        ["c>d", join("g", "any")],
      ]),
      ["/transitions/3/synchronization SOUND-4"],
      graph([
        ["a>b", fan("g")],
        ["a>c", fan("g")],
        ["b>d", join("g", "any")],
        ["c>d", join("g", "any")],
      ]),
    ],
    [
      "SOUND-5 an outer fan-in before the inner one",
      graph([
        ["a>b", fan("g")],
        ["b>c", fan("h")],
        ["c>d", join("g")],
      ]),
      ["/transitions/2 SOUND-5"],
      graph([
        ["a>b", fan("g")],
        ["b>c", fan("h")],
        ["c>d", join("h")],
        ["d>e", join("g")],
      ]),
    ],
    [
      "SOUND-5 a group within itself",
      graph([
        ["a>b", fan("g")],
        ["b>c", fan("g")],
        ["c>d", join("g")],
      ]),
      ["/transitions/1 SOUND-5"],
      graph([
        ["a>b", fan("g")],
        ["b>c", fan("h")],
        ["c>d", join("h")],
        ["d>e", join("g")],
      ]),
    ],
    [
      "SOUND-5 fan-outs within more than eight others",
      graph(Array.from({ length: MAX_FAN_OUT_DEPTH + 1 }, (_, at) => [`n${at}>n${at + 1}`, fan(`g${at}`)])),
      [`/transitions/${MAX_FAN_OUT_DEPTH} SOUND-5`],
      graph(Array.from({ length: MAX_FAN_OUT_DEPTH }, (_, at) => [`n${at}>n${at + 1}`, fan(`g${at}`)])),
    ],
    [
      "SOUND-6 a loop without a bound",
      graph([["a>b"], ["b>a", { condition: "input.id == 'x'" }], ["b>c", { priority: 1 }]]),
      ["/transitions/1 SOUND-6"],
      graph([
        ["a>b"],
        ["b>a", { condition: "input.id == 'x'", loopConfig: { maxIterations: 9 } }],
        ["b>c", { priority: 1 }],
      ]),
    ],
    [
      "SOUND-6 a loop around branches with a bound within them",
      graph([
        ["a>b", fan("g")],
        ["b>b2", { loopConfig: { maxIterations: 2 } }],
        ["b2>c", join("g")],
        ["c>a", { condition: "input.id == 'x'" }],
      ]),
      ["/transitions/3 SOUND-6"],
      graph([
        ["a>b", { ...fan("g"), loopConfig: { maxIterations: 2 } }],
        ["b>c", join("g")],
        ["c>a", { condition: "input.id == 'x'" }],
      ]),
    ],
    [
      "SOUND-6 a loop with a bound on the transition that joins",
      graph([
        ["a>b", fan("g")],
        ["b>a", { ...join("g"), loopConfig: { maxIterations: 2 } }],
      ]),
      ["/transitions/0 SOUND-6"],
      graph([
        ["a>b", { ...fan("g"), loopConfig: { maxIterations: 2 } }],
        ["b>a", join("g")],
      ]),
    ],
  ])("%s is refused, and its mended neighbour is not", (_, broken, expected, mended) => {
    expect(issuesOf(broken)).toEqual(expected);
    expect(issuesOf(mended)).toEqual([]);
  });

  test("SOUND-6 the issue names the nodes of the loop and the fix", () => {
    const [issue] = checkWorkflow(graph([["a>b"], ["b>a"]]));
    expect(issue).toEqual({
      path: "/transitions/1",
      message:
        'SOUND-6: The loop of "a", "b" has no bound, so it may never end. Give transition "t1" a `loopConfig`, such as {maxIterations: 10}.',
    });
  });

  test("SOUND-5 branches without a fan-in, ends of branches and passing tokens are no mistakes", () => {
    expect(issuesOf(graph([["a>b", fan("g")], ["b>c"], ["a>d"]]))).toEqual([]);
    expect(
      issuesOf(
        graph([
          ["a>b", fan("g")],
          ["b>c", { ...join("g"), condition: "input.id == 'x'" }],
        ]),
      ),
    ).toEqual([]);
    expect(
      issuesOf(graph([["s>a", { condition: "input.id == 'x'" }], ["s>b", { priority: 1 }], ...branches])),
    ).toEqual([]);
  });
});

const task = (ref: string, more: object = {}): JsonObject => ({ ref, task: `lib/${ref}`, ...more });
const context = (properties: JsonObject) => ({ contextSchema: { type: "object", properties } });

/** Two nodes. The second reads a value that the first may have written. */
function chain(first: object, second: object, more: JsonObject = {}): WorkflowDefinition {
  return graph([["a>b"]], { nodes: [task("a", first), task("b", second)], ...more });
}

describe("reads and writes of a workflow", () => {
  const fields = { sum: { type: "number" }, name: { type: "string" }, list: { type: "array" } };

  test.each<[string, WorkflowDefinition, string[], WorkflowDefinition]>([
    [
      "SOUND-7 a branch that writes the state",
      graph(branches, {
        nodes: [task("b", { outputMapping: { "state.sum": "result.v" } })],
        ...context(fields),
      }),
      ["/nodes/1/outputMapping/state.sum SOUND-7"],
      graph(branches, { nodes: [task("b", { outputMapping: { "output.sum": "result.v" } })] }),
    ],
    [
      "SOUND-7 a merge into the state within a branch",
      graph(
        [
          ["a>b", fan("g")],
          ["b>c", fan("h")],
          [
            "c>d",
            join("h", "all", {
              merge: { source: "_branch.output", target: "state.list", strategy: "collect" },
            }),
          ],
          ["d>e", join("g")],
        ],
        context(fields),
      ),
      ["/transitions/2/synchronization/merge/target SOUND-7"],
      graph([
        ["a>b", fan("g")],
        ["b>c", fan("h")],
        [
          "c>d",
          join("h", "all", {
            merge: { source: "_branch.output", target: "output.list", strategy: "collect" },
          }),
        ],
        ["d>e", join("g")],
      ]),
    ],
    [
      "SOUND-8 state that only a later node writes",
      chain(
        { inputMapping: { n: "state.sum" } },
        { outputMapping: { "state.sum": "result.v" } },
        context(fields),
      ),
      ["/nodes/0/inputMapping/n SOUND-8"],
      chain(
        { outputMapping: { "state.sum": "result.v" } },
        { inputMapping: { n: "state.sum" } },
        context(fields),
      ),
    ],
    [
      "SOUND-8 state that the node itself writes, outside a loop",
      chain(
        { inputMapping: { n: "state.sum" }, outputMapping: { "state.sum": "result" } },
        {},
        context(fields),
      ),
      ["/nodes/0/inputMapping/n SOUND-8"],
      chain(
        { inputMapping: { n: "state.sum" }, outputMapping: { "state.sum": "result" } },
        {},
        context({ sum: { type: "number", default: 0 } }),
      ),
    ],
    [
      "SOUND-8 the output of a branch behind its fan-in",
      graph([...branches], {
        nodes: [
          task("b", { outputMapping: { "output.v": "result" } }),
          task("c", { inputMapping: { v: "output.v" } }),
        ],
      }),
      ["/nodes/2/inputMapping/v SOUND-8"],
      graph(
        [
          ["a>b", fan("g")],
          [
            "b>c",
            join("g", "all", {
              merge: { source: "_branch.output.v", target: "output.v", strategy: "collect" },
            }),
          ],
        ],
        {
          nodes: [
            task("b", { outputMapping: { "output.v": "result" } }),
            task("c", { inputMapping: { v: "output.v" } }),
          ],
        },
      ),
    ],
    [
      "SOUND-8 a member that the input does not have",
      graph([["a>b", { condition: "input.name == 'x'" }]]),
      ["/transitions/0/condition SOUND-8"],
      graph([["a>b", { condition: "input.id == 'x'" }]]),
    ],
    [
      "SOUND-8 a collection that is never written",
      graph([["a>b", { foreach: { collection: "output.items", itemVar: "item" } }]]),
      ["/transitions/0/foreach/collection SOUND-8"],
      graph([["a>b", { foreach: { collection: "output.items", itemVar: "item" } }]], {
        nodes: [task("a", { outputMapping: { "output.items": "result" } })],
      }),
    ],
    [
      "SOUND-8 an output that is never written",
      graph([["a>b"]], { outputMapping: { sum: "output.sum" } }),
      ["/outputMapping/sum SOUND-8"],
      graph([["a>b"]], { outputMapping: { sum: "has(output.sum) ? 1 : 0" } }),
    ],
    [
      "SOUND-9 state without a contextSchema",
      chain({ outputMapping: { "state.sum": "result.v" } }, {}),
      ["/nodes/0/outputMapping/state.sum SOUND-9"],
      chain({ outputMapping: { "state.sum": "result.v" } }, {}, context(fields)),
    ],
    [
      "SOUND-9 a merge into state of another type",
      graph(
        [
          ["a>b", fan("g")],
          [
            "b>c",
            join("g", "all", {
              merge: { source: "_branch.output", target: "state.sum", strategy: "append" },
            }),
          ],
        ],
        context(fields),
      ),
      ["/transitions/1/synchronization/merge/target SOUND-9"],
      graph(
        [
          ["a>b", fan("g")],
          [
            "b>c",
            join("g", "all", {
              merge: { source: "_branch.output", target: "state.list", strategy: "append" },
            }),
          ],
        ],
        context(fields),
      ),
    ],
    [
      "SOUND-9 a run without an output that its schema requires",
      graph([["a>b"]], { outputSchema: { type: "object", required: ["sum"] } }),
      ["/outputMapping SOUND-9"],
      graph([["a>b"]], {
        outputSchema: { type: "object", required: ["sum"] },
        outputMapping: { sum: "1 + 1" },
      }),
    ],
  ])("%s is refused, and its mended neighbour is not", (_, broken, expected, mended) => {
    expect(issuesOf(broken)).toEqual(expected);
    expect(issuesOf(mended)).toEqual([]);
  });

  const object = (properties: JsonObject, required: string[] = []): JsonObject => ({
    type: "object",
    properties,
    required,
  });
  /** `lib/a` makes an order, and `lib/b` needs a number. */
  const lookup: Lookup = (_, reference) =>
    reference === "lib/a"
      ? { input: object({ id: { type: "string" } }, ["id"]), output: object(fields, ["name"]) }
      : { input: { ...object({ n: { type: "number" } }, ["n"]), additionalProperties: false }, output: null };
  const second = (inputMapping: object, more: object = { "state.sum": "result.sum" }) =>
    chain({ outputMapping: more }, { inputMapping }, context(fields));

  test.each<[string, WorkflowDefinition, string[]]>([
    ["fits", second({ n: "state.sum" }), []],
    ["has another type", second({ n: "input.id" }), ["/nodes/1/inputMapping/n SOUND-9"]],
    [
      "has another type, by way of the output",
      second({ n: "output.name" }, { "output.name": "result.name" }),
      ["/nodes/1/inputMapping/n SOUND-9"],
    ],
    ["is missing", second({}), ["/nodes/1/inputMapping SOUND-9"]],
    ["has too much", second({ n: "state.sum", m: "1" }), ["/nodes/1/inputMapping/m SOUND-9"]],
    [
      "is a missing member of the result",
      second({ n: "1" }, { "output.n": "result.total" }),
      ["/nodes/0/outputMapping/output.n SOUND-9"],
    ],
    [
      "is written to state of another type",
      second({ n: "1" }, { "state.sum": "result.name" }),
      ["/nodes/0/outputMapping/state.sum SOUND-9"],
    ],
    ["is the run's input, which does not fit", chain({}, {}), ["/nodes/1 SOUND-9"]],
    ["is an expression of unknown type", second({ n: "input.id + ''" }), []],
  ])("SOUND-9 the input of a node %s", (_, definition, expected) => {
    expect(issuesOf(definition, lookup)).toEqual(expected);
  });

  test("SOUND-9 unknown schemas are not checked", () => {
    expect(issuesOf(second({}))).toEqual([]);
  });

  test("SOUND-8 a token may read a value that another parallel token has written", () => {
    const beside = graph([["a>b"], ["a>c"]], {
      nodes: [
        task("b", { outputMapping: { "output.v": "result" } }),
        task("c", { inputMapping: { v: "output.v" } }),
      ],
    });
    expect(issuesOf(beside)).toEqual([]);
  });
});

test("MEET-1 a list without items, and branches that end early, continue where branches meet", () => {
  const definition = graph([
    ["a>b", { siblingGroup: "g", foreach: { collection: "input.id", itemVar: "item" } }],
    ["b>c", { ...join("g"), condition: "input.id == 'x'" }],
  ]);
  expect(findMeetings(definition)("a", "g")?.ref).toBe("t1");
  expect(findMeetings(definition)("b", "g")).toBeUndefined();
  for (const id of [[], [1, 2]]) {
    const { status, trace } = run(definition, { id }, { taskOutcome: () => ({ output: {} }) });
    const completed = trace.flatMap((entry) => (entry.type === "completed" ? [entry.node] : []));
    expect([status, completed.at(-1)]).toEqual(["completed", "c"]);
  }
});

describe("the time of a check", () => {
  const names = (count: number) => Array.from({ length: count }, (_, at) => `n${at}`);

  const worst: Readonly<Record<string, () => WorkflowDefinition>> = {
    "a chain": () => graph(names(MAX_NODES - 1).map((_, at) => [`n${at}>n${at + 1}`])),
    "as many transitions as there may be": () =>
      graph(
        Array.from({ length: MAX_TRANSITIONS }, (_, at) => [
          `n${at % 40}>n${(at * 7 + 1) % 40}`,
          { condition: "input.id == 'x'", loopConfig: { maxIterations: 1 }, priority: at % 3 },
        ]),
      ),
    "many fan-outs within each other": () =>
      graph(
        Array.from({ length: 200 }, (_, at) => [
          `n${at % 20}>n${(at * 3 + 1) % 20}`,
          { siblingGroup: `g${at}`, condition: "input.id == 'x'" },
        ]),
      ),
    "as many expressions as there may be": () => {
      const refs = names(128);
      const mapping = (at: number) =>
        Object.fromEntries(
          Array.from({ length: 16 }, (_, to) => [
            `output.${at}_${to}`.replace(".", ".v"),
            `result.${"abc"[to % 3]}`,
          ]),
        );
      return graph(
        refs.slice(1).map((ref, at) => [`n${at}>${ref}`]),
        {
          nodes: refs.map((ref, at) => ({
            ref,
            task: "lib/task",
            inputMapping: Object.fromEntries(
              Array.from({ length: 16 }, (_, to) => [`m${to}`, `${at}+${to}*2`]),
            ),
            outputMapping: mapping(at),
          })),
        },
      );
    },
    "many writes and reads": () => {
      const refs = names(MAX_NODES);
      const mapping = (at: number) =>
        Object.fromEntries([0, 1, 2].map((to) => [`output.v${at}_${to}`, "result.v"]));
      return graph(
        refs
          .slice(1)
          .flatMap((ref, at) => [
            [`n${at}>${ref}`] as const,
            [
              `${ref}>n${at}`,
              { loopConfig: { maxIterations: 1 }, condition: `output.v${at}_1 == 1` },
            ] as const,
          ]),
        { nodes: refs.map((ref, at) => ({ ref, task: "lib/task", outputMapping: mapping(at) })) },
      );
    },
  };

  test.each(Object.keys(worst))("SOUND-10 FLOWDEF-1 the check of %s ends", (name) => {
    const definition = worst[name]?.() ?? graph([]);
    expect(checkWorkflow(definition)).toEqual(checkWorkflow(definition));
  });

  test("SOUND-10 a graph with too many places is refused by name", () => {
    expect(issuesOf(worst["many fan-outs within each other"]?.() ?? graph([]))).toEqual([" SOUND-10"]);
  });
});

describe("random workflows", () => {
  const GRAPHS = Number(process.env.WORKFLOW_GRAPHS ?? 300);
  const effort: Effort =
    process.env.WORKFLOW_GRAPHS === undefined ? { runs: 8, witnesses: 150 } : { runs: 24, witnesses: 300 };

  test(`SOUND-1 SOUND-3 SOUND-6 runs agree with the check of ${GRAPHS} random workflows`, {
    timeout: 3_600_000,
  }, () => {
    const counts: Record<string, number> = {};
    const count = (name: string) => {
      counts[name] = (counts[name] ?? 0) + 1;
    };
    for (let seed = 0; seed < GRAPHS; seed++) {
      const definition = generate(new Random(seed));
      if (formIssues(definition).length > 0) continue;
      const { problem, isAccepted, proof, rules } = judge(definition, seed, effort);
      expect(problem, `seed ${seed}: ${JSON.stringify(definition)}`).toBeNull();
      count(isAccepted ? "accepted" : `refused: ${proof}`);
      for (const rule of rules) count(rule);
    }
    if (process.env.WORKFLOW_GRAPHS !== undefined) console.log(counts);
    expect(counts.accepted).toBeGreaterThan(GRAPHS / 4);
    expect(counts["refused: witness"]).toBeGreaterThan(GRAPHS / 20);
  });

  test.each(["SOUND-4", "SOUND-5", "SOUND-6", "SOUND-7"])(
    "SOUND-4 SOUND-5 SOUND-6 SOUND-7 a check without %s does not agree with the runs",
    (rule) => {
      const check = (definition: WorkflowDefinition) =>
        soundnessIssues(definition, () => null).filter(({ message }) => !message.startsWith(rule));
      expect(disagreeing(check)).toBe(true);
    },
  );

  test("SOUND-2 a check that refuses too much does not agree", () => {
    const check = (definition: WorkflowDefinition) => [
      ...soundnessIssues(definition, () => null),
      ...definition.transitions.flatMap(({ loopConfig }, index) =>
        loopConfig === undefined ? [] : [{ path: `/transitions/${index}`, message: "SOUND-6: No loops." }],
      ),
    ];
    expect(disagreeing(check)).toBe(true);
  });

  function disagreeing(check: Parameters<typeof judge>[3]): boolean {
    for (let seed = 0; seed < 600; seed++) {
      const definition = generate(new Random(seed));
      if (formIssues(definition).length > 0) continue;
      if (judge(definition, seed, { runs: 8, witnesses: 60 }, check).problem !== null) return true;
    }
    return false;
  }
});
