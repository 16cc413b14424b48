/** Fan-outs that are spread over runs of their own. `PART_SEEDS` sets how many random workflows are tried. */
import { describe, expect, test } from "vitest";
import type { RunRecord } from "../../src/agents/coordinator/core/record.ts";
import type { RunState } from "../../src/agents/coordinator/core/state.ts";
import { workflowSchema } from "../../src/library/workflows/schema.ts";
import { soundnessIssues } from "../../src/library/workflows/soundness/check.ts";
import type { WorkflowDefinition } from "../../src/protocol/workflow-definition.ts";
import { canonicalJson, type Json, type JsonObject } from "../../src/shared/json.ts";
import { fingerprint } from "../../src/shared/text.ts";
import { Random } from "../simulation/random.ts";
import { generate } from "../support/workflows/generate.ts";
import { run } from "../support/workflows/interpreter.ts";
import type { TaskOutcome } from "../support/workflows/run.ts";
import { PlayedTree, type TreeOptions } from "../support/workflows/tree.ts";

const SEEDS = Number(process.env.PART_SEEDS ?? 150);
const PINNED = { library: "lib", id: "task", effect: "pure", timeoutMs: 60_000 } as const;

function recordOf(
  definition: WorkflowDefinition,
  input: JsonObject,
  width: number,
): Omit<RunRecord, "createdAt"> {
  const refs = definition.nodes.flatMap(({ ref, task }) => (task === undefined ? [] : [ref]));
  const tasks = Object.fromEntries(refs.map((ref) => [ref, PINNED]));
  return {
    ...{ id: "run_01", tenant: "local", projectId: "default", stem: "01ARZ3NDEKTSV4RRFFQ" },
    workflow: { library: "lib", id: "w", version: 1, hash: "", definition, tasks, workflows: {} },
    ...{ input, startedBy: "ada", request: "", width },
  };
}

/** Returns what a run has come to, as text. */
const fateOf = (fate: {
  status: string;
  state: Json;
  output?: JsonObject;
  error?: { code: string } | null;
}): string =>
  canonicalJson({
    status: fate.status,
    ...(fate.status === "completed"
      ? { state: fate.state, output: fate.output ?? {} }
      : { code: fate.error?.code ?? "" }),
  });

/** Outcomes that depend on the place only, so that the order of steps changes none of them. */
const outcomeOf =
  (seed: number, failing: number): TreeOptions["outcome"] =>
  (node, path, attempt) => {
    const own = new Random(Number.parseInt(fingerprint(`${seed} ${node} ${path} ${attempt}`), 16));
    if (own.chance(failing)) return { failure: { code: "FAILED", message: "It fails." } };
    const flags = own.list(6, (at) => [`c${at}`, own.chance(0.5)] as const);
    const items = own.list(own.int(0, 5), (at) => at);
    return { output: { ...Object.fromEntries(flags), items, v: own.pick<Json>([1, [1, 2], {}]) } };
  };

test("PARTS-1 OWNPART-1 OWNPART-2 RUNSTORE-3 a spread run ends as the reference interpreter may end, for every width, whatever dies meanwhile", async () => {
  const failing: object[] = [];
  const seen = { spread: 0, runs: 0, completed: 0, failed: 0 };
  for (let seed = 1; seed <= SEEDS; seed++) {
    const made = generate(new Random(seed));
    if (soundnessIssues(made, () => null).length > 0) continue;
    // Time passes in a test of its own.
    const definition: WorkflowDefinition = structuredClone(made);
    for (const { synchronization } of definition.transitions) delete synchronization?.timeoutMs;
    const random = new Random(seed).fork("parts");
    const outcome = outcomeOf(seed, random.pick([0, 0, 0.15]));
    const input = { a: "a" };
    const possible = new Set<string>();
    for (let order = 0; order < 60; order++) {
      const picks = random.fork(`order ${order}`);
      const taskOutcome = (node: string, path: string, attempt: number): TaskOutcome =>
        outcome(node, path, attempt);
      const pick = (choices: readonly unknown[]) => picks.int(0, choices.length - 1);
      possible.add(fateOf(run(definition, input, { taskOutcome, pick })));
    }
    for (const width of [1, 2, 3, 1_000]) {
      const tree = new PlayedTree({
        record: recordOf(definition, input, width),
        ...{ outcome, random: random.fork(`width ${width}`), deaths: 0.05 },
      });
      await tree.finish();
      const fate = fateOf(tree.root);
      if (!possible.has(fate) && tree.root.error?.code !== "RECOVERY_EXHAUSTED")
        failing.push({ seed, width, fate, possible: [...possible].slice(0, 3) });
      const open = [...tree.runs.values()].filter(({ state }) => state.tokens.size + state.fanOuts.size > 0);
      if (open.length > 0) failing.push({ seed, width, open: open.length });
      if (tree.runs.size > 1) seen.spread += 1;
      seen.runs += tree.runs.size - 1;
      if (tree.root.status === "completed") seen.completed += 1;
      else seen.failed += 1;
    }
  }
  if (process.env.PART_SEEDS !== undefined) console.log(seen);
  expect(failing).toEqual([]);
  expect(seen.spread).toBeGreaterThan(SEEDS / 10);
  expect(seen.runs).toBeGreaterThan(seen.spread);
  expect(seen.failed).toBeGreaterThan(0);
}, 300_000);
