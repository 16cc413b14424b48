/**
 * The case `fanout`: the time of a run of a workflow, from its start to its end, in each system. In every round each system runs one
 * sample of each metric, in rotating order, so that other load on the machine affects all systems equally.
 *
 * BENCH-3  Every output is checked: each task ran, and the merge has the results in order.
 */
import { mkdir } from "node:fs/promises";
import { availableParallelism, loadavg } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { serveMastra } from "../delegation/mastra/process.ts";
import { buildBundle } from "../harness/bundle.ts";
import { Client } from "../harness/client.ts";
import { ensureInstalled } from "../harness/install.ts";
import { serveNode } from "../harness/node-server.ts";
import { BENCH_DIR } from "../harness/paths.ts";
import { type ResultRow, summarise } from "../harness/results.ts";
import { serve } from "../harness/workerd.ts";
import type { RunCost } from "./protocol.ts";
import { serveWorkflows } from "./workflows/serve.ts";
import {
  expected,
  isFloor,
  METRICS,
  type Metric,
  next,
  PEERS,
  SERVED,
  type Served,
  SYSTEMS,
  type SystemName,
} from "./workload.ts";

const CASE = "fanout";
const LANGGRAPH = join(BENCH_DIR, CASE, "langgraph/server.ts");
const WARM_UP_ROUNDS = 3;
const ROUNDS = 11;
/** Time for the background work of a system before the next sample. */
const SETTLE_MS = 50;

/** Limit of the time of a fan-out of 100 and its fan-in, without the tasks. */
const MAX_OWN_MS = 20;
const JUDGED = "fan-out-100";
/** Maximum number of branches within the token limit of one run. */
const MAX_COUNTED_NODES = 5_001;
const OWN = `${JUDGED} without the tasks`;

interface Peer {
  port: number;
  stop(): Promise<void>;
}

/** Installs, builds and serves all systems, and runs the case. */
export async function runFanout(directory: string): Promise<ResultRow[]> {
  await ensureInstalled();
  const peers = new Map<Served, Peer>();
  try {
    for (const system of SERVED) {
      const own = join(directory, system);
      await mkdir(own, { recursive: true });
      peers.set(system, await started(system, own));
    }
    return await measure(new Map([...peers].map(([system, { port }]) => [system, new Client(port)])));
  } finally {
    await Promise.all([...peers.values()].map((peer) => peer.stop()));
  }
}

async function started(system: Served, directory: string): Promise<Peer> {
  const file = join(directory, "runs.db");
  switch (system) {
    case "dramatis": {
      const config = join(BENCH_DIR, CASE, "wrangler.jsonc");
      return serve(await buildBundle(join(directory, "bundle"), config), directory);
    }
    case "langgraph":
      return serveNode(LANGGRAPH, [file, "FULL"]);
    case "langgraph-default":
      return serveNode(LANGGRAPH, [file, "NORMAL"]);
    case "mastra":
      return serveMastra("workflows.ts", [file]);
    case "cloudflare-workflows":
      return serveWorkflows(directory);
    default:
      return system satisfies never;
  }
}

async function measure(clients: ReadonlyMap<Served, Client>): Promise<ResultRow[]> {
  // The Worker of Dramatis serves the floors, too.
  const post = async (system: SystemName, door: string, { graph, input }: Metric) => {
    const [server, path] = isFloor(system)
      ? (["dramatis", door === "run" ? system : door] as const)
      : [system, door];
    return (await clients.get(server)?.post(`/${path}/${graph}`, JSON.stringify(input))) ?? "";
  };
  const samples = new Map<string, number[]>();
  for (let round = -WARM_UP_ROUNDS; round < ROUNDS; round += 1) {
    for (const metric of METRICS) {
      for (const system of rotated(metric.systems, round + WARM_UP_ROUNDS)) {
        const none = await timed(() => post(system, "none", metric));
        let time = 0;
        for (let n = 0; n < metric.runs; n += 1) {
          time += await timed(async () => check(system, metric, await post(system, "run", metric)));
        }
        if (round >= 0) {
          push(samples, `${metric.name} ${system}`, time / metric.runs);
          if (metric.name === JUDGED) push(samples, `none ${system}`, none);
        }
        await pause(SETTLE_MS);
      }
    }
    process.stdout.write(round < 0 ? "warm-up " : `${round + 1} `);
  }
  const [load = 0] = loadavg();
  process.stdout.write(`\nload average ${load.toFixed(1)} on ${availableParallelism()} cores\n`);
  const rows = METRICS.flatMap((metric) =>
    metric.systems.map((system) =>
      row(system, metric.name, "ms", samples.get(`${metric.name} ${system}`) ?? []),
    ),
  );
  rows.push(
    ...SYSTEMS.map((system) =>
      row(system, "request without a run", "ms", samples.get(`none ${system}`) ?? []),
    ),
  );
  const tasks = taskTime(100);
  rows.push(
    ...SYSTEMS.map((system) =>
      row(
        system,
        OWN,
        "ms",
        (samples.get(`${JUDGED} ${system}`) ?? []).map((time) => time - tasks),
      ),
    ),
  );
  for (const system of SYSTEMS) {
    const single = samples.get(`single ${system}`) ?? [];
    const more = (samples.get(`${JUDGED} ${system}`) ?? []).map(
      (time, n) => time - (single[n] ?? Number.NaN),
    );
    rows.push(row(system, `${JUDGED} beyond single`, "ms", more));
  }
  for (const metric of METRICS) {
    const times = samples.get(`${metric.name} dramatis`) ?? [];
    if (metric.graph === "fan-out") {
      const each = times.map((time) => time / (metric.nodes - 2));
      rows.push(row("dramatis", `${metric.name} per branch`, "ms", each));
    }
  }
  for (const metric of METRICS) {
    // The count needs one run, and larger fan-outs do not fit into one run.
    if (metric.nodes > MAX_COUNTED_NODES) continue;
    // SAFETY: the Worker's own answer.
    const cost = JSON.parse(await post("dramatis", "cost", metric)) as RunCost;
    for (const [name, count] of Object.entries(cost))
      rows.push(row("dramatis", `${metric.name} ${name} per node`, "count", [Number(count) / metric.nodes]));
  }
  for (const client of clients.values()) client.close();
  return rows;
}

/** Reports the metrics with another system ahead, and fails if a fan-out of 100 takes too long. */
export function fanoutVerdict(rows: readonly ResultRow[]): string[] {
  const medianOf = (system: SystemName, metric: string) =>
    rows.find((row) => row.system === system && row.metric === metric)?.median ?? Number.NaN;
  const [own, theirs] = [medianOf("dramatis", OWN), medianOf("langgraph", OWN)];
  const findings = [
    verdictOf(own <= MAX_OWN_MS, `${OWN}: ${own} ms; the limit is ${MAX_OWN_MS} ms.`),
    verdictOf(own < theirs, `${OWN}: ${own} ms; LangGraph takes ${theirs} ms.`),
  ];
  const shared = METRICS.filter(({ systems }) => systems.length > 1);
  for (const peer of PEERS) {
    const behind = shared.filter(({ name }) => medianOf(peer, name) <= medianOf("dramatis", name));
    const where = behind.map(({ name }) => name).join(", ");
    findings.push(
      behind.length === 0 ? `ahead of ${peer} in every row` : `NOT ahead of ${peer} in: ${where}`,
    );
  }
  return findings;
}

function verdictOf(holds: boolean, finding: string): string {
  if (!holds) process.exitCode = 1;
  return `${holds ? "passed" : "FAILED"}  ${finding}`;
}

/** Returns the time of this number of direct calls of the task, in milliseconds. */
function taskTime(count: number): number {
  const repeats = 1_000;
  let sum = 0;
  const begin = performance.now();
  for (let n = 0; n < count * repeats; n += 1) sum += next(n);
  const time = (performance.now() - begin) / repeats;
  if (sum === 0) throw new Error("The tasks did not run.");
  return time;
}

function check(system: SystemName, metric: Metric, output: string): void {
  if (output === JSON.stringify(expected(metric))) return;
  throw new Error(`${system}: a run of ${metric.name} gave ${output.slice(0, 500)}`);
}

async function timed(body: () => Promise<unknown>): Promise<number> {
  const begin = performance.now();
  await body();
  return performance.now() - begin;
}

function row(system: SystemName, metric: string, unit: ResultRow["unit"], samples: number[]): ResultRow {
  return summarise({ case: CASE, system, metric, unit }, samples);
}

function rotated<Item>(items: readonly Item[], by: number): Item[] {
  const start = by % items.length;
  return [...items.slice(start), ...items.slice(0, start)];
}

function push(samples: Map<string, number[]>, name: string, value: number): void {
  samples.set(name, [...(samples.get(name) ?? []), value]);
}
