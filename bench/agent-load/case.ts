/**
 * The case `agent-load`: one agent with many conversations that talk. Measures the response time of the agent's actor under
 * this load, beside a request that calls no actor. Also measures the processor time of a call without other load. A run fails
 * if a turn fails.
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { createClient, type DramatisClient } from "../../src/client/index.ts";
import { buildBundle } from "../harness/bundle.ts";
import { Client } from "../harness/client.ts";
import { BENCH_DIR } from "../harness/paths.ts";
import { cpuOf } from "../harness/process-figures.ts";
import { type ResultRow, summarise } from "../harness/results.ts";
import { type Server, serve } from "../harness/workerd.ts";
import { startModel } from "../readers/model.ts";

const CASE = "agent-load";
/** A file system in memory. With 500 databases on one disk, the times would measure the disk. */
const MEMORY = "/dev/shm";
/** Length of an answer in characters. */
const ANSWER = 500;
/** Pause of a user between an answer and the next message, in milliseconds. It is too short for an actor to fall asleep. */
const THINKING_MS = 8_000;
/** Pause between two probes, in milliseconds. */
const PROBE_EVERY_MS = 20;
/** Conversations that open at the same time before the load. */
const OPENED_AT_ONCE = 8;
/** Calls of one agent without other load, and the number of calls at a time. */
const CALLS = 4_000;
const CALLS_AT_ONCE = 16;

/** Names of rows, by the operation in the path of their request. */
const NAMES = { none: "request without an actor", identity: "identity()", persona: "persona()" } as const;

/** Agents of the application, with the names of their rows. */
const AGENTS = [
  { id: "free", talking: "talking" },
  { id: "limited", talking: "talking, agent with a budget" },
] as const;

/** The state of a run: users talk until `isOver`. */
interface Talk {
  isOver: boolean;
  turns: number[];
}

/** Options: `--conversations`, `--seconds` of each part. */
export async function runAgentLoad(directory: string, args: readonly string[]): Promise<ResultRow[]> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      conversations: { type: "string", default: "500" },
      seconds: { type: "string", default: "40" },
    },
  });
  const [conversations, seconds] = [Number(values.conversations), Number(values.seconds)];
  const bundle = await buildBundle(join(directory, "bundle"), join(BENCH_DIR, CASE, "wrangler.jsonc"));
  const model = await startModel();
  const databases = existsSync(MEMORY) ? mkdtempSync(join(MEMORY, "dramatis-bench-")) : directory;
  process.once("exit", () => rmSync(databases, { recursive: true, force: true }));
  const rows: ResultRow[] = [];
  try {
    for (const { id, talking } of AGENTS) {
      const site = join(databases, id);
      await mkdir(site, { recursive: true });
      const variables = { DRAMATIS_LOCAL: "1", OPENAI_BASE_URL: model.baseUrl };
      const server = await serve(bundle, site, { variables });
      const load = new Load(server, id);
      try {
        if (id === "free") {
          rows.push(...(await load.capacity()), ...(await load.probe("idle", seconds / 4)));
        }
        rows.push(...(await load.talking(talking, conversations, seconds)));
      } finally {
        load.close();
        await server.stop();
      }
    }
    return rows;
  } finally {
    await model.close();
  }
}

class Load {
  readonly #server: Server;
  readonly #agentId: string;
  readonly #client: DramatisClient;
  readonly #probes: Client;

  constructor(server: Server, agentId: string) {
    this.#server = server;
    this.#agentId = agentId;
    this.#client = createClient({ baseUrl: `http://127.0.0.1:${server.port}` });
    this.#probes = new Client(server.port);
  }

  close(): void {
    this.#probes.close();
  }

  /** Measures the processor time of a call while more calls wait, and of the same request without a call. */
  async capacity(): Promise<ResultRow[]> {
    await this.#open();
    const clients = Array.from({ length: CALLS_AT_ONCE }, () => new Client(this.#server.port));
    const rows: ResultRow[] = [];
    for (const operation of ["none", "identity", "persona"] as const) {
      const path = this.#pathOf(operation);
      for (const client of clients) await client.post(path, "");
      let left = CALLS;
      const cpu = cpuOf(this.#server.pid);
      await Promise.all(
        clients.map(async (client) => {
          while (left > 0) {
            left -= 1;
            await client.post(path, "");
          }
        }),
      );
      const used = (cpuOf(this.#server.pid) - cpu) / CALLS;
      rows.push(this.#row(`processor time, ${NAMES[operation]}`, [used]));
    }
    for (const client of clients) client.close();
    return rows;
  }

  /** Opens conversations, and probes while they talk. */
  async talking(name: string, conversations: number, seconds: number): Promise<ResultRow[]> {
    const ids: string[] = [];
    for (let n = 0; n < conversations; n += OPENED_AT_ONCE) {
      const some = Math.min(OPENED_AT_ONCE, conversations - n);
      ids.push(...(await Promise.all(Array.from({ length: some }, () => this.#open()))));
    }
    const talk: Talk = { isOver: false, turns: [] };
    const users = ids.map((id) => this.#talk(id, talk));
    // Each user sends its first message within one pause.
    await pause(THINKING_MS);
    const [cpu, turns, startedAt] = [cpuOf(this.#server.pid), talk.turns.length, Date.now()];
    const rows = await this.probe(name, seconds);
    const share = (cpuOf(this.#server.pid) - cpu) / (Date.now() - startedAt);
    const took = talk.turns.slice(turns);
    talk.isOver = true;
    await Promise.all(users);
    return [
      ...rows,
      ...this.#quantiles(`answer, ${name}`, took),
      summarise({ case: CASE, system: "dramatis", metric: `turns, ${name}`, unit: "count" }, [took.length]),
      summarise({ case: CASE, system: "dramatis", metric: `processor share, ${name}`, unit: "ratio" }, [
        share,
      ]),
    ];
  }

  /** Measures each kind of request again and again, one at a time. */
  async probe(name: string, seconds: number): Promise<ResultRow[]> {
    const kinds: Record<string, () => Promise<unknown>> = {
      [NAMES.none]: () => this.#probes.post(this.#pathOf("none"), ""),
      [NAMES.identity]: () => this.#probes.post(this.#pathOf("identity"), ""),
      [NAMES.persona]: () => this.#probes.post(this.#pathOf("persona"), ""),
      "opening a conversation": () => this.#open(),
    };
    const times = Object.keys(kinds).map((kind) => ({ kind, samples: [] as number[] }));
    const endAt = Date.now() + seconds * 1_000;
    while (Date.now() < endAt) {
      for (const { kind, samples } of times) {
        const begin = performance.now();
        await kinds[kind]?.();
        samples.push(performance.now() - begin);
        await pause(PROBE_EVERY_MS);
      }
    }
    return times.flatMap(({ kind, samples }) => this.#quantiles(`${kind}, ${name}`, samples));
  }

  async #open(): Promise<string> {
    return (await this.#client.conversations.create({ agentId: this.#agentId })).id;
  }

  async #talk(id: string, talk: Talk): Promise<void> {
    await pause(Math.random() * THINKING_MS);
    while (!talk.isOver) {
      const begin = performance.now();
      for await (const frame of this.#client.streamTurn(id, { content: `answer ${ANSWER}` })) {
        if (frame.type !== "turn.failed") continue;
        throw new Error(`A turn failed with ${frame.data.error.code}: ${frame.data.error.message}`);
      }
      talk.turns.push(performance.now() - begin);
      await pause(THINKING_MS);
    }
  }

  #pathOf(operation: keyof typeof NAMES): string {
    return `/probe/${operation}/${this.#agentId}`;
  }

  #row(metric: string, samples: number[]): ResultRow {
    return summarise({ case: CASE, system: "dramatis", metric, unit: "ms" }, samples);
  }

  #quantiles(metric: string, samples: number[]): ResultRow[] {
    const sorted = samples.toSorted((a, b) => a - b);
    const p95 = sorted[Math.floor(sorted.length * 0.95)] ?? Number.NaN;
    return [this.#row(metric, samples), this.#row(`${metric}, p95`, [p95])];
  }
}
