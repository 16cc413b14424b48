/**
 * The case `hooks`: the cost of a context hook in a turn. In every round each variant runs one batch, in rotating order, so that other load on
 * the machine affects all variants equally.
 *
 * BENCH-4  Every answer is checked: its request came from the hook and had the whole history.
 */
import { availableParallelism, loadavg } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { buildBundle } from "../harness/bundle.ts";
import { Client } from "../harness/client.ts";
import { BENCH_DIR } from "../harness/paths.ts";
import { type ResultRow, summarise } from "../harness/results.ts";
import { serve } from "../harness/workerd.ts";
import { TEXT, VARIANTS, type Variant } from "./workload.ts";

const CASE = "hooks";
const WARM_UP_ROUNDS = 3;
const ROUNDS = 21;
/** Timed turns of a batch, after the untimed turns. The window holds all of them. */
const TURNS = 10;
const UNTIMED_TURNS = 2;
/** Time for the background work of a batch before the next batch. */
const SETTLE_MS = 50;

const ADDED = "added by the workflow";
/** Limit of the time that a workflow of one task adds to a turn. */
const MAX_ADDED_MS = 25;

/** Builds and serves the Worker, and runs the case. */
export async function runHooks(directory: string): Promise<ResultRow[]> {
  const config = join(BENCH_DIR, CASE, "wrangler.jsonc");
  const server = await serve(await buildBundle(join(directory, "bundle"), config), directory);
  const client = new Client(server.port);
  try {
    await client.post("/prepare", "");
    return await measure(client);
  } finally {
    client.close();
    await server.stop();
  }
}

async function measure(client: Client): Promise<ResultRow[]> {
  const samples = new Map<Variant, number[]>(VARIANTS.map((variant) => [variant, []]));
  const runs: number[] = [];
  let actors = 0;
  for (let round = -WARM_UP_ROUNDS; round < ROUNDS; round += 1) {
    const first = (round + WARM_UP_ROUNDS) % VARIANTS.length;
    for (const variant of [...VARIANTS.slice(first), ...VARIANTS.slice(0, first)]) {
      actors += 1;
      const time = await batch(client, variant, actors);
      if (round >= 0) samples.get(variant)?.push(time);
      await pause(SETTLE_MS);
    }
    const time = await runTime(client);
    if (round >= 0) runs.push(time);
    process.stdout.write(round < 0 ? "warm-up " : `${round + 1} `);
  }
  const [load = 0] = loadavg();
  process.stdout.write(`\nload average ${load.toFixed(1)} on ${availableParallelism()} cores\n`);
  const timesOf = (variant: Variant) => samples.get(variant) ?? [];
  const added = (variant: Variant) =>
    timesOf(variant).map((time, round) => time - (timesOf("none")[round] ?? Number.NaN));
  return [
    row("turn without a hook", timesOf("none")),
    row("turn with a task", timesOf("task")),
    row("turn with a workflow", timesOf("workflow")),
    row("run of the workflow by itself", runs),
    row("added by the task", added("task")),
    row(ADDED, added("workflow")),
  ];
}

/** Returns the milliseconds of a turn in a new conversation. */
async function batch(client: Client, variant: Variant, actor: number): Promise<number> {
  let begin = 0;
  for (let done = 0; done < UNTIMED_TURNS + TURNS; done += 1) {
    if (done === UNTIMED_TURNS) begin = performance.now();
    const answer = await client.post(`/${variant}/${actor}${done === 0 ? "?first" : ""}`, TEXT);
    const expected = `(${2 * done + 2} messages, seed ${variant === "none" ? 0 : 1}).`;
    if (!answer.endsWith(expected)) throw new Error(`${variant}: expected ${expected}, got ${answer}`);
  }
  return (performance.now() - begin) / TURNS;
}

/** Returns the milliseconds of a run without a turn. */
async function runTime(client: Client): Promise<number> {
  const begin = performance.now();
  for (let run = 0; run < TURNS; run += 1) {
    const status = await client.post("/run", TEXT);
    if (status !== "completed") throw new Error(`A run is ${status}.`);
  }
  return (performance.now() - begin) / TURNS;
}

function row(metric: string, samples: number[]): ResultRow {
  return summarise({ case: CASE, system: "dramatis", metric, unit: "ms" }, samples);
}

/** Fails if a workflow adds too much to a turn. */
export function hooksVerdict(rows: readonly ResultRow[]): string[] {
  const added = rows.find(({ metric }) => metric === ADDED)?.median ?? Number.NaN;
  const holds = added <= MAX_ADDED_MS;
  if (!holds) process.exitCode = 1;
  return [`${holds ? "passed" : "FAILED"}  ${ADDED}: ${added} ms a turn; the limit is ${MAX_ADDED_MS} ms.`];
}
