/** The part `talking` of the case: turns of many conversations with and without memory, and searches at the same time. */
import { setTimeout as pause } from "node:timers/promises";
import { createClient, type DramatisClient } from "../../src/client/index.ts";
import { Client } from "../harness/client.ts";
import type { ResultRow } from "../harness/results.ts";
import type { Server } from "../harness/workerd.ts";
import { startModel } from "../readers/model.ts";
import { REMEMBERING, WITHOUT } from "./protocol.ts";
import { Store } from "./store.ts";
import { type Sample, samples } from "./workload.ts";

/** Length of an answer in characters. */
const ANSWER = 500;
/** Pause of a user between an answer and the next message, in milliseconds. It is too short for an actor to fall asleep. */
const THINKING_MS = 8_000;
const PROBE_EVERY_MS = 20;
const OPENED_AT_ONCE = 8;

type Row = (metric: string, unit: ResultRow["unit"], samples: number[]) => void;

interface Options {
  conversations: number;
  seconds: number;
  /** Number of memories of the agent with memory. */
  memories: number;
}

/** Half of the conversations belong to an agent with memory, half to an agent without. They talk at the same time. */
export async function talking(
  { conversations, seconds, memories }: Options,
  start: (variables: Record<string, string>) => Promise<Server>,
  row: Row,
): Promise<void> {
  const model = await startModel();
  const server = await start({ OPENAI_BASE_URL: model.baseUrl });
  const client = createClient({ baseUrl: `http://127.0.0.1:${server.port}` });
  const probes = new Store(new Client(server.port), REMEMBERING ?? "");
  try {
    const all = [...samples(memories)];
    await client.conversations.create({ agentId: REMEMBERING ?? "" });
    await probes.write(all);
    const agents = [
      { id: REMEMBERING ?? "", name: "turn with memory", turns: [] as number[] },
      { id: WITHOUT ?? "", name: "turn without memory", turns: [] as number[] },
    ];
    const state = { isOver: false };
    const users: Promise<void>[] = [];
    for (const { id, turns } of agents) {
      for (let n = 0; n < conversations / 2; n += OPENED_AT_ONCE) {
        const opened = Array.from({ length: Math.min(OPENED_AT_ONCE, conversations / 2 - n) }, () =>
          client.conversations.create({ agentId: id }),
        );
        for (const conversation of await Promise.all(opened)) {
          users.push(talk(client, conversation.id, { all, turns, state, seed: users.length }));
        }
      }
    }
    await pause(THINKING_MS);
    for (const { turns } of agents) turns.length = 0;
    const [rpc, http, bare]: [number[], number[], number[]] = [[], [], []];
    const endAt = Date.now() + seconds * 1_000;
    for (let n = 0; Date.now() < endAt; n += 1) {
      const sample = all[(n * 37) % all.length];
      if (sample === undefined) break;
      rpc.push((await probes.search(sample)).time);
      await pause(PROBE_EVERY_MS);
      const begin = performance.now();
      await client.memories.search(REMEMBERING ?? "", { query: sample.question });
      http.push(performance.now() - begin);
      await pause(PROBE_EVERY_MS);
      bare.push(...(await probes.requests(1)));
      await pause(PROBE_EVERY_MS);
    }
    const taken = agents.map(({ name, turns }) => ({ name, turns: [...turns] }));
    state.isOver = true;
    await Promise.all(users);
    const label = `${conversations} talking, ${memories} memories`;
    quantiles(row, `${label}: search by RPC`, rpc);
    quantiles(row, `${label}: search by HTTP`, http);
    quantiles(row, `${label}: request without a search`, bare);
    for (const { name, turns } of taken) quantiles(row, `${label}: ${name}`, turns);
  } finally {
    probes.close();
    await server.stop();
    await model.close();
  }
}

async function talk(
  client: DramatisClient,
  id: string,
  {
    all,
    turns,
    state,
    seed,
  }: { all: readonly Sample[]; turns: number[]; state: { isOver: boolean }; seed: number },
): Promise<void> {
  await pause(Math.random() * THINKING_MS);
  for (let n = 0; !state.isOver; n += 1) {
    const content = `answer ${ANSWER} ${all[(seed * 13 + n) % all.length]?.question}`;
    const begin = performance.now();
    for await (const frame of client.streamTurn(id, { content })) {
      if (frame.type !== "turn.failed") continue;
      throw new Error(`A turn failed with ${frame.data.error.code}: ${frame.data.error.message}`);
    }
    turns.push(performance.now() - begin);
    await pause(THINKING_MS);
  }
}

function quantiles(row: Row, metric: string, times: number[]): void {
  row(metric, "ms", times);
  const sorted = times.toSorted((a, b) => a - b);
  row(`${metric}, p95`, "ms", [sorted[Math.floor(sorted.length * 0.95)] ?? Number.NaN]);
}
