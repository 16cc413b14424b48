/**
 * The case `delegation`: the cost of a turn of a manager that calls another agent, in each system. In every round each
 * system runs one batch of each shape, in rotating order, so that other load on the machine affects all systems equally.
 *
 * BENCH-2  Every answer is checked: the manager received a report of each task. A turn with another number of model calls
 *          fails the run.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { buildBundle } from "../harness/bundle.ts";
import { Client } from "../harness/client.ts";
import { ensureInstalled } from "../harness/install.ts";
import { BENCH_DIR } from "../harness/paths.ts";
import { type ResultRow, summarise } from "../harness/results.ts";
import { serve } from "../harness/workerd.ts";
import type { Counts } from "../turns/protocol.ts";
import { serveMastra } from "./mastra/process.ts";
import { type Model, startModel } from "./model.ts";
import { SYSTEMS, type SystemName } from "./protocol.ts";
import { reportsIn, userText } from "./workload.ts";

const CASE = "delegation";
const WARM_UP_ROUNDS = 2;
const ROUNDS = 11;
/** Time for the background work of a system before the next batch. */
const SETTLE_MS = 50;
/** After this time without a change of the counts, all actors are idle. It covers actors that an alarm wakes. */
const REST_MS = 3_500;

/** A shape of turns: the preparation of an actor, and the measured part. */
interface Shape {
  metric: string;
  /** Delegations of each measured turn, all at once. */
  delegations: number;
  /** Delegations of each untimed turn before. */
  untimed: readonly number[];
  /** Puts the clerk to sleep before each measured turn. */
  isAsleep: boolean;
  /** Actors per batch, and measured turns per actor. Their product divides the time. */
  actors: number;
  turns: number;
}

const SHAPES: readonly Shape[] = [
  { metric: "plain", delegations: 0, untimed: [1, 0], isAsleep: false, actors: 1, turns: 8 },
  { metric: "fresh", delegations: 1, untimed: [0], isAsleep: true, actors: 6, turns: 1 },
  { metric: "warm", delegations: 1, untimed: [0, 1], isAsleep: false, actors: 1, turns: 6 },
  { metric: "twenty", delegations: 20, untimed: [0, 1], isAsleep: false, actors: 1, turns: 2 },
];

/** Installs, builds and serves all systems, and runs the case. */
export async function runDelegation(directory: string): Promise<ResultRow[]> {
  await ensureInstalled();
  const model = await startModel();
  const site = join(directory, "site");
  await mkdir(site, { recursive: true });
  const bundle = await buildBundle(join(directory, "bundle"), join(BENCH_DIR, CASE, "wrangler.jsonc"));
  const mastra = await serveMastra("server.ts", [model.baseUrl, join(directory, "mastra.db")]);
  const workerd = await serve(bundle, site, { variables: { OPENAI_BASE_URL: model.baseUrl } });
  const clients = { mastra: new Client(mastra.port), workerd: new Client(workerd.port) };
  try {
    return await measure(new Bench(model, (system) => clients[system === "mastra" ? "mastra" : "workerd"]));
  } finally {
    for (const client of Object.values(clients)) client.close();
    await Promise.all([mastra.stop(), workerd.stop()]);
    await model.close();
  }
}

async function measure(bench: Bench): Promise<ResultRow[]> {
  const samples = new Map<string, number[]>();
  for (let round = -WARM_UP_ROUNDS; round < ROUNDS; round += 1) {
    for (const shape of SHAPES) {
      const start = (round + WARM_UP_ROUNDS) % SYSTEMS.length;
      for (const system of [...SYSTEMS.slice(start), ...SYSTEMS.slice(0, start)]) {
        const time = await bench.batch(system, shape);
        const key = `${shape.metric} ${system}`;
        if (round >= 0) samples.set(key, [...(samples.get(key) ?? []), time]);
        await pause(SETTLE_MS);
      }
    }
    process.stdout.write(round < 0 ? "warm-up " : `${round + 1} `);
  }
  process.stdout.write("counts\n");
  const rows: ResultRow[] = [];
  for (const shape of SHAPES) {
    for (const system of SYSTEMS) {
      const found = samples.get(`${shape.metric} ${system}`) ?? [];
      rows.push(summarise({ case: CASE, system, metric: shape.metric, unit: "ms" }, found));
    }
  }
  for (const system of SYSTEMS) {
    for (const shape of SHAPES.filter(({ delegations }) => delegations > 0)) {
      rows.push(...(await bench.counts(system, shape)));
    }
  }
  return rows;
}

/** Reports the metrics with another system ahead. */
export function delegationVerdict(rows: readonly ResultRow[]): string[] {
  const own = rows.filter(({ system, unit }) => system === "dramatis" && unit === "ms");
  return SYSTEMS.filter((system) => system !== "dramatis").map((peer) => {
    const behind = own.filter(({ metric, median }) =>
      rows.some((row) => row.system === peer && row.metric === metric && row.median <= median),
    );
    const where = behind.map(({ metric }) => metric).join(", ");
    return behind.length === 0 ? `ahead of ${peer} in every row` : `NOT ahead of ${peer} in: ${where}`;
  });
}

/** Drives the systems over HTTP. */
class Bench {
  #actors = 0;
  readonly #model: Model;
  readonly #clientOf: (system: SystemName) => Client;

  constructor(model: Model, clientOf: (system: SystemName) => Client) {
    this.#model = model;
    this.#clientOf = clientOf;
  }

  /** Returns the milliseconds per turn of one batch. */
  async batch(system: SystemName, shape: Shape): Promise<number> {
    const actors = [];
    for (let n = 0; n < shape.actors; n += 1) actors.push(await this.#prepared(system, shape));
    let time = 0;
    for (const actor of actors) {
      for (let turn = 0; turn < shape.turns; turn += 1) {
        if (shape.isAsleep) await this.#post(system, actor, "sleep");
        const begin = performance.now();
        await this.#turn(system, actor, shape.delegations);
        time += performance.now() - begin;
      }
    }
    return time / (shape.actors * shape.turns);
  }

  /** Counts statements and rows of one turn in actors that carry meters, until all are idle. */
  async counts(system: SystemName, shape: Shape): Promise<ResultRow[]> {
    await this.#post(system, "all", "meter");
    const actor = await this.#prepared(system, shape);
    const before = await this.#atRest(system);
    if (shape.isAsleep) await this.#post(system, actor, "sleep");
    await this.#turn(system, actor, shape.delegations);
    const after = await this.#atRest(system);
    const rows: ResultRow[] = [];
    const total: Counts = { statements: 0, rows: 0 };
    const add = (metric: string, value: number) =>
      rows.push(
        summarise({ case: CASE, system, metric: `${shape.metric} ${metric}`, unit: "count" }, [value]),
      );
    for (const [part, counts] of Object.entries(after)) {
      const written = counts.rows - (before[part]?.rows ?? 0);
      total.rows += written;
      total.statements += counts.statements - (before[part]?.statements ?? 0);
      add(`rows in ${part}`, written);
    }
    if (rows.length > 0) {
      add("rows", total.rows);
      add("statements", total.statements);
    }
    return rows;
  }

  async #prepared(system: SystemName, { untimed }: Shape): Promise<string> {
    this.#actors += 1;
    const actor = `actor-${this.#actors}`;
    await this.#post(system, actor, "prepare");
    for (const delegations of untimed) await this.#turn(system, actor, delegations);
    return actor;
  }

  async #turn(system: SystemName, actor: string, delegations: number): Promise<void> {
    const before = this.#model.calls();
    const answer = await this.#post(system, actor, "turn", userText(delegations));
    const calls = this.#model.calls() - before;
    if (reportsIn(answer) !== delegations || calls !== (delegations === 0 ? 1 : 2 + delegations)) {
      throw new Error(`${system}: ${delegations} delegations with ${calls} model calls gave "${answer}".`);
    }
  }

  async #atRest(system: SystemName): Promise<Record<string, Counts>> {
    let last = "";
    for (;;) {
      const counts = await this.#post(system, "all", "counts");
      if (counts === last) return JSON.parse(counts) as Record<string, Counts>; // SAFETY: the Worker's own answer.
      last = counts;
      await pause(REST_MS);
    }
  }

  #post(system: SystemName, actor: string, operation: string, body = ""): Promise<string> {
    return this.#clientOf(system).post(`/${system}/${actor}/${operation}`, body);
  }
}
