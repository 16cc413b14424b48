/** Definitions of workflows: their forms, their checks, and the builders. */
import { Environment } from "@marcbachmann/cel-js";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { defineLibrary } from "../../src/library/define/define.ts";
import { defineTask } from "../../src/library/define/define-task.ts";
import {
  defineWorkflow,
  embeddedIn,
  node,
  type TransitionOptions,
  transition,
  type WorkflowOptions,
} from "../../src/library/define/define-workflow.ts";
import { formIssues } from "../../src/library/workflows/check-form.ts";
import { checkWorkflow } from "../../src/library/workflows/soundness/check-workflow.ts";
import {
  MAX_ITEM_NAMES,
  MAX_NODES,
  MAX_PATH_NAMES,
  MAX_TRANSITIONS,
  MAX_WRITTEN_PATHS,
} from "../../src/library/workflows/workflow-limits.ts";
import { workflowSchema } from "../../src/library/workflows/workflow-schema.ts";
import { DramatisError, type InputIssue } from "../../src/shared/errors.ts";
import { canonicalJson, type Json } from "../../src/shared/json.ts";
import { inputIssues } from "../../src/shared/validation.ts";
import { run } from "../support/workflows/interpreter.ts";

const input = z.object({ id: z.string() });
const inputSchema = { type: "object", properties: { id: { type: "string" } }, required: ["id"] };
const nodes = [node("a", { task: "lib/a" }), node("b", { task: "lib/b" })];

function refusal(options: Partial<Record<keyof WorkflowOptions, unknown>>): DramatisError {
  const given = {
    input,
    initialNode: "a",
    nodes,
    transitions: [transition({ from: "a", to: "b" })],
    ...options,
  };
  try {
    // SAFETY: authors without types may give anything.
    defineWorkflow("flow", given as unknown as WorkflowOptions);
  } catch (error) {
    if (error instanceof DramatisError) return error;
    throw error;
  }
  throw new Error("The workflow was accepted.");
}

function issuesOf(options: Parameters<typeof refusal>[0]): InputIssue[] {
  return refusal(options).options.errors ?? [];
}

const edges = (...given: Partial<TransitionOptions>[]) => ({
  transitions: given.map((one) => transition({ from: "a", to: "b", ...one })),
});
const synchronization = { siblingGroup: "g", strategy: "all" } as const;

describe("the checks of a workflow", () => {
  test.each<[string, Parameters<typeof refusal>[0], string, RegExp]>([
    [
      "DUPLICATE_NODE_REF",
      { nodes: [...nodes, node("b")] },
      "/nodes/2/ref",
      /Another node is named "b", too\. Give one of them another `ref`\./,
    ],
    [
      "DUPLICATE_TRANSITION_REF",
      edges({}, {}),
      "/transitions/1/ref",
      /Another transition is named "a-b", too\./,
    ],
    [
      "INVALID_NODE_REF",
      edges({ to: "bb" }),
      "/transitions/0/to",
      /There is no node "bb"\. Known nodes: b, a\./,
    ],
    ["INVALID_NODE_REF", { initialNode: "c" }, "/initialNode", /There is no node "c"/],
    [
      "MISSING_OWNER",
      { nodes: [node("a", { inputMapping: { id: "input.id" } }), node("b")] },
      "/nodes/0/inputMapping",
      /Node "a" has no target, so `inputMapping` has no effect/,
    ],
    [
      "MULTIPLE_OWNERS",
      { nodes: [node("a", { task: "lib/a", agent: "clerk" }), node("b")] },
      "/nodes/0",
      /Node "a" names `task` and `agent`\. A node runs one thing: keep one of them\./,
    ],
    [
      "INVALID_SIBLING_GROUP",
      edges({ synchronization }),
      "/transitions/0/synchronization/siblingGroup",
      /No transition has the `siblingGroup` "g"\. Known groups: none\./,
    ],
    [
      "INVALID_SIBLING_GROUP",
      edges({ siblingGroup: "g", synchronization }),
      "/transitions/0/synchronization",
      /Transition "a-b" joins branches, so it cannot start branches/,
    ],
    [
      "INVALID_STRATEGY",
      edges(
        { ref: "t", siblingGroup: "g" },
        { synchronization: { ...synchronization, strategy: { mOfN: 0 } } },
      ),
      "/transitions/1/synchronization/strategy",
      /whole number from 1/,
    ],
    [
      "INVALID_STRATEGY",
      edges(
        { ref: "t", siblingGroup: "g" },
        { synchronization: { ...synchronization, strategy: "m_of_n:0" } },
      ),
      "/transitions/1/synchronization/strategy",
      /whole number from 1/,
    ],
  ])("FLOWCHECK-1 FLOWBUILD-1 %s names its place and the fix", (code, options, path, message) => {
    const issue = issuesOf(options).find((one) => one.path === path);
    expect(issue?.message).toMatch(new RegExp(`^${code}: .*${message.source}`));
    expect(refusal(options).message).toContain('Workflow "flow" is not valid: ');
  });

  test.each<[string, Parameters<typeof refusal>[0], string, RegExp]>([
    ["a condition", edges({ condition: "input.id ==" }), "/transitions/0/condition", /Syntax error/],
    ["a name", edges({ condition: "result.ok" }), "/transitions/0/condition", /no variable "result"/],
    [
      "a path that is written",
      { nodes: [node("a", { task: "lib/a", outputMapping: { "input.x": "result" } }), node("b")] },
      "/nodes/0/outputMapping/input.x",
      /Must be "state" or "output"/,
    ],
    [
      "the source of a merge",
      edges(
        { ref: "t", siblingGroup: "g" },
        {
          synchronization: {
            ...synchronization,
            merge: { source: "output", target: "output.x", strategy: "append" },
          },
        },
      ),
      "/transitions/1/synchronization/merge/source",
      /Must be "_branch\.output"/,
    ],
    [
      "the result of a node without a task",
      { nodes: [node("a", { outputMapping: { "output.x": "result" } }), node("b")] },
      "/nodes/0/outputMapping/output.x",
      /no variable "result"/,
    ],
    [
      "an item with a name that is taken",
      edges({ foreach: { collection: "input.id", itemVar: "state" } }),
      "/transitions/0/foreach/itemVar",
      /is the name of something else/,
    ],
    [
      "two counts",
      edges({ spawnCount: 2, foreach: { collection: "[1]", itemVar: "one" } }),
      "/transitions/0/spawnCount",
      /Remove one/,
    ],
    ["an unknown field", edges({ when: "true" } as object), "/transitions/0/when", /Unknown field/],
    ["a reference", { nodes: [node("a", { task: "a/b/c" }), node("b")] }, "/nodes/0/task", /A reference is/],
    ["an input that is no object", { input: z.string() }, "/input", /Wrap it in z\.object/],
  ])("FLOWCHECK-2 FLOWPATH-1 %s is checked", (_, options, path, message) => {
    expect(issuesOf(options).find((one) => one.path === path)?.message).toMatch(message);
  });

  test("FLOWBUILD-1 an unsound workflow is refused", () => {
    expect(issuesOf({ nodes: [...nodes, node("c")] })).toEqual([
      { path: "/nodes/2", message: expect.stringMatching(/^SOUND-1: Node "c" is unreachable/) },
    ]);
  });
});

const inCode = defineWorkflow("review", {
  name: "Review",
  input: z.object({ documents: z.array(z.string()) }),
  output: z.object({ verdicts: z.array(z.unknown()) }),
  context: z.object({ verdicts: z.array(z.unknown()) }),
  initialNode: "start",
  nodes: [
    node("start"),
    node("read", {
      task: { library: "office", id: "read", version: 2 },
      inputMapping: { document: "item" },
      outputMapping: { "output.verdict": "result.verdict" },
    }),
    node("ask", { agent: "clerk", inputMapping: { message: "'Is it right?'" } }),
    node("archive", { workflow: "office/archive", inputMapping: { verdicts: "state.verdicts" } }),
  ],
  transitions: [
    transition({
      from: "start",
      to: "read",
      siblingGroup: "documents",
      foreach: { collection: "input.documents", itemVar: "item" },
    }),
    transition({
      from: "read",
      to: "ask",
      synchronization: {
        siblingGroup: "documents",
        strategy: "m_of_n:2",
        merge: { source: "_branch.output.verdict", target: "state.verdicts", strategy: "collect" },
      },
    }),
    transition({ from: "ask", to: "archive", condition: "size(state.verdicts) > 0" }),
  ],
  outputMapping: { verdicts: "state.verdicts" },
  timeoutMs: 60_000,
});

const asJson: Json = {
  name: "Review",
  inputSchema: {
    type: "object",
    properties: { documents: { type: "array", items: { type: "string" } } },
    required: ["documents"],
  },
  outputSchema: {
    type: "object",
    properties: { verdicts: { type: "array", items: {} } },
    required: ["verdicts"],
  },
  contextSchema: {
    type: "object",
    properties: { verdicts: { type: "array", items: {} } },
    required: ["verdicts"],
  },
  initialNodeId: "start",
  nodes: [
    { ref: "start", inputMapping: null },
    {
      ref: "read",
      taskId: "office/read",
      taskVersion: 2,
      inputMapping: { document: "item" },
      outputMapping: { "output.verdict": "result.verdict" },
    },
    { ref: "ask", agentId: "clerk", invocationMode: "delegate", inputMapping: { message: "'Is it right?'" } },
    {
      ref: "archive",
      subworkflowId: "office/archive",
      subworkflowVersion: null,
      inputMapping: { verdicts: "state.verdicts" },
    },
  ],
  transitions: [
    {
      ref: "start-read",
      fromNodeId: "start",
      toNodeId: "read",
      priority: 0,
      siblingGroup: "documents",
      foreach: { collection: "input.documents", itemVar: "item" },
    },
    {
      fromNodeId: "read",
      toNodeId: "ask",
      synchronization: {
        siblingGroup: "documents",
        strategy: { mOfN: 2 },
        timeoutMs: 0,
        onTimeout: "fail",
        merge: { source: "_branch.output.verdict", target: "state.verdicts", strategy: "collect" },
      },
    },
    { from: "ask", to: "archive", condition: "size(state.verdicts) > 0" },
  ],
  outputMapping: { verdicts: "state.verdicts" },
  timeoutMs: 60_000,
  onTimeout: "human_gate",
};

describe("the forms of a workflow", () => {
  // SAFETY: a definition is JSON.
  const canonical = (value: unknown) => canonicalJson(value as Json);

  test("FLOWFORM-2 the same workflow in TypeScript and as JSON is equal", () => {
    expect(canonical(workflowSchema.parse(asJson))).toBe(canonical(inCode.definition));
    expect(canonical(workflowSchema.parse(inCode.definition))).toBe(canonical(inCode.definition));
    expect(checkWorkflow(workflowSchema.parse(asJson))).toEqual([]);
  });

  test.each([
    [{ taskId: "read" }, { task: "read" }],
    [{ taskId: "read", taskVersion: "3" }, { task: "read@3" }],
    [{ taskId: "lib/read", taskVersion: null }, { task: "lib/read" }],
    [{ task: { library: "lib", id: "read" } }, { task: "lib/read" }],
    [{ workflowId: "lib/flow", workflowVersion: 1 }, { workflow: "lib/flow@1" }],
    [{ subworkflowId: "flow", subworkflowVersion: 1 }, { workflow: "flow@1" }],
    [{ agentId: "clerk" }, { agent: "clerk", mode: "delegate" }],
    [
      { agentId: "clerk", invocationMode: "loop_in" },
      { agent: "clerk", mode: "loop_in" },
    ],
    [{ agent: "clerk" }, { agent: "clerk", mode: "delegate" }],
    [{}, {}],
  ])("B2 FLOWFORM-1 a node with %j is one with %j", (given, expected) => {
    const parsed = workflowSchema.parse({ inputSchema, initialNode: "a", nodes: [{ ref: "a", ...given }] });
    expect(parsed.nodes).toEqual([{ ref: "a", ...expected }]);
  });

  test.each([
    [{ task: "a", taskVersion: 2 }, "/nodes/0/taskVersion"],
    [{ task: "a", taskId: "b" }, "/nodes/0"],
    [{ taskId: "a@1", taskVersion: 2 }, "/nodes/0/task"],
    [{ taskVersion: 2 }, "/nodes/0/taskVersion"],
  ])("B2 FLOWFORM-1 %j contradicts itself", (given, path) => {
    const parsed = workflowSchema.safeParse({
      inputSchema,
      initialNode: "a",
      nodes: [{ ref: "a", ...given }],
    });
    expect(inputIssues(parsed.error ?? new z.ZodError([])).map((issue) => issue.path)).toContain(path);
  });
});

describe("inline definitions in a node", () => {
  const read = defineTask({
    id: "read",
    input: z.object({ page: z.number() }),
    effect: "pure",
    execute: ({ page }) => page,
  });
  const inner = defineWorkflow("inner", {
    input: z.object({ page: z.number() }),
    initialNode: "read",
    nodes: [node("read", { task: read })],
  });

  test("FLOWBUILD-2 is referred to by its id, and listed", () => {
    const outer = defineWorkflow("outer", {
      input: z.object({ page: z.number() }),
      initialNode: "inner",
      nodes: [node("inner", { workflow: inner }), node("again", { workflow: inner })],
      transitions: [transition({ from: "inner", to: "again" })],
    });
    expect(outer.definition.nodes).toEqual([
      { ref: "inner", workflow: "inner" },
      { ref: "again", workflow: "inner" },
    ]);
    expect(embeddedIn(outer)).toEqual({ agents: [], tasks: [read], workflows: [inner] });
    expect(JSON.stringify(outer.definition)).not.toContain("run");
  });

  test("FLOWBUILD-1 its input is checked when the module loads", () => {
    expect(issuesOf({ nodes: [node("a", { task: read }), node("b")] })).toEqual([
      { path: "/nodes/0", message: expect.stringMatching(/^SOUND-9: .*"page", which is required/) },
    ]);
    // @ts-expect-error: The property "page" is missing.
    expect(issuesOf({ nodes: [node("a", { workflow: inner, inputMapping: {} }), node("b")] })).toEqual([
      {
        path: "/nodes/0/inputMapping",
        message: expect.stringMatching(/^SOUND-9: The member "page" is missing/),
      },
    ]);
  });
});

describe("the workflows of a library", () => {
  const flow = (id: string, ...inner: string[]) =>
    defineWorkflow(id, {
      input: z.object({}),
      initialNode: "n0",
      nodes: ["", ...inner].map((workflow, index) => node(`n${index}`, workflow === "" ? {} : { workflow })),
      transitions: inner.map((_, index) => transition({ from: `n${index}`, to: `n${index + 1}` })),
    });

  test.each([
    [
      [flow("w1", "w2"), flow("w2", "w1")],
      'Workflow "lib/w2", /nodes/1/workflow',
      "lib/w1 > lib/w2 > lib/w1",
    ],
    [[flow("w1", "lib/w1@1")], 'Workflow "lib/w1", /nodes/1/workflow', "lib/w1 > lib/w1"],
    [
      [flow("w0", "w1"), flow("w1", "w3", "w2"), flow("w2", "w3", "w1"), flow("w3")],
      'Workflow "lib/w2", /nodes/2/workflow',
      "lib/w1 > lib/w2 > lib/w1",
    ],
  ])("NEST-1 do not contain themselves: %#", (workflows, place, loop) => {
    expect(() => defineLibrary("lib", { workflows })).toThrow(
      `${place}: A workflow contains itself: ${loop}. Remove one of these nodes.`,
    );
  });

  test("NEST-1 NEST-3 may contain a workflow by many paths, and workflows of other libraries", () => {
    const below = (level: number) => Array.from({ length: 8 - level }, (_, n) => `w${level + n + 1}`);
    const levels = Array.from({ length: 8 }, (_, level) =>
      flow(`w${level}`, ...below(level), ...below(level)),
    );
    const { workflows } = defineLibrary("lib", { workflows: [...levels, flow("w8", "other/w0")] });
    expect(workflows).toHaveLength(9);
  });
});

describe("hostile workflows", () => {
  const named = (count: number) => Array.from({ length: count }, (_, index) => ({ ref: `n${index}` }));
  const deep = (levels: number): object => (levels === 0 ? {} : { a: deep(levels - 1) });
  const base = { inputSchema, initialNode: "n0", nodes: named(2) };

  test.each<[string, unknown, string]>([
    [
      "10 000 transitions",
      { ...base, transitions: Array(10_000).fill({ from: "n0", to: "n1" }) },
      "/transitions",
    ],
    ["10 000 nodes", { ...base, nodes: named(10_000) }, "/nodes"],
    ["a transition that is null", { ...base, transitions: [null] }, "/transitions/0"],
    ["nodes that are a text", { ...base, nodes: "n0" }, "/nodes"],
    ["a name that is too long", { ...base, nodes: [{ ref: "n".repeat(1_000_000) }] }, "/nodes/0/ref"],
    ["a node named by a path", { ...base, nodes: [{ ref: "../n0" }] }, "/nodes/0/ref"],
    ["a list", [], ""],
    ["null", null, ""],
  ])("FLOWDEF-1 %s: a clear error", (_, value, path) => {
    const parsed = workflowSchema.safeParse(value);
    expect(inputIssues(parsed.error ?? new z.ZodError([])).map((issue) => issue.path)).toContain(path);
  });

  test("FLOWDEF-1 the limits are in the error", () => {
    const parsed = workflowSchema.safeParse({ ...base, nodes: named(MAX_NODES + 1) });
    expect(parsed.error?.issues[0]?.message).toBe(
      `Must have at most ${MAX_NODES} nodes. It has ${MAX_NODES + 1}.`,
    );
    expect(MAX_TRANSITIONS).toBeLessThan(10_000);
  });

  test("FLOWCHECK-2 names of prototypes are not written, read or inherited", () => {
    const nodes = JSON.parse(
      '[{"ref": "__proto__", "task": "a", "inputMapping": {"__proto__": "input.id", "x": "input.constructor"}, "outputMapping": {"output.__proto__.x": "result"}}]',
    );
    const parsed = workflowSchema.safeParse({ inputSchema, initialNode: "__proto__", nodes });
    const issues = parsed.success ? checkWorkflow(parsed.data) : inputIssues(parsed.error);
    expect(issues.length).toBeGreaterThan(0);
    expect(Object.prototype).not.toHaveProperty("x");
    for (const group of ["constructor", "toString", "__proto__"]) {
      const definition = workflowSchema.parse({
        inputSchema,
        initialNode: group,
        nodes: [{ ref: group }, { ref: "n1" }, { ref: "n2" }],
        transitions: [
          { from: group, to: "n1", siblingGroup: group, spawnCount: 2 },
          { from: "n1", to: "n2", synchronization: { siblingGroup: group, strategy: "all" } },
        ],
      });
      expect(checkWorkflow(definition)).toEqual([]);
      expect(run(definition, {}, { taskOutcome: () => ({ output: 1 }) }).status).toBe("completed");
    }
  });

  test("FLOWDEF-1 a schema that nests deep is refused or read, and ends", () => {
    const schema = { type: "object", properties: { x: { properties: deep(60) } } };
    const parsed = workflowSchema.safeParse({ ...base, nodes: named(1), inputSchema: schema });
    expect(parsed.success).toBe(true);
  });

  test("FLOWCHECK-2 an expression that is too long is refused", () => {
    const long = `input.id == '${"x".repeat(9_900)}'`;
    const transitions = Array.from({ length: 5 }, (_, index) => ({
      ref: `t${index}`,
      from: "n0",
      to: "n1",
      condition: long,
    }));
    const [issue] = checkWorkflow(workflowSchema.parse({ ...base, transitions }));
    expect(issue?.message).toMatch(/^The expressions of a workflow have at most \d+ characters together/);
  });

  test.each([
    ["nodes", { from: "none", to: "missing" }],
    ["groups", { synchronization: { siblingGroup: "missing", strategy: "all" } }],
  ])("FLOWCHECK-1 the names of %s are compared for the issues that are shown, not for each", (_, wrong) => {
    const transitions = Array.from({ length: 1_000 }, (_, index) => ({
      ...{ ref: `t${index}`, from: "n0", to: "n1" },
      ...(index < 500 ? { siblingGroup: `g${index}` } : wrong),
    }));
    const definition = workflowSchema.parse({ ...base, nodes: named(500), transitions });
    // Each id is put into lower case before it is compared.
    const compared = vi.spyOn(String.prototype, "toLowerCase");
    onTestFinished(() => compared.mockRestore());
    const issues = checkWorkflow(definition);
    const { length: count } = compared.mock.calls;
    expect(issues).toHaveLength(20);
    expect(count).toBe(500 + 20);
  });

  const items = (count: number) =>
    Array.from({ length: count }, (_, index) => ({
      ...{ ref: `t${index}`, from: "n0", to: "n1" },
      foreach: { collection: "[1]", itemVar: `item${index % 1_000}` },
    }));
  const wrong = { ref: "n1", task: "a", inputMapping: { x: "nothing" } };

  test("FLOWDEF-1 a node sees 32 names of items at most", () => {
    const checked = (count: number) =>
      checkWorkflow(
        workflowSchema.parse({ ...base, nodes: [{ ref: "n0" }, wrong], transitions: items(count) }),
      );
    expect(checked(MAX_ITEM_NAMES + 1)).toEqual([
      {
        path: "/nodes/1",
        message:
          'The transitions to node "n1" give the items of `foreach` 33 names. The maximum is 32. Use one `itemVar` in several transitions.',
      },
    ]);
    expect(checked(MAX_ITEM_NAMES)).toEqual([
      {
        path: "/nodes/1/inputMapping/x",
        message: `Reference error: There is no variable "nothing". Known variables: input, state, output, ${Array.from({ length: 17 }, (_, index) => `item${index}`).join(", ")}, and more.`,
      },
    ]);
  });

  test("FLOWDEF-1 the expressions of a node are compiled once each, and its names are not joined for them", () => {
    const mapping = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`x${index}`, "item0"]));
    const nodes = [{ ref: "n0" }, { ref: "n1", task: "a", inputMapping: mapping }];
    const definition = workflowSchema.parse({ ...base, nodes, transitions: items(MAX_ITEM_NAMES) });
    const [parsed, joined] = [vi.spyOn(Environment.prototype, "parse"), vi.spyOn(Array.prototype, "join")];
    onTestFinished(() => {
      vi.restoreAllMocks();
    });
    const issues = formIssues(definition);
    const counts = [parsed.mock.calls.length, joined.mock.calls.length];
    vi.restoreAllMocks();
    expect(issues).toEqual([]);
    // `item0` for the node, and `[1]` for the transitions.
    expect(counts).toEqual([2, 0]);
  });

  const writing = (counts: readonly number[], source: string) =>
    workflowSchema.parse({
      ...{
        inputSchema,
        initialNode: "n0",
        contextSchema: { type: "object", properties: {}, additionalProperties: false },
      },
      nodes: counts.map((count, index) => ({
        ...{ ref: `n${index}`, task: "a" },
        outputMapping: Object.fromEntries(
          Array.from({ length: count }, (_, n) => [`state.a${index}_${n}`, source]),
        ),
      })),
      transitions: counts.slice(1).map((_, index) => ({ from: `n${index}`, to: `n${index + 1}` })),
    });
  const parses = (check: () => InputIssue[]) => {
    const parsed = vi.spyOn(Environment.prototype, "parse");
    const issues = check();
    const { length: count } = parsed.mock.calls;
    parsed.mockRestore();
    return { issues, count };
  };

  test("FLOWDEF-1 a workflow writes at most 2 000 paths, and further paths are not checked", () => {
    const checked = (...counts: number[]) =>
      checkWorkflow({ ...writing(counts, "1"), contextSchema: { type: "object" } });
    expect(checked(MAX_WRITTEN_PATHS)).toEqual([]);
    expect(checked(MAX_WRITTEN_PATHS, 1)).toEqual([
      {
        path: "",
        message: expect.stringMatching(
          /^The nodes and merges of a workflow write at most 2000 paths together\. These write 2001\./,
        ),
      },
    ]);
  });

  test.each(["state", "output"])("FLOWDEF-1 a path in %s has 16 names at most", (area) => {
    const path = (count: number) => `${area}${".a".repeat(count)}`;
    const contextSchema = { type: "object" };
    const checked = (written: string) =>
      checkWorkflow(
        workflowSchema.parse({
          ...{ inputSchema, contextSchema, initialNode: "n0" },
          nodes: [{ ref: "n0", outputMapping: { [written]: "1" } }],
        }),
      );
    expect(checked(path(MAX_PATH_NAMES))).toEqual([]);
    expect(checked(path(MAX_PATH_NAMES + 1))).toEqual([
      {
        path: `/nodes/0/outputMapping/${path(17)}`,
        message: "Must have at most 16 names of members. It has 17.",
      },
    ]);
  });

  test("FLOWCHECK-2 wrong expressions are compiled up to the last reported issue", () => {
    const { issues, count } = parses(() => checkWorkflow(writing([1_000], "nothing")));
    expect(issues).toHaveLength(20);
    expect(count).toBe(20);
  });

  test("SOUND-9 requests only the schemas of the reported issues", () => {
    const asked = vi.fn(() => null);
    expect(checkWorkflow(writing(Array(400).fill(2), "result"), asked)).toHaveLength(20);
    // Each of ten nodes, at its input and at each of its two paths, which ask twice.
    expect(asked.mock.calls.length).toBeLessThanOrEqual(10 * 5);
  });
});
