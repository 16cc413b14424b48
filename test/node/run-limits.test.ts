/** The bounds of a run, whatever its workflow and its input: steps, lengths, calls and runs below. */
import { describe, expect, test } from "vitest";
import { newRun, plan } from "../../src/agents/coordinator/core/plan.ts";
import { runEnvelopes } from "../../src/agents/coordinator/core/run-envelopes.ts";
import { MAX_OPEN_CALLS } from "../../src/agents/coordinator/core/run-limits.ts";
import type { RunState } from "../../src/agents/coordinator/core/state.ts";
import { workflowSchema } from "../../src/library/workflows/workflow-schema.ts";
import { PlayedRun } from "../support/workflows/play.ts";

const members = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, i]));
const spawn = (to: string, spawnCount: number, group = to) => ({
  ...{ ref: group, from: "start", to, spawnCount, siblingGroup: group },
});
const task = (ref: string, more: object = {}) => ({ ref, task: "task", ...more });

describe("AREA-1 the steps of a token", () => {
  test("count the members that it copies: a commit takes its part of them", () => {
    const copies = { outputMapping: { "output.all": "input.all" } };
    const run = new PlayedRun(
      {
        initialNode: "start",
        nodes: [
          { ref: "start", ...copies },
          { ref: "middle", ...copies },
          { ref: "work", outputMapping: { "output.n": "1" } },
        ],
        transitions: [spawn("middle", 2), { ...spawn("work", 100), from: "middle" }],
      },
      { all: members(10_000) },
    );
    expect(run.state.status).toBe("running");
  });

  test("count the names of the members: a commit notes a bounded length", () => {
    const run = new PlayedRun(
      {
        initialNode: "start",
        nodes: [{ ref: "start" }, task("work", { inputMapping: { x: "input.big" } })],
        transitions: [spawn("work", 100)],
      },
      { big: { ["x".repeat(900_000)]: 1 } },
    );
    expect(JSON.stringify(run.entries).length).toBeLessThan(10_000_000);
  });
});

test("RUNSIGNAL-4 a wake with only ready tokens counts as an interruption", () => {
  const run = new PlayedRun({
    initialNode: "start",
    nodes: [{ ref: "start" }, { ref: "a" }],
    transitions: ["g", "h", "i"].map((group) => spawn("a", 1_000, group)),
  });
  expect(run.state.tokens.size).toBeGreaterThan(0);
  run.take({ type: "run.recover" });
  expect(run.of("workflow.recovered")).toHaveLength(1);
});

test("names of transitions and items are own members only", () => {
  const run = new PlayedRun(
    {
      initialNode: "start",
      nodes: [{ ref: "start" }, task("a", { inputMapping: { x: "constructor" } })],
      transitions: [
        {
          ...{ ref: "constructor", from: "start", to: "a", siblingGroup: "g" },
          foreach: { collection: "input.list", itemVar: "constructor" },
        },
        { ref: "two", from: "start", to: "a", siblingGroup: "h" },
      ],
    },
    { list: [1] },
  );
  expect(run.at("a").map(({ phase }) => phase)).toMatchObject([{ input: { x: 1 } }, { input: { x: null } }]);
});

describe("the calls of a run", () => {
  /** Begins a run with nodes that ask an agent. */
  const begun = (...spawned: number[]): RunState => {
    const definition = workflowSchema.parse({
      inputSchema: { type: "object" },
      initialNode: "start",
      nodes: [{ ref: "start" }, { ref: "ask", agent: "helper", mode: "delegate" }],
      transitions: spawned.map((count, index) => spawn("ask", count, `g${index}`)),
    });
    const workflow = { library: "lib", id: "w", version: 1, hash: "", definition, tasks: {}, workflows: {} };
    const ids = { id: "run_1", tenant: "local", projectId: "default", stem: "01ARZ3NDEKTSV4RRFFQ" };
    let state = newRun({ ...ids, workflow, input: {}, startedBy: "ada", request: "", createdAt: 0 });
    for (const type of ["run.begin", "run.advance", "run.advance"] as const)
      state = plan(state, [{ type }], 1)?.state ?? state;
    return state;
  };

  test("OPENCALLS-1 have a limit: the node beyond it fails, and the run can end", () => {
    expect(begun(MAX_OPEN_CALLS)).toMatchObject({ status: "running" });
    expect(begun(MAX_OPEN_CALLS, 1)).toMatchObject({
      status: "failed",
      error: { code: "BUDGET_EXCEEDED" },
    });
  });

  test.each([
    ["SUBRUN-2 with an unconfirmed start is cancelled", "OUTCOME_UNKNOWN", ["agent.cancel"]],
    ["that failed is not cancelled", "UNAVAILABLE", []],
  ])("%s", (_, code, expected) => {
    const before = begun(1);
    const [token] = [...before.tokens.keys()];
    const outcome = { error: { code, message: "It is lost." } };
    const change = plan(before, [{ type: "node.ended", token: token ?? -1, attempt: 1, outcome }], 2);
    if (change === null) throw new Error("Nothing has changed.");
    expect(runEnvelopes(before, change).map(({ type }) => type)).toEqual(expected);
    expect(change.state.status).toBe("failed");
  });
});

test("ROUTE-4 transitions that together create too many tokens are refused before the first token", () => {
  const each = (ref: string) => ({
    ...{ ref, from: "start", to: "work", siblingGroup: "g" },
    foreach: { collection: "input.items", itemVar: "item" },
  });
  const run = new PlayedRun(
    {
      initialNode: "start",
      nodes: [{ ref: "start" }, { ref: "work", task: "task" }],
      transitions: Array.from({ length: 300 }, (_, index) => each(`each_${index}`)),
    },
    { items: Array.from({ length: 40_000 }, () => 0) },
  );
  expect(run.state).toMatchObject({
    status: "failed",
    error: { code: "TOO_LARGE", message: expect.stringContaining("create 12000000 tokens at once") },
    made: { tokens: 1, fanOuts: 0 },
  });
});
