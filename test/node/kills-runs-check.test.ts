/** The check of the kills within runs finds each violation in a history made by hand. */
import { expect, test } from "vitest";
import { checkRuns, missingInRuns } from "../../bench/kills/runs/check.ts";
import type { DeskHit, RunsHistory } from "../../bench/kills/runs/history.ts";
import type { RunEntryView, RunView } from "../../src/protocol/run-schemas.ts";
import type { RunEntryType } from "../../src/protocol/workflow-run.ts";
import type { Json } from "../../src/shared/json.ts";

const UNKNOWN = { code: "OUTCOME_UNKNOWN", message: "Unknown." };

type Line = [type: RunEntryType, token: number | null, node: string | null, data?: Json];

/** Two errands: the charge of the second one was lost. */
const LINES: Line[] = [
  ["workflow.started", null, null],
  ["fan_out.started", null, "start", { fanOut: 0 }],
  ["token.created", 1, "charge", { branch: 0 }],
  ["task.dispatched", 1, "charge", { input: { call: "r0:c0" } }],
  ["token.created", 2, "charge", { branch: 1 }],
  ["task.dispatched", 2, "charge", { input: { call: "r0:c1" } }],
  ["task.lost", 2, "charge"],
  ["task.completed", 1, "charge"],
  ["token.completed", 1, "charge"],
  ["task.failed", 2, "charge", { error: UNKNOWN }],
  ["token.failed", 2, "charge"],
  ["fan_in.completed", null, "done", { fanOut: 0 }],
  ["workflow.completed", null, null],
];
const HITS: DeskHit[] = ["r0:c0", "r0:c1"].map((call, n) => ({
  ...{ isOnce: true, call, operationId: `op_${n}`, runId: "run_1" },
}));
const FAILED = { branchIndex: 1, error: UNKNOWN };
const OUTPUT = { calls: ["r0:c0"], fanIn: { total: 2, completed: 1, failed: [FAILED] } };

interface Change {
  lines?: Line[];
  hits?: DeskHit[];
  view?: Partial<RunView>;
}

function history({ lines = LINES, hits = HITS, view = {} }: Change): RunsHistory {
  const at = (index: number) => Date.UTC(2026, 0, 1) + 1_000 * index;
  const journal = lines.map(
    ([type, token, node, data], index): RunEntryView => ({
      ...{ seq: index + 1, time: new Date(at(index)).toISOString(), type },
      ...(token !== null && { token }),
      ...(node !== null && { node }),
      ...(data !== undefined && { data }),
    }),
  );
  const whole: RunView = {
    ...{ id: "run_1", correlationId: "run_1" },
    workflow: { library: "kills", id: "errands", version: 1 },
    ...{ projectId: "default", status: "completed", startedBy: "local", createdAt: "" },
    input: { calls: ["r0:c0", "r0:c1"] },
    output: OUTPUT,
    ...{ state: {}, seq: lines.length, tokens: 3, active: [], gates: [] },
    usage: { tokens: 0, usd: 0, toolCalls: 0, modelCalls: 0 },
    ...view,
  };
  return { kills: [{ at: at(5), readyAt: at(6) }], hits, runs: [{ view: whole, journal, below: [] }] };
}

const without = (type: RunEntryType) => LINES.filter((line) => line[0] !== type);
const replaced = (type: RunEntryType, ...lines: Line[]) =>
  LINES.flatMap((line) => (line[0] === type ? lines : [line]));
const look = { isOnce: false, call: "r0:l", operationId: "op_9", runId: "run_1" };
const [first = look, second = look] = HITS;

test("a good history has no violations", () => {
  expect(checkRuns(history({}))).toEqual([]);
  expect(checkRuns(history({ hits: [...HITS, look, look] }))).toEqual([]);
});

test.each<[violation: string, change: Change]>([
  ["KILLRUN-1 run_1: it is failed", { view: { status: "failed" } }],
  [
    "KILLRUN-1 run_1: 1 tokens are active",
    { view: { active: [{ token: 1, node: "charge", status: "lost", path: "root" }] } },
  ],
  ["KILLRUN-1 run_1: it has 0 ends", { lines: without("workflow.completed") }],
  ["KILLRUN-1 run_1: it has 1 ends", { view: { seq: 20 } }],
  ["KILLRUN-1 run_1: its fan-ins fired 0 times for 1 fan-outs", { lines: without("fan_in.completed") }],
  ["KILLRUN-2 run_1: token 1 has 0 ends", { lines: without("token.completed") }],
  ["KILLRUN-2 run_1: token 1 has 0 outcomes", { lines: without("task.completed") }],
  ["KILLRUN-3 op_0 reached the desk 2 times", { hits: [...HITS, first] }],
  [
    "KILLRUN-3 op_1 stands for r0:c1 and r0:c3",
    { hits: [first, { ...second, isOnce: false }, { ...second, call: "r0:c3", isOnce: false }] },
  ],
  ["KILLRUN-3 run_1: charge of token 1 completed, and never reached the desk", { hits: [second] }],
  [
    "KILLRUN-3 run_1: charge of token 1 has 2 operations",
    { hits: [...HITS, { ...first, operationId: "op_7" }] },
  ],
  ["KILLRUN-3 run_1: charge of token 2 failed with OUTCOME_UNKNOWN", { lines: without("task.lost") }],
  [
    "KILLRUN-3 run_1: charge of token 2 failed with TIMEOUT",
    { lines: replaced("task.failed", ["task.failed", 2, "charge", { error: { code: "TIMEOUT" } }]) },
  ],
  [
    "KILLRUN-4 run_1: ask of token 2 failed with OUTCOME_UNKNOWN: Unknown.",
    { lines: replaced("task.failed", ["task.failed", 2, "ask", { error: UNKNOWN }]) },
  ],
  ["KILLRUN-4 op_9 reached the desk 3 times", { hits: [...HITS, look, look, look] }],
  [
    "KILLRUN-4 run_1 has 0 runs below it, and 1 sub-workflows",
    {
      view: {
        input: { calls: ["r0:c0", "r0:c1"], pairs: [{ call: "r0:p0" }] },
        output: { calls: ["r0:c0", "r0:p0"], fanIn: { total: 3, completed: 2, failed: [FAILED] } },
      },
    },
  ],
  [
    "KILLRUN-5 run_1: branches  are reported as failed instead of 1",
    { view: { output: { ...OUTPUT, fanIn: { total: 2, completed: 2, failed: [] } } } },
  ],
  [
    "KILLRUN-5 run_1: it joined 2 of 2 branches",
    { view: { output: { ...OUTPUT, fanIn: { ...OUTPUT.fanIn, completed: 2 } } } },
  ],
  [
    "KILLRUN-5 run_1: a branch is reported with FAILED",
    {
      view: {
        output: { ...OUTPUT, fanIn: { ...OUTPUT.fanIn, failed: [{ ...FAILED, error: { code: "FAILED" } }] } },
      },
    },
  ],
  [
    "KILLRUN-5 run_1: its merge differs from its branches",
    { view: { output: { ...OUTPUT, calls: ["r0:c1"] } } },
  ],
  ["KILLRUN-5 run_1: it has no output of its fan-in", { view: { output: {} } }],
])("%s", (violation, change) => {
  expect(checkRuns(history(change))).toEqual([violation]);
});

test("a gap in the journal is found", () => {
  const { runs, ...rest } = history({});
  for (const { journal } of runs) for (const entry of journal.slice(3)) entry.seq += 1;
  expect(checkRuns({ ...rest, runs })).toContain("KILLRUN-1 run_1: its journal has a gap before 5");
});

test("kills without effect are reported", () => {
  expect(missingInRuns(history({ hits: [...HITS, look, look] }))).toEqual([]);
  const idle = history({ lines: without("task.lost") });
  expect(missingInRuns({ ...idle, kills: [{ at: 0, readyAt: 1 }] })).toEqual([
    "There was no `once` task that was lost.",
    "There was no idempotent task that ran again.",
    "There was no kill within a fan-out each time.",
  ]);
});
