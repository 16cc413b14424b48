/** A worker thread of `npm run simulate`. It processes one job at a time. */
import { parentPort } from "node:worker_threads";
import { generatePlan } from "./generate.ts";
import type { Plan } from "./plan.ts";
import { type Batch, reportOf, shrinkTrial, tryPlan, trySeeds } from "./simulate.ts";

export type Job =
  | { type: "seeds"; from: number; count: number }
  /** Time to shrink a failing plan; 0 leaves it unchanged. */
  | { type: "explain"; plan: Plan | number; milliseconds: number };

export type Answer =
  | { type: "seeds"; batch: Batch }
  | { type: "explain"; failed: boolean; text: string; plan: Plan };

async function perform(job: Job): Promise<Answer> {
  if (job.type === "seeds") return { type: "seeds", batch: await trySeeds(job.from, job.count) };
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
