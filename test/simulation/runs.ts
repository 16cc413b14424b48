/** Random runs of workflows under crashes: real store, real Executor, and the reference interpreter as the judge. */

import { z } from "zod";
import { defineLibrary } from "../../src/library/define/define.ts";
import { defineTask } from "../../src/library/define/define-task.ts";
import { ToolError } from "../../src/library/tools/tool-error.ts";
import { soundnessIssues } from "../../src/library/workflows/soundness/check.ts";
import type { Json } from "../../src/shared/json.ts";
import { fingerprint } from "../../src/shared/text.ts";
import { Random } from "../../src/testing/random.ts";
import { Crossings } from "../support/crossings.ts";
import { runWorkflow } from "../support/run-world.ts";
import { changedInputs, differences } from "../support/workflows/agreement.ts";
import { generate } from "../support/workflows/generate.ts";

/** The findings of one seed; `null` if its workflow is not sound. */
export interface SimulatedRun {
  violations: string[];
  status: string;
  lives: number;
  /** Tasks of unknown outcome. */
  unknown: number;
  retries: number;
  tokens: number;
}

/** The last point for the end of a life. */
const LAST_POINT = 600;

export async function simulateRun(seed: number): Promise<SimulatedRun | null> {
  const definition = generate(new Random(seed));
  if (soundnessIssues(definition, () => null).length > 0) return null;
  const random = new Random(seed).fork("run");
  const effect = random.pick(["pure", "idempotent", "once"] as const);
  const failing = random.pick([0, 0, 0.1]);
  const passing = random.pick([0, 0.2]);
  const likely = random.pick([0.2, 0.5, 0.8]);
  const ran = new Map<string, number>();
  // After the first failure of the run its cause is mended in most seeds.
  const mends = random.pick([0, 1, 3]);
  const failures = new Set<number>();
  let isMended = false;
  const task = defineTask({
    id: "task",
    input: z.looseObject({}),
    effect,
    timeoutMs: 60_000,
    ...(effect === "once" ? {} : { retry: { maxAttempts: 4, initialDelayMs: 50 } }),
    async execute(_, { operationId }) {
      const times = (ran.get(operationId) ?? 0) + 1;
      ran.set(operationId, times);
      const own = new Random(Number.parseInt(fingerprint(`${seed} ${operationId}`), 16));
      if (own.chance(failing) && !isMended) throw new ToolError("It fails.");
      if (own.chance(passing) && times === 1) throw new Error("It breaks, once.");
      const flags = own.list(6, (at) => [`c${at}`, own.chance(likely)] as const);
      const items = own.list(own.int(0, 3), (at) => at);
      return { ...Object.fromEntries(flags), items, v: own.pick<Json>([1, [1, 2], {}]) };
    },
  });
  const retry = effect === "once" ? {} : { retry: { maxAttempts: 4, backoffMs: 50 } };
  const pinned = { library: "lib", id: "task", effect, timeoutMs: 60_000, ...retry };
  const tasks = Object.fromEntries(
    definition.nodes.flatMap(({ ref, task: own }) => (own === undefined ? [] : [[ref, pinned] as const])),
  );
  const points = random
    .list(random.int(0, 4), () => random.int(0, LAST_POINT))
    .sort((one, other) => one - other);
  const { state, entries, lives } = await runWorkflow(
    defineLibrary("lib", { tasks: [task] }),
    {
      ...{
        id: "run_01",
        tenant: "local",
        projectId: "default",
        stem: "01ARZ3NDEKTSV4RRFFQ",
        startedBy: "ada",
      },
      workflow: { library: "lib", id: "w", version: 1, hash: "", definition, tasks, workflows: {} },
      input: { a: "a" },
      request: "",
    },
    new Crossings(points),
    ({ seq }) => {
      // A crash may ask twice about one failure.
      failures.add(seq);
      isMended = mends > 0;
      return failures.size <= mends;
    },
  );
  const violations = [...differences(state, entries), ...changedInputs(entries)];
  const retries = entries.filter(({ type }) => type === "workflow.retried").length;
  if (effect === "once")
    for (const [id, times] of ran) if (times > 1) violations.push(`"${id}" ran ${times} times.`);
  const unknown = entries.filter(
    ({ type, data }) => type === "task.failed" && JSON.stringify(data).includes("OUTCOME_UNKNOWN"),
  ).length;
  return { violations, status: state.status, lives, unknown, retries, tokens: state.made.tokens };
}
