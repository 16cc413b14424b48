/**
 * The case `turns`: the cost of one turn in each system, from a new actor to a long conversation. In every round each
 * system runs one batch of each shape, in rotating order, so that other load on the machine affects all systems equally.
 */
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { buildBundle } from "../harness/bundle.ts";
import { Client } from "../harness/client.ts";
import { ensureInstalled } from "../harness/install.ts";
import { BENCH_DIR } from "../harness/paths.ts";
import { type ResultRow, summarise } from "../harness/results.ts";
import { serve } from "../harness/workerd.ts";
import { Bench } from "./bench.ts";
import { SYSTEMS, type SystemName } from "./protocol.ts";
import { SHAPES, type Shape } from "./shapes.ts";

const CASE = "turns";
const WARM_UP_ROUNDS = 2;
const ROUNDS = 11;
/** Time for the background work of a system before the next batch. */
const SETTLE_MS = 30;

/** Builds and serves the Worker with all systems, and runs the case. */
export async function serveTurns(directory: string): Promise<ResultRow[]> {
  await ensureInstalled();
  const server = await serve(await buildBundle(directory, join(BENCH_DIR, "wrangler.jsonc")), directory);
  const client = new Client(server.port);
  try {
    return await runTurns(client);
  } finally {
    client.close();
    await server.stop();
  }
}

async function runTurns(client: Client): Promise<ResultRow[]> {
  const bench = new Bench(client);
  for (const system of SYSTEMS) await bench.prepare(system);
  const samples = new Map<string, number[]>();
  for (let round = -WARM_UP_ROUNDS; round < ROUNDS; round += 1) {
    for (const shape of SHAPES) {
      for (const system of rotated(shape.systems, round + WARM_UP_ROUNDS)) {
        const time = await bench.batch(system, shape);
        if (round >= 0) push(samples, key(shape, system), time);
        await pause(SETTLE_MS);
      }
    }
    process.stdout.write(round < 0 ? "warm-up " : `${round + 1} `);
  }
  process.stdout.write("counts ");
  const rows: ResultRow[] = [];
  const counts: ResultRow[] = [];
  for (const shape of SHAPES) {
    for (const system of shape.systems) {
      const of = { case: CASE, system };
      rows.push(
        summarise({ ...of, metric: shape.metric, unit: "ms" }, samples.get(key(shape, system)) ?? []),
      );
      const { statements, rows: written } = await bench.counts(system, shape);
      counts.push(summarise({ ...of, metric: `${shape.metric} statements`, unit: "count" }, [statements]));
      counts.push(summarise({ ...of, metric: `${shape.metric} rows`, unit: "count" }, [written]));
    }
  }
  process.stdout.write("\n");
  return [...rows, ...counts];
}

function rotated<Item>(items: readonly Item[], by: number): Item[] {
  const start = by % items.length;
  return [...items.slice(start), ...items.slice(0, start)];
}

function key(shape: Shape, system: SystemName): string {
  return `${shape.metric} ${system}`;
}

function push(samples: Map<string, number[]>, name: string, value: number): void {
  samples.set(name, [...(samples.get(name) ?? []), value]);
}
