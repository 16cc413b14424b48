/**
 * The case `busy`: the wait of a question while the same conversation waits for a slow tool. All systems run in the Worker of
 * the case `turns`, in rotating order.
 */
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { buildBundle } from "../harness/bundle.ts";
import { Client } from "../harness/client.ts";
import { ensureInstalled } from "../harness/install.ts";
import { BENCH_DIR } from "../harness/paths.ts";
import { type ResultRow, summarise } from "../harness/results.ts";
import { serve } from "../harness/workerd.ts";
import type { SystemName } from "../turns/protocol.ts";
import { evidence, PLAIN_TEXT, SLOW_TEXT } from "../turns/workload.ts";

const CASE = "busy";
const METRIC = "answer during a 5 s tool";
const CHATS = ["dramatis", "ai-chat-agent", "think"] as const satisfies readonly SystemName[];
const WARM_UP_ROUNDS = 1;
const ROUNDS = 7;
/** Milliseconds until the slow tool runs in every system. */
const UNDER_WAY_MS = 500;

/** Builds and serves the Worker with all systems, and runs the case. */
export async function runBusy(directory: string): Promise<ResultRow[]> {
  await ensureInstalled();
  const server = await serve(await buildBundle(directory, join(BENCH_DIR, "wrangler.jsonc")), directory);
  const [slow, quick] = [new Client(server.port), new Client(server.port)];
  try {
    const samples = new Map<SystemName, number[]>(CHATS.map((system) => [system, []]));
    for (const system of CHATS) await slow.post(`/${system}/all/prepare`, "");
    for (let round = -WARM_UP_ROUNDS; round < ROUNDS; round += 1) {
      for (const system of CHATS) {
        const actor = `/${system}/actor-${round + WARM_UP_ROUNDS}`;
        const time = await answerTime(slow, quick, actor);
        if (round >= 0) samples.get(system)?.push(time);
      }
      process.stdout.write(round < 0 ? "warm-up " : `${round + 1} `);
    }
    process.stdout.write("\n");
    return [...samples].map(([system, times]) =>
      summarise({ case: CASE, system, metric: METRIC, unit: "ms" }, times),
    );
  } finally {
    slow.close();
    quick.close();
    await server.stop();
  }
}

/** Asks a question while a tool of the conversation runs. Returns the milliseconds until the whole answer has arrived. */
async function answerTime(slow: Client, quick: Client, actor: string): Promise<number> {
  await slow.post(`${actor}/turn?first`, PLAIN_TEXT);
  const working = slow.post(`${actor}/turn`, SLOW_TEXT);
  await pause(UNDER_WAY_MS);
  const begin = performance.now();
  const answer = await quick.post(`${actor}/turn`, PLAIN_TEXT);
  const time = performance.now() - begin;
  expectEvidence(actor, answer, 0);
  expectEvidence(actor, await working, 1);
  return time;
}

/** Fails the run if the model of an answer got another number of tool results. */
function expectEvidence(actor: string, answer: string, toolResults: number): void {
  const seen = evidence(answer);
  if (seen?.toolResults !== toolResults) {
    throw new Error(
      `${actor}: expected an answer to ${toolResults} tool results, got ${JSON.stringify(answer)}.`,
    );
  }
}
