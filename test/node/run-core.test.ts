/** The decisions of runs, beside the reference interpreter. */
import { describe, expect, test } from "vitest";
import { newRun } from "../../src/agents/coordinator/core/begin.ts";
import { timeOutAt } from "../../src/agents/coordinator/core/fan-in.ts";
import { graphOf } from "../../src/agents/coordinator/core/graph.ts";
import { plan } from "../../src/agents/coordinator/core/plan.ts";
import type { RunSignal } from "../../src/agents/coordinator/core/signals.ts";
import { isOver, type RunState } from "../../src/agents/coordinator/core/state.ts";
import { soundnessIssues } from "../../src/library/workflows/soundness/check.ts";
import type { WorkflowDefinition } from "../../src/protocol/workflow-definition.ts";
import type { RunEntry } from "../../src/protocol/workflow-run.ts";
import type { Json } from "../../src/shared/json.ts";
import { fingerprint } from "../../src/shared/text.ts";
import { Random } from "../simulation/random.ts";
import { generate } from "../support/workflows/generate.ts";
import { run } from "../support/workflows/interpreter.ts";
import type { Choice, TaskOutcome } from "../support/workflows/run.ts";

const GRAPHS = 1_500;
const INPUT = { a: "a" };

/** A step of a run: a task that ended, or the time of a fan-in. */
type Taken = { task: number } | { fanOut: number };

interface Ran {
  state: RunState;
  entries: RunEntry[];
  taken: Taken[];
}

function begun(definition: WorkflowDefinition): RunState {
  return newRun({
    id: "run_1",
    tenant: "local",
    projectId: "default",
    stem: "0123456789ABCDEFGHJ",
    workflow: { library: "lib", id: "w", version: 1, hash: "", definition, tasks: {}, workflows: {} },
    input: INPUT,
    startedBy: "user",
    request: "",
    createdAt: 0,
  });
}

/** Runs the core to its end, in a random order. */
function ran(definition: WorkflowDefinition, random: Random, outcomeOf: OutcomeOf): Ran {
  let state = begun(definition);
  const entries: RunEntry[] = [];
  const taken: Taken[] = [];
  const graph = graphOf(definition);
  const attempts = new Map<string, number>();
  let now = 1;
  const take = (signal: RunSignal) => {
    const change = plan(state, [signal], now);
    now += 1;
    if (change === null) return;
    entries.push(...change.entries);
    state = change.state;
  };
  take({ type: "run.begin" });
  for (let steps = 0; !isOver(state) && steps < 20_000; steps++) {
    const working = [...state.tokens.values()].filter(({ phase }) => phase.kind === "working");
    const due = [...state.fanOuts.values()]
      .map((fanOut) => ({ id: fanOut.id, at: timeOutAt(fanOut, graph.meeting(fanOut.origin, fanOut.group)) }))
      .filter((one): one is { id: number; at: number } => one.at !== null)
      .sort((one, other) => one.at - other.at);
    const isPending = [...state.tokens.values()].some(({ phase }) => phase.kind !== "working");
    if (isPending) take({ type: "run.advance" });
    else if (due[0] !== undefined && (working.length === 0 || random.chance(0.1))) {
      now = Math.max(now, due[0].at);
      const next = due.filter(({ at }) => at <= now);
      for (const { id } of next.sort((one, other) => one.id - other.id)) taken.push({ fanOut: id });
      take({ type: "run.expire" });
    } else if (working.length > 0) {
      const token = random.pick(working);
      const key = `${token.node} ${pathOf(state, token.scope)}`;
      const attempt = attempts.get(key) ?? 0;
      attempts.set(key, attempt + 1);
      const outcome = outcomeOf(key, attempt);
      taken.push({ task: token.id });
      take({
        type: "node.ended",
        token: token.id,
        attempt: 1,
        outcome: "failure" in outcome ? { error: outcome.failure } : outcome,
      });
    } else break;
  }
  return { state, entries, taken };
}

function pathOf({ fanOuts }: RunState, scope: { fanOut: number; branch: number } | null): string {
  const fanOut = scope && fanOuts.get(scope.fanOut);
  if (!fanOut || scope === null) return "root";
  return fanOut.branches.length > 1 ? `${fanOut.path}.${fanOut.origin}.${scope.branch}` : fanOut.path;
}

type OutcomeOf = (key: string, attempt: number) => TaskOutcome;

/** Returns outcomes that depend on the node, its path and its attempt only. */
function outcomes(seed: number): OutcomeOf {
  const failing = seed % 3 === 0 ? 0.12 : 0;
  const likely = [0.2, 0.5, 0.8][seed % 3] ?? 0.5;
  return (key, attempt) => {
    const random = new Random(Number.parseInt(fingerprint(`${seed} ${key} ${attempt}`), 16));
    if (random.chance(failing)) return { failure: { code: "TASK_FAILED", message: "Failed." } };
    const flags = random.list(6, (at) => [`c${at}`, random.chance(likely)] as const);
    const items = random.list(random.int(0, 3), (at) => at);
    return { output: { ...Object.fromEntries(flags), items, v: random.pick<Json>([1, [1, 2], {}]) } };
  };
}

/** Runs the reference interpreter through the same steps. */
function reference(definition: WorkflowDefinition, outcomeOf: OutcomeOf, taken: readonly Taken[]) {
  const left = [...taken];
  const owners = new Map(
    definition.nodes.map(({ ref, task, workflow, agent }) => [ref, task ?? workflow ?? agent]),
  );
  return run(definition, INPUT, {
    taskOutcome: (node, path, attempt) => outcomeOf(`${node} ${path}`, attempt),
    pick(choices: readonly Choice[]) {
      // Nodes that run nothing are passed at once, in the order of their tokens.
      const passing = choices.findIndex((one) => one.kind === "task" && owners.get(one.node) === undefined);
      if (passing >= 0) return passing;
      for (let next = left.shift(); next !== undefined; next = left.shift()) {
        const { task, fanOut } = { task: -1, fanOut: -1, ...next };
        const at = choices.findIndex((one) =>
          one.kind === "task" ? one.token === task : one.fanOut === fanOut,
        );
        if (at >= 0) return at;
      }
      return 0;
    },
  });
}

describe("F1 F2 F3 F4 F5 F6 F7 F8 random sound workflows", () => {
  test(`${GRAPHS} run as the reference interpreter runs them, in any order`, () => {
    let compared = 0;
    const statuses = new Map<string, number>();
    for (let seed = 1; seed <= GRAPHS; seed++) {
      const definition = generate(new Random(seed));
      if (soundnessIssues(definition, () => null).length > 0) continue;
      const outcomeOf = outcomes(seed);
      const { state, taken } = ran(definition, new Random(seed).fork("order"), outcomeOf);
      const expected = reference(definition, outcomeOf, taken);
      const at = `seed ${seed}`;
      const { error } = expected;
      const status = error?.code === "RUN_TOO_LONG" ? "failed" : expected.status;
      expect({ status: state.status, error: state.error?.code }, at).toEqual({ status, error: error?.code });
      if (error?.code !== "RUN_TOO_LONG") {
        expect(state.made.tokens, at).toBe(expected.tokens);
        expect(state.state, at).toEqual(expected.state);
        if (status === "completed") expect(state.output, at).toEqual(expected.output);
      }
      expect([state.tokens.size, state.fanOuts.size, state.root.active], at).toEqual([0, 0, 0]);
      compared += 1;
      statuses.set(state.status, (statuses.get(state.status) ?? 0) + 1);
    }
    expect(compared).toBeGreaterThan(GRAPHS / 4);
    expect(statuses.get("completed")).toBeGreaterThan(GRAPHS / 10);
    expect(statuses.get("failed")).toBeGreaterThan(GRAPHS / 100);
  }, 120_000);
});
