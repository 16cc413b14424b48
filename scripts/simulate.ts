/**
 * `npm run simulate -- --seeds N [--from S]`: simulates conversations under seeded faults. Exits with 1 if a seed fails, and
 * prints the smallest plan with the same failure. `--plan FILE` runs a plan again. Other subjects: `--trees` (trees of calls of
 * agents), `--memory` (the memory of an agent), `--runs` (runs of workflows), `--flows` (turns that call workflows), and
 * `--triggers`.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Worker } from "node:worker_threads";
import { rolldown } from "rolldown";
import type { Answer, Job, Others } from "../test/simulation/worker.ts";
import { Failure } from "./failure.ts";

const ROOT = join(import.meta.dirname, "..");
const BATCH = 50;
/** Time to shrink one failing plan, in milliseconds. */
const SHRINK_MS = 60_000;
/** Maximum number of failing seeds to shrink and print. */
const MAX_SHOWN = 3;
/** Each fault must occur at least once per this many seeds, on average. */
const SEEDS_PER_FAULT = 1_000;
/** Ports with planned faults, by the label of their printed line. */
const AIMS = {
  "Requests of tools": "tool.request",
  "Reports of tools": "tool.report",
  "Late results of tools": "tool.result",
  Approvals: "approval",
};

async function bundle(directory: string): Promise<string> {
  const file = join(directory, "worker.mjs");
  const build = await rolldown({ input: join(ROOT, "test/simulation/worker.ts"), platform: "node" });
  await build.write({ file, format: "esm", codeSplitting: false });
  await build.close();
  return file;
}

/** A pool of threads that run one job at a time. */
class Pool {
  readonly #workers: Worker[];

  constructor(file: string, size: number) {
    this.#workers = Array.from({ length: size }, () => new Worker(file));
  }

  /** Runs every job on the next free thread. */
  async run(jobs: Job[], onAnswer: (answer: Answer) => void): Promise<void> {
    const waiting = [...jobs];
    await Promise.all(
      this.#workers.map(async (worker) => {
        for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) {
          onAnswer(await ask(worker, job));
        }
      }),
    );
  }

  async end(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.terminate()));
  }
}

function ask(worker: Worker, job: Job): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  worker.once("message", resolve);
  worker.once("error", reject);
  worker.postMessage(job);
  return promise.finally(() => {
    worker.off("message", resolve);
    worker.off("error", reject);
  });
}

async function simulateSeeds(pool: Pool, from: number, seeds: number): Promise<boolean> {
  const table = new Map<string, { planned: number; fired: number }>();
  const failing: { seed: number; what: string }[] = [];
  const sums = {
    turns: 0,
    failedTurns: 0,
    lives: 0,
    summaries: 0,
    titles: 0,
    replayed: 0,
    forks: 0,
    erased: 0,
  };
  const partial: Record<string, number> = {};
  const started = performance.now();
  const jobs: Job[] = [];
  for (let seed = from; seed < from + seeds; seed += BATCH) {
    jobs.push({ type: "seeds", from: seed, count: Math.min(BATCH, from + seeds - seed) });
  }
  let done = 0;
  await pool.run(jobs, (answer) => {
    if (answer.type !== "seeds") return;
    const { batch } = answer;
    done += BATCH;
    for (const [name, { planned, fired }] of batch.table) {
      const row = table.get(name) ?? { planned: 0, fired: 0 };
      table.set(name, { planned: row.planned + planned, fired: row.fired + fired });
    }
    sums.turns += batch.turns;
    sums.failedTurns += batch.failedTurns;
    sums.lives += batch.lives;
    sums.summaries += batch.summaries;
    sums.titles += batch.titles;
    sums.replayed += batch.replayed;
    sums.forks += batch.forks;
    sums.erased += batch.erased;
    for (const [reason, count] of Object.entries(batch.partial))
      partial[reason] = (partial[reason] ?? 0) + count;
    for (const { seed, violations } of batch.failures) {
      failing.push({ seed, what: violations[0]?.property ?? "" });
      console.log(`Seed ${seed} fails: ${violations[0]?.property}: ${violations[0]?.detail}`);
    }
    if (done % 1_000 === 0)
      console.log(`${done} seeds in ${Math.round((performance.now() - started) / 1_000)} s`);
  });
  const seconds = (performance.now() - started) / 1_000;
  console.log("\nfault                           planned    fired");
  for (const [name, { planned, fired }] of [...table].sort()) {
    console.log(`${name.padEnd(30)} ${String(planned).padStart(8)} ${String(fired).padStart(8)}`);
  }
  for (const [what, pattern] of Object.entries(AIMS)) {
    const rows = [...table].filter(([name]) => name.endsWith(` at ${pattern}`)).map(([, row]) => row);
    const sum = (key: "planned" | "fired") => rows.reduce((total, row) => total + row[key], 0);
    console.log(
      `${what}: ${Math.round((100 * sum("fired")) / Math.max(1, sum("planned")))} % of the faults took effect.`,
    );
  }
  const least = Math.floor(seeds / SEEDS_PER_FAULT);
  const missing = [...table].filter(([, { fired }]) => fired < least).map(([name]) => name);
  if (missing.length > 0)
    console.log(`\nThese faults occurred fewer than ${least} times: ${missing.join(", ")}.`);
  console.log(
    `\n${seeds} seeds from ${from}: ${failing.length} failed. ${sums.turns} turns (${sums.failedTurns} failed as planned), ` +
      `${sums.lives} actor instances, ${sums.summaries} summaries, ${sums.titles} titles, ${sums.replayed} replayed turns, ${sums.forks} forks, ${sums.erased} erasures, ${seconds.toFixed(1)} s.`,
  );
  for (const [reason, count] of Object.entries(partial))
    console.log(`Replays took ${count} entries as recorded: ${reason}`);
  const shown = failing.sort((one, other) => one.seed - other.seed).slice(0, MAX_SHOWN);
  await pool.run(
    shown.map(({ seed }) => ({ type: "explain", plan: seed, milliseconds: SHRINK_MS })),
    (answer) => {
      if (answer.type === "explain") console.log(`\n${answer.text}`);
    },
  );
  return failing.length === 0 && missing.length === 0;
}

/** Simulates trees of calls, memories, runs, flows or triggers. Returns `true` if no seed failed. */
async function simulateOthers(pool: Pool, type: Others, from: number, seeds: number): Promise<boolean> {
  const started = performance.now();
  let failed = 0;
  const jobs: Job[] = [];
  for (let seed = from; seed < from + seeds; seed += BATCH)
    jobs.push({ type, from: seed, count: Math.min(BATCH, from + seeds - seed) });
  await pool.run(jobs, (answer) => {
    if (answer.type !== type) return;
    failed += answer.failures.length;
    for (const { seed, violations } of answer.failures) console.log(`Seed ${seed} fails: ${violations[0]}`);
  });
  const seconds = (performance.now() - started) / 1_000;
  const what = type === "memory" ? "memories" : type;
  console.log(`${seeds} ${what} from seed ${from}: ${failed} failed, ${seconds.toFixed(1)} s.`);
  return failed === 0;
}

function readPlan(file: string) {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (cause) {
    throw new Failure(`The plan could not be read: ${cause instanceof Error ? cause.message : cause}`);
  }
}

async function simulatePlan(pool: Pool, file: string, milliseconds: number): Promise<boolean> {
  const content = readPlan(file);
  let isClean = true;
  await pool.run([{ type: "explain", plan: content.plan ?? content, milliseconds }], (answer) => {
    if (answer.type !== "explain") return;
    console.log(answer.text);
    isClean = !answer.failed;
  });
  return isClean;
}

const USAGE =
  "Usage: npm run simulate -- [--seeds N] [--from SEED] [--workers N] [--trees | --memory | --runs | --flows | --triggers] [--plan FILE [--shrink]]";

function readOptions() {
  const values = parseOptions();
  const count = (name: "seeds" | "from" | "workers"): number => {
    const value = values[name];
    if (!/^[1-9]\d{0,8}$/.test(value)) {
      throw new Failure(`--${name} must be a whole number from 1, not "${value}".\n${USAGE}`);
    }
    return Number(value);
  };
  return { ...values, seeds: count("seeds"), from: count("from"), workers: count("workers") };
}

function parseOptions() {
  try {
    return parseArgs({
      options: {
        seeds: { type: "string", default: "1000" },
        from: { type: "string", default: "1" },
        workers: { type: "string", default: String(Math.min(2, availableParallelism())) },
        plan: { type: "string" },
        trees: { type: "boolean", default: false },
        memory: { type: "boolean", default: false },
        runs: { type: "boolean", default: false },
        flows: { type: "boolean", default: false },
        triggers: { type: "boolean", default: false },
        shrink: { type: "boolean", default: false },
      },
    }).values;
  } catch (cause) {
    throw new Failure(cause instanceof Error ? `${cause.message}\n${USAGE}` : USAGE);
  }
}

/** Returns `true` if no seed or plan failed. */
async function main(): Promise<boolean> {
  const { seeds, from, workers, plan, shrink, ...options } = readOptions();
  const others = (["trees", "memory", "runs", "flows", "triggers"] as const).find((type) => options[type]);
  const directory = mkdtempSync(join(tmpdir(), "dramatis-simulation-"));
  try {
    const pool = new Pool(await bundle(directory), plan === undefined ? workers : 1);
    try {
      if (others !== undefined) return await simulateOthers(pool, others, from, seeds);
      return await (plan === undefined
        ? simulateSeeds(pool, from, seeds)
        : simulatePlan(pool, plan, shrink ? SHRINK_MS : 0));
    } finally {
      await pool.end();
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

try {
  process.exitCode = (await main()) ? 0 : 1;
} catch (error) {
  console.error(error instanceof Failure ? error.message : error);
  process.exitCode = 1;
}
