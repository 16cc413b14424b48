/** The decisions of runs, beside the reference interpreter. */
import { describe, expect, test } from "vitest";
import { timeOutAt } from "../../src/agents/coordinator/core/fan-in.ts";
import { graphOf } from "../../src/agents/coordinator/core/graph.ts";
import { newRun, plan } from "../../src/agents/coordinator/core/plan.ts";
import type { RunSignal } from "../../src/agents/coordinator/core/signals.ts";
import { isOver, type RunState } from "../../src/agents/coordinator/core/state.ts";
import { soundnessIssues } from "../../src/library/workflows/soundness/check.ts";
import type { WorkflowDefinition } from "../../src/protocol/workflow-definition.ts";
import type { RunEntry } from "../../src/protocol/workflow-run.ts";
import type { Json } from "../../src/shared/json.ts";
import { fingerprint } from "../../src/shared/text.ts";
import { Random } from "../../src/testing/random.ts";
import { differences } from "../support/workflows/agreement.ts";
import { generate } from "../support/workflows/generate.ts";
import type { TaskOutcome } from "../support/workflows/run.ts";

const GRAPHS = 1_500;
const INPUT = { a: "a" };

interface Ran {
  state: RunState;
  entries: RunEntry[];
}

function startedRun(definition: WorkflowDefinition): RunState {
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
  let state = startedRun(definition);
  const entries: RunEntry[] = [];
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
      take({ type: "run.expire" });
    } else if (working.length > 0) {
      const token = random.pick(working);
      const key = `${token.node} ${pathOf(state, token.scope)}`;
      const attempt = attempts.get(key) ?? 0;
      attempts.set(key, attempt + 1);
      const outcome = outcomeOf(key, attempt);
      take({
        type: "node.ended",
        token: token.id,
        attempt: 1,
        outcome: "failure" in outcome ? { error: outcome.failure } : outcome,
      });
    } else break;
  }
  return { state, entries };
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

describe("F1 F2 F3 F4 F5 F6 F7 F8 random sound workflows", () => {
  test(`${GRAPHS} run as the reference interpreter runs them, in any order`, () => {
    let compared = 0;
    const statuses = new Map<string, number>();
    for (let seed = 1; seed <= GRAPHS; seed++) {
      const definition = generate(new Random(seed));
      if (soundnessIssues(definition, () => null).length > 0) continue;
      const { state, entries } = ran(definition, new Random(seed).fork("order"), outcomes(seed));
      expect(differences(state, entries), `seed ${seed}`).toEqual([]);
      compared += 1;
      statuses.set(state.status, (statuses.get(state.status) ?? 0) + 1);
    }
    expect(compared).toBeGreaterThan(GRAPHS / 4);
    expect(statuses.get("completed")).toBeGreaterThan(GRAPHS / 10);
    expect(statuses.get("failed")).toBeGreaterThan(GRAPHS / 100);
  }, 120_000);
});
