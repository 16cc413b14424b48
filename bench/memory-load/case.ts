/**
 * The case `memory-load`: searches and writes of memories at different sizes, beside LangGraph's store and Mastra's memory. Also turns with
 * and without memory, in agents with many conversations.
 *
 * BENCH-MEM-1  Every search must have a result. Dramatis must use vectors. A row has the share of questions with their memory among the
 *              first ten results.
 */
import { mkdir } from "node:fs/promises";
import { availableParallelism, loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createClient } from "../../src/client/index.ts";
import { serveMastra } from "../delegation/mastra/process.ts";
import { buildBundle } from "../harness/bundle.ts";
import { Client } from "../harness/client.ts";
import { ensureInstalled } from "../harness/install.ts";
import { serveNode } from "../harness/node-server.ts";
import { BENCH_DIR } from "../harness/paths.ts";
import { rssOf } from "../harness/process-figures.ts";
import { type ResultRow, summarise } from "../harness/results.ts";
import { type ServeOptions, type Server, serve } from "../harness/workerd.ts";
import { AGENTS } from "./protocol.ts";
import { Store } from "./store.ts";
import { talking } from "./talking.ts";
import { FILES, type Sample, samples } from "./workload.ts";

const CASE = "memory-load";
const SEARCHES = 200;
const COMPARED_SEARCHES = 40;
/** Untimed searches of each agent. */
const WARM_UP = 10;
const MB = 1024 * 1024;

type Row = (system: string, metric: string, unit: ResultRow["unit"], samples: number[]) => void;

/** Options: `--memories` (of the largest agent), `--conversations` and `--seconds` (of the part `talking`), `--part` (runs only this part). */
export async function runMemoryLoad(directory: string, args: readonly string[]): Promise<ResultRow[]> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      memories: { type: "string", default: "100000" },
      conversations: { type: "string", default: "500" },
      seconds: { type: "string", default: "40" },
      part: { type: "string" },
    },
  });
  const most = Number(values.memories);
  const rows: ResultRow[] = [];
  const row: Row = (system, metric, unit, numbers) => {
    rows.push(summarise({ case: CASE, system, metric, unit }, numbers));
  };
  const bundle = await buildBundle(join(directory, "bundle"), join(BENCH_DIR, CASE, "wrangler.jsonc"));
  const start = async (name: string, more: ServeOptions = {}) => {
    const own = join(directory, name);
    await mkdir(own, { recursive: true });
    const variables = { DRAMATIS_LOCAL: "1", ...more.variables };
    return serve(bundle, own, { ...more, variables, files: FILES });
  };
  const isAsked = (part: string) => values.part === undefined || values.part === part;
  if (isAsked("compared")) await compared([most / 100, most / 10], directory, () => start("compared"), row);
  if (isAsked("sizes")) await sizes([most / 10, most], start, row);
  if (isAsked("agents")) await manyAgents(most / 100, () => start("agents"), row);
  if (isAsked("talking")) {
    const [conversations, seconds] = [Number(values.conversations), Number(values.seconds)];
    const options = { conversations, seconds, memories: most / 100 };
    await talking(
      options,
      (variables) => start("talking", { variables }),
      (metric, unit, numbers) => row("dramatis", metric, unit, numbers),
    );
  }
  const [load = 0] = loadavg();
  console.log(`load average ${load.toFixed(1)} on ${availableParallelism()} cores`);
  return rows;
}

/** Measures each system with the same texts, questions and embedder. Searches alternate between the systems. */
async function compared(
  counts: readonly number[],
  directory: string,
  start: () => ReturnType<typeof serve>,
  row: Row,
): Promise<void> {
  await ensureInstalled();
  for (const [index, count] of counts.entries()) {
    const peers = {
      dramatis: await start(),
      langgraph: await serveNode(join(BENCH_DIR, CASE, "langgraph/server.ts"), []),
      mastra: await serveMastra("memory.ts", [join(directory, `mastra-${count}.db`)]),
    };
    try {
      const all = [...samples(count)];
      await create(peers.dramatis, [AGENTS[index] ?? ""]);
      const stores = Object.entries(peers).map(([system, { port }]) => ({
        system,
        store: new Store(new Client(port), AGENTS[index] ?? ""),
        times: [] as number[],
        hits: [] as number[],
      }));
      for (const { system, store } of stores)
        row(system, `${count}: write, per second`, "count", await store.write(all));
      const questions = spread(all, COMPARED_SEARCHES + WARM_UP);
      for (const [turn, sample] of questions.entries()) {
        for (const { store, times, hits } of stores) {
          const { time, isFound } = await store.search(sample);
          if (turn < WARM_UP) continue;
          times.push(time);
          hits.push(isFound ? 1 : 0);
        }
      }
      for (const { system, times, hits, store } of stores) {
        quantiles(row, system, `${count}: search beside others`, times);
        row(system, `${count}: share found`, "ratio", [mean(hits)]);
        store.close();
      }
    } finally {
      await Promise.all(Object.values(peers).map((peer) => peer.stop()));
    }
  }
}

/** Measures one agent of each size: writes, searches, used memory, and the first search after a restart. */
async function sizes(
  counts: readonly number[],
  start: (name: string) => ReturnType<typeof serve>,
  row: Row,
): Promise<void> {
  for (const count of counts) {
    const name = `sizes-${count}`;
    let server = await start(name);
    try {
      const all = [...samples(count)];
      const questions = spread(all, SEARCHES + WARM_UP);
      await create(server, AGENTS.slice(0, 2));
      let store = new Store(new Client(server.port), AGENTS[0] ?? "");
      row("dramatis", `${count}: write, per second`, "count", await store.write(all));
      const timed = await store.searches(questions, WARM_UP);
      quantiles(row, "dramatis", `${count}: search`, timed.times);
      row("dramatis", `${count}: share found`, "ratio", [mean(timed.hits)]);
      row("dramatis", `${count}: request without a search`, "ms", await store.requests(SEARCHES));
      row("dramatis", `${count}: index in memory`, "MB", [(await store.bytes()) / MB]);
      row("dramatis", `${count}: process`, "MB", [rssOf(server.pid) / MB]);
      const cold: number[] = [];
      for (const sample of questions.slice(0, 5)) {
        store.close();
        await server.stop();
        server = await start(name);
        store = new Store(new Client(server.port), AGENTS[0] ?? "");
        // Starts the Worker by a call of another agent.
        await new Store(store.client, AGENTS[1] ?? "").requests(1);
        cold.push((await store.search(sample)).time);
      }
      row("dramatis", `${count}: first search after a restart`, "ms", cold);
      store.close();
    } finally {
      await server.stop();
    }
  }
}

/** Measures a hundred agents with `count` memories each, in rotation. */
async function manyAgents(count: number, start: () => ReturnType<typeof serve>, row: Row): Promise<void> {
  const server = await start();
  const client = new Client(server.port);
  try {
    const all = [...samples(count)];
    await create(server, AGENTS.slice(0, 100));
    const stores = AGENTS.slice(0, 100).map((id) => new Store(client, id));
    const speeds: number[] = [];
    for (const store of stores) speeds.push(mean(await store.write(all)));
    row("dramatis", `100 agents with ${count}: write, per second`, "count", speeds);
    const [times, hits]: [number[], number[]] = [[], []];
    for (const sample of spread(all, 5)) {
      for (const store of stores) {
        const { time, isFound } = await store.search(sample);
        times.push(time);
        hits.push(isFound ? 1 : 0);
      }
    }
    quantiles(row, "dramatis", `100 agents with ${count}: search`, times);
    row("dramatis", `100 agents with ${count}: share found`, "ratio", [mean(hits)]);
    row("dramatis", `100 agents with ${count}: indexes in memory`, "MB", [
      ((await stores[0]?.bytes()) ?? 0) / MB,
    ]);
  } finally {
    client.close();
    await server.stop();
  }
}

/** Creates agents. An agent that the code declares is created with its first conversation. */
async function create({ port }: Server, agentIds: readonly string[]): Promise<void> {
  const client = createClient({ baseUrl: `http://127.0.0.1:${port}` });
  for (const agentId of agentIds) await client.conversations.create({ agentId });
}

/** Returns `count` items, evenly spaced. */
function spread(all: readonly Sample[], count: number): Sample[] {
  return Array.from({ length: count }, (_, n) => all[Math.floor(((n + 0.5) * all.length) / count)]).filter(
    (sample) => sample !== undefined,
  );
}

function quantiles(row: Row, system: string, metric: string, times: number[]): void {
  row(system, metric, "ms", times);
  const sorted = times.toSorted((a, b) => a - b);
  row(system, `${metric}, p95`, "ms", [sorted[Math.floor(sorted.length * 0.95)] ?? Number.NaN]);
}

function mean(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
}
