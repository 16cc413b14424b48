/** A worker thread of `npm run simulate`. It processes one job at a time. */
import { parentPort } from "node:worker_threads";
import { simulateFlows } from "./flows/run.ts";
import { generatePlan } from "./generate.ts";
import { simulateMemory } from "./memory.ts";
import type { Plan } from "./plan.ts";
import { simulateFaultyRun } from "./run-faults/run.ts";
import { simulateRun } from "./runs.ts";
import { type Batch, reportOf, shrinkTrial, tryPlan, trySeeds } from "./simulate.ts";
import { simulateTree } from "./trees/run.ts";
import { simulateTrigger } from "./triggers.ts";

/** The simulations beside the simulation of conversations. */
export type Others = "trees" | "memory" | "runs" | "flows" | "triggers";

export type Job =
  | { type: "seeds"; from: number; count: number }
  | { type: Others; from: number; count: number }
  /** Time to shrink a failing plan; 0 leaves it unchanged. */
  | { type: "explain"; plan: Plan | number; milliseconds: number };

export type Answer =
  | { type: "seeds"; batch: Batch }
  | { type: Others; failures: { seed: number; violations: string[] }[] }
  | { type: "explain"; failed: boolean; text: string; plan: Plan };

const OTHERS: Readonly<Record<Others, (seed: number) => Promise<string[]>>> = {
  trees: simulateTree,
  flows: (seed) => simulateFlows(seed),
  triggers: async (seed) => (await simulateTrigger(seed)).violations,
  memory: async (seed) => (await simulateMemory(seed)).violations,
  /** A run with gates, and a run that is retried. */
  runs: async (seed) =>
    [await simulateFaultyRun(seed), await simulateRun(seed)].flatMap((found) => found?.violations ?? []),
};

async function perform(job: Job): Promise<Answer> {
  if (job.type === "seeds") return { type: "seeds", batch: await trySeeds(job.from, job.count) };
  if (job.type !== "explain") {
    const failures = [];
    for (let seed = job.from; seed < job.from + job.count; seed++) {
      const violations = await OTHERS[job.type](seed);
      if (violations.length > 0) failures.push({ seed, violations });
    }
    return { type: job.type, failures };
  }
  const trial = await tryPlan(typeof job.plan === "number" ? generatePlan(job.plan) : job.plan);
  const failed = trial.violations.length > 0;
  if (!failed || job.milliseconds === 0)
    return { type: "explain", failed, text: reportOf(trial), plan: trial.plan };
  const { plan, tried, minimal } = await shrinkTrial(trial, undefined, job.milliseconds);
  const smallest = await tryPlan(plan);
  const made = `Shrunk in ${tried} tries${minimal ? "; no step makes it smaller" : ", until time ran out"}.`;
  return { type: "explain", failed, text: `${reportOf(smallest)}\n${made}`, plan };
}

parentPort?.on("message", async (job: Job) => parentPort?.postMessage(await perform(job)));
