/** The console's pure parts for runs: the state of each node in a journal, and the graph of a workflow. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { NODE_HEIGHT, NODE_WIDTH, placesOf } from "../../app/src/runs/graph-layout.ts";
import { runChoice, runsPath } from "../../app/src/runs/run-filter.ts";
import { RunLog, type RunToken } from "../../app/src/runs/run-log.ts";
import { countsText, nodeState, tokenLasted, workflowName } from "../../app/src/runs/run-texts.ts";
import { timelineOf } from "../../app/src/runs/run-timeline.ts";
import { kindOf, readingOrder, transitionText } from "../../app/src/runs/workflow-graph.ts";
import type { RunEntryView, WorkflowDefinition } from "../../src/client/index.ts";

type Entry = Omit<RunEntryView, "seq" | "time">;

/** A log of entries, one second apart. */
function logOf(...entries: Entry[]): RunLog {
  const log = new RunLog();
  for (const [index, entry] of entries.entries())
    log.add({ seq: index + 1, time: new Date(1_700_000_000_000 + index * 1_000).toISOString(), ...entry });
  return log;
}

const at = (token: number, type: RunEntryView["type"], data?: RunEntryView["data"]): Entry => ({
  type,
  token,
  node: "a",
  ...(data === undefined ? {} : { data }),
});
const error = { code: "TIMEOUT", message: "Too late." };

it("the address of the list of runs keeps its filters", () => {
  expect(runsPath({ status: "", text: "" })).toBe("/runs");
  const choice = { status: "timed_out", text: "of Änne & co" } as const;
  expect(runChoice(runsPath(choice).replace("/runs", ""))).toEqual(choice);
  expect(runChoice("?status=toString&text=a&other=b")).toEqual({ status: "", text: "a" });
});

describe("the log of a run", () => {
  it("has each visit with its input, output, attempts, failures and times", () => {
    const log = logOf(
      { type: "workflow.started" },
      at(0, "token.created", { group: "g", branch: 1, path: "root.s.1" }),
      at(0, "task.dispatched", { input: { x: 1 }, runId: "run_1" }),
      at(0, "task.retried", { attempt: 1, error }),
      at(0, "task.completed", { attempt: 2, output: null }),
      at(0, "token.completed"),
    );
    const { tokens, counts } = log.visits("a");
    expect(tokens).toMatchObject([
      {
        id: 0,
        state: "completed",
        path: "root.s.1",
        attempts: 2,
        input: { x: 1 },
        runId: "run_1",
        output: null,
      },
    ]);
    expect(tokens[0]?.failures).toMatchObject([{ attempt: 1, error }]);
    expect(tokenLasted(tokens[0] as never)).toBe("3.0 s");
    expect(countsText({ tokens, counts })).toBe("1 completed");
    expect(log.visits("b")).toEqual({ tokens: [], counts: {} });
  });

  it("shows a node's current state before its past, and its worst end when it has finished", () => {
    const created = [0, 1, 2].flatMap((token) => [at(token, "token.created"), at(token, "task.dispatched")]);
    const failed = [at(0, "task.failed", { attempt: 1, error }), at(0, "token.failed", { error })];
    const log = logOf(...created, ...failed, at(1, "token.completed"));
    expect(nodeState(log.visits("a"))).toBe("working");
    expect(countsText(log.visits("a"))).toBe("1 failed, 1 working, 1 completed");
    const over = logOf(...created, ...failed, at(1, "token.completed"), at(2, "token.cancelled"));
    expect(nodeState(over.visits("a"))).toBe("failed");
    expect(nodeState(over.visits("b"))).toBe("idle");
  });

  it("releases the tokens that wait at a fan-in when that fires, fails, or the run ends", () => {
    const waits = [at(0, "token.waiting", { fanOut: 0 }), at(1, "token.waiting", { fanOut: 1 })];
    const log = logOf(...waits, { type: "fan_in.completed", node: "a", data: { fanOut: 0 } });
    expect(countsText(log.visits("a"))).toBe("1 waiting, 1 joined");
    const failed = logOf(...waits, { type: "sync.failed", node: "s", data: { fanOut: 1, error } });
    expect(countsText(failed.visits("a"))).toBe("1 waiting, 1 cancelled");
    const over = logOf(...waits, { type: "workflow.failed", data: { error } });
    expect(countsText(over.visits("a"))).toBe("2 cancelled");
    expect(over.end).toMatchObject({ status: "failed", error });
  });

  it("RUNRETRY-1 lets the tokens and fan-ins of a retry continue, and keeps the failed attempts", () => {
    const log = logOf(
      at(0, "token.created"),
      at(0, "task.dispatched", { input: 1 }),
      at(1, "token.waiting", { fanOut: 0 }),
      at(2, "token.waiting", { fanOut: 1 }),
      at(0, "task.failed", { attempt: 1, error }),
      at(0, "token.failed", { error }),
      { type: "sync.failed", node: "s", data: { fanOut: 0, error } },
      { type: "workflow.failed", data: { error } },
      { type: "workflow.retried", data: { by: "ada", tokens: [0], fanOuts: [0] } },
    );
    expect(log.end).toBeUndefined();
    expect(countsText(log.visits("a"))).toBe("1 waiting, 1 ready, 1 cancelled");
    const [token] = log.visits("a").tokens;
    expect(token).toMatchObject({ attempts: 1, failures: [{ attempt: 1 }] });
    expect([token?.endedAt, token?.error]).toEqual([undefined, undefined]);
    const more: Entry[] = [
      at(0, "task.dispatched", { input: 1, attempt: 2 }),
      at(0, "token.completed"),
      { type: "fan_in.completed", node: "a", data: { fanOut: 0 } },
    ];
    for (const [index, entry] of more.entries())
      log.add({ seq: 10 + index, time: "2026-01-01T00:00:00Z", ...entry });
    expect(token?.attempts).toBe(2);
    expect(countsText(log.visits("a"))).toBe("1 cancelled, 1 joined, 1 completed");
  });

  it("ignores entries that it has, after a reconnection", () => {
    const log = logOf(at(0, "token.created"));
    log.add({ seq: 1, time: "", type: "token.created", token: 0, node: "a" });
    expect(log.visits("a").tokens).toHaveLength(1);
  });
});

const workflow: WorkflowDefinition = {
  inputSchema: {},
  initialNode: "start",
  nodes: [
    { ref: "last", agent: "clerk" },
    { ref: "work", task: "lib/work" },
    { ref: "start" },
    { ref: "other", workflow: "lib/other" },
  ],
  transitions: [
    {
      ref: "1",
      from: "start",
      to: "work",
      priority: 0,
      siblingGroup: "g",
      foreach: { collection: "input.l", itemVar: "item" },
    },
    { ref: "2", from: "start", to: "other", priority: 0, siblingGroup: "g", spawnCount: 3 },
    {
      ref: "3",
      from: "work",
      to: "last",
      priority: 0,
      synchronization: { siblingGroup: "g", strategy: { mOfN: 2 }, onTimeout: "fail" },
    },
    {
      ref: "4",
      from: "last",
      to: "start",
      priority: 0,
      condition: "size(state.results) < 10 && true",
      loopConfig: { maxIterations: 5 },
    },
  ],
};

describe("the graph of a workflow", () => {
  it("lists nodes in the order of the tokens", () => {
    expect(readingOrder(workflow).map(({ ref }) => ref)).toEqual(["start", "work", "other", "last"]);
    expect(workflow.nodes.map(kindOf)).toEqual(["agent", "task", "pass", "workflow"]);
  });

  it("describes a transition", () => {
    expect(workflow.transitions.map(transitionText)).toEqual([
      "each item",
      "× 3",
      "when 2 arrived",
      "if size(state.results) < 10 &&… · at most 5 times",
    ]);
    expect(workflowName({ library: "l", id: "w", version: 2 })).toBe("l/w@2");
  });

  it("places nodes in layers, without overlaps, with loops", () => {
    const places = placesOf(workflow);
    const y = (ref: string) => places.get(ref)?.y ?? Number.NaN;
    expect(y("work")).toBeGreaterThan(y("start") + NODE_HEIGHT);
    expect(y("last")).toBeGreaterThan(y("work") + NODE_HEIGHT);
    const [work, other] = [places.get("work"), places.get("other")];
    expect(Math.abs((work?.x ?? 0) - (other?.x ?? 0))).toBeGreaterThan(NODE_WIDTH);
  });
});

it("RUNLINE-1 RUNLINE-2 each visit of a node has one row, and its bar stays within the time of the run", () => {
  const moment = fc.nat(100_000).map((ms) => new Date(ms).toISOString());
  const visit = fc.record(
    { createdAt: moment, startedAt: moment, endedAt: moment },
    { requiredKeys: ["createdAt"] },
  );
  fc.assert(
    fc.property(fc.array(visit), fc.nat(100_000), fc.nat(100_000), (visits, from, to) => {
      const tokens = visits.map((times, id): RunToken => {
        return { id, node: "a", state: "ready", attempts: 0, failures: [], ...times };
      });
      const rows = timelineOf(tokens, from, to);
      expect(rows.map(({ token }) => token.id).toSorted((a, b) => a - b)).toEqual(tokens.map(({ id }) => id));
      for (const [index, { left, width, durationMs, startsAfter, isOpen, token }] of rows.entries()) {
        expect(startsAfter).toBeGreaterThanOrEqual(rows[index - 1]?.startsAfter ?? 0);
        expect(Math.min(left, width, durationMs)).toBeGreaterThanOrEqual(0);
        expect(left + width).toBeLessThanOrEqual(1 + 1e-9);
        expect(isOpen).toBe(token.endedAt === undefined);
        if (isOpen) expect(left + width).toBeCloseTo(1);
      }
    }),
  );
});
