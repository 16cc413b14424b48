/**
 * The case `run-trees`: plain requests of another tenant while a tree of runs fans out, and the memory of the process. At the end the case
 * cancels the tree. It fails if a request of the other tenant waits longer than `MAX_WAIT_MS`, or if the process grows by more than
 * `MAX_GROWTH_MB`.
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { SignJWT } from "jose";
import { createClient } from "../../src/client/index.ts";
import { buildBundle } from "../harness/bundle.ts";
import { BENCH_DIR } from "../harness/paths.ts";
import { cpuOf, rssOf } from "../harness/process-figures.ts";
import { type ResultRow, summarise } from "../harness/results.ts";
import { serve } from "../harness/workerd.ts";
import { AGENT, ATTACKER, OTHER, ROOT } from "./tenants.ts";

const SECRET = createHash("sha512").update("bench").digest("base64");
const MB = 1_000_000;
const MAX_WAIT_MS = 500;
const MAX_GROWTH_MB = 600;
/** Pause between the other tenant's requests, in milliseconds. */
const PAUSE_MS = 5;
const IDLE_MS = 3_000;
/** The process is quiet if it uses less processor time than this in a second, in milliseconds. */
const QUIET_MS = 50;

/** Options: `--seconds` before the cancellation, `--trees` at the same time. */
export async function runRunTrees(directory: string, args: readonly string[]): Promise<ResultRow[]> {
  const { values } = parseArgs({
    args: [...args],
    options: { seconds: { type: "string", default: "30" }, trees: { type: "string", default: "1" } },
  });
  const config = join(BENCH_DIR, "run-trees", "wrangler.jsonc");
  const bundle = await buildBundle(join(directory, "bundle"), config);
  const server = await serve(bundle, join(directory, "site"), { variables: { AUTH_SECRET: SECRET } });
  const { pid } = server;
  try {
    const baseUrl = `http://127.0.0.1:${server.port}`;
    const [attacker, other] = [await clientOf(baseUrl, ATTACKER), await clientOf(baseUrl, OTHER)];
    const { id } = await other.conversations.create({ agentId: AGENT });
    const ask = () => other.conversations.get(id);
    await waitsUntil(ask, pause(IDLE_MS));
    const idle = await waitsUntil(ask, pause(IDLE_MS));
    const before = rssOf(pid);
    let peak = before;
    const watch = setInterval(() => {
      peak = Math.max(peak, rssOf(pid));
    }, 100);
    const runs: string[] = [];
    const busy = await waitsUntil(ask, async () => {
      for (let n = 0; n < Number(values.trees); n++)
        runs.push((await attacker.runs.start({ workflow: ROOT })).id);
      await pause(Number(values.seconds) * 1_000);
    });
    const begin = performance.now();
    await Promise.all(runs.map((run) => attacker.runs.cancel(run)));
    const cancelled = performance.now() - begin;
    const after = await waitsUntil(ask, pause(IDLE_MS));
    await quiet(pid);
    const stopped = performance.now() - begin;
    clearInterval(watch);
    const row = (metric: string, unit: ResultRow["unit"], samples: number[]) =>
      summarise({ case: "run-trees", system: "dramatis", metric, unit }, samples);
    return [
      row("wait before", "ms", idle),
      row("wait during the tree", "ms", busy),
      row("wait during its cancellation", "ms", after),
      row("answer to the cancellation", "ms", [cancelled]),
      row("cancellation of the whole tree", "ms", [stopped]),
      row("growth of the process", "MB", [Math.round((peak - before) / MB)]),
      row("growth afterwards", "MB", [Math.round((rssOf(pid) - before) / MB)]),
    ];
  } finally {
    await server.stop();
  }
}

/** Returns a finding for each figure that is too large. */
export function runTreesVerdict(rows: readonly ResultRow[]): string[] {
  const isTooLarge = ({ metric, max }: ResultRow) =>
    (metric.startsWith("wait ") && max > MAX_WAIT_MS) ||
    (metric === "growth of the process" && max > MAX_GROWTH_MB);
  const findings = rows
    .filter(isTooLarge)
    .map(({ metric, max, unit }) => `FAILED  ${metric}: ${max} ${unit}.`);
  if (findings.length > 0) process.exitCode = 1;
  return findings.length > 0
    ? findings
    : [`No wait was longer than ${MAX_WAIT_MS} ms, and the process grew by at most ${MAX_GROWTH_MB} MB.`];
}

async function clientOf(baseUrl: string, tenant: string) {
  const token = await new SignJWT({ tenant, roles: ["admin"] })
    .setProtectedHeader({ alg: "HS256" })
    .setSubject("ada")
    .setExpirationTime("1h")
    .sign(new TextEncoder().encode(SECRET));
  return createClient({ baseUrl, token });
}

/** Sends requests, one after another, until the work ends. Returns their waits. */
async function waitsUntil(
  ask: () => Promise<unknown>,
  work: Promise<unknown> | (() => Promise<unknown>),
): Promise<number[]> {
  const waits: number[] = [];
  let isOver = false;
  const working = (typeof work === "function" ? work() : work).finally(() => {
    isOver = true;
  });
  while (!isOver) {
    const begin = performance.now();
    await ask();
    waits.push(performance.now() - begin);
    await pause(PAUSE_MS);
  }
  await working;
  return waits;
}

/** Resolves when a process uses less than `QUIET_MS` of processor time in a second. */
async function quiet(pid: number): Promise<void> {
  for (let spent = Number.POSITIVE_INFINITY; spent > QUIET_MS; ) {
    const before = cpuOf(pid);
    await pause(1_000);
    spent = cpuOf(pid) - before;
  }
}
