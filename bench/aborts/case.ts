/**
 * The case `aborts`: deployments reset every actor at once, again and again, while tools of all three effects run. Counts the
 * `once` operations of unknown outcome. The history is checked first, as for `kills`.
 */
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { createClient } from "../../src/client/index.ts";
import { mulberry32 } from "../../src/shared/mulberry32.ts";
import { buildBundle } from "../harness/bundle.ts";
import { BENCH_DIR } from "../harness/paths.ts";
import { type ResultRow, summarise } from "../harness/results.ts";
import { onSite } from "../kills/case.ts";
import { check } from "../kills/check.ts";
import { readFinalState } from "../kills/final-state.ts";
import type { History, Manner } from "../kills/history.ts";
import { AGENT, randomScript } from "../kills/script.ts";
import type { Site } from "../kills/site.ts";
import { newUser } from "../kills/users.ts";

const MANNERS: readonly Manner[] = ["socket", "post", "stream"];
/** Range of a tool's duration, in milliseconds. At most aborts, some tools run. */
const TOOL_MS = { from: 100, to: 3_000 };
/** Time limit for every turn to end after the last abort, in milliseconds. */
const CALM_MS = 90_000;

interface AbortsOptions {
  seconds: number;
  /** Seconds between two aborts. */
  every: number;
  conversations: number;
  seed: number;
}

/** Options: `--seconds`, `--every`, `--conversations`, `--seed`. */
export async function runAborts(directory: string, args: readonly string[]): Promise<ResultRow[]> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seconds: { type: "string", default: "120" },
      every: { type: "string", default: "5" },
      conversations: { type: "string", default: "12" },
      seed: { type: "string", default: "1" },
    },
  });
  const { seconds, every, conversations, seed } = values;
  const options = {
    seconds: Number(seconds),
    every: Number(every),
    conversations: Number(conversations),
    seed: Number(seed),
  };
  if (Object.values(options).some(Number.isNaN)) throw new Error("The options must be numbers.");
  const bundle = await buildBundle(join(directory, "bundle"), join(BENCH_DIR, "aborts", "wrangler.jsonc"));
  const history = await onSite(bundle, join(directory, "site"), (site) => deploy(site, options));
  console.log("");
  const faults = check(history).map(({ rule, conversation, what }) => `${rule} ${conversation}: ${what}`);
  if (faults.length > 0) throw new Error(`The run violated a rule:\n${faults.slice(0, 50).join("\n")}`);
  return rowsOf(history);
}

/** Aborts all actors at intervals while users converse. */
async function deploy(site: Site, { seconds, every, conversations, seed }: AbortsOptions): Promise<void> {
  const { baseUrl, history, hits } = site;
  const client = createClient({ baseUrl });
  const ended = new AbortController();
  const signal = AbortSignal.any([ended.signal, AbortSignal.timeout(seconds * 1_000 + 2 * CALM_MS)]);
  const calm = new AbortController();
  let isOver = false;

  async function converse(conversation: string, index: number): Promise<void> {
    const random = mulberry32(seed + index);
    const around = { baseUrl, conversation, history, hits, signal, calm: calm.signal };
    const user = newUser(MANNERS[index % MANNERS.length] ?? "socket", around);
    for (let said = 0; !isOver; said += 1) {
      const script = randomScript(random, `c${index}m${said}`);
      const toolMs = TOOL_MS.from + Math.floor(random() * (TOOL_MS.to - TOOL_MS.from));
      await user.say([{ ...script, toolMs }]);
    }
    const final = await readFinalState(baseUrl, conversation, signal);
    history.finals.push(final);
    await user.leave(final.frames.at(-1)?.seq ?? 0);
  }

  async function abortAll(ids: readonly string[]): Promise<void> {
    for (let passed = every; passed <= seconds; passed += every) {
      await pause(every * 1_000, undefined, { signal });
      const at = Date.now();
      await Promise.all(ids.map((id) => fetch(`${baseUrl}/abort/${id}`, { method: "POST", signal })));
      history.kills.push({ at, readyAt: Date.now() });
      process.stdout.write(`${history.kills.length} `);
    }
    isOver = true;
    setTimeout(() => calm.abort(), CALM_MS).unref();
  }

  try {
    const created = Array.from({ length: conversations }, () =>
      client.conversations.create({ agentId: AGENT }),
    );
    const ids = (await Promise.all(created)).map(({ id }) => id);
    await Promise.all([abortAll(ids), ...ids.map(converse)]);
  } finally {
    ended.abort(new Error("The run is over."));
  }
}

function rowsOf({ finals, kills, hits }: History): ResultRow[] {
  const frames = finals.flatMap((final) => final.frames);
  const once = new Set(
    frames.flatMap((frame) =>
      frame.type === "tool.requested" && frame.data.name === "once" ? [frame.operationId] : [],
    ),
  );
  const unknown = frames.filter(
    (frame) =>
      frame.type === "tool.failed" &&
      once.has(frame.operationId) &&
      frame.data.error.message.startsWith("Outcome unknown"),
  );
  const interrupted = hits.filter(
    (hit) =>
      hit.kind === "tool" &&
      hit.effect === "once" &&
      kills.some(({ at, readyAt }) => hit.at <= at && hit.endedAt >= readyAt),
  );
  const ends = frames.filter(({ type }) => type === "turn.completed" || type === "turn.failed");
  const row = (metric: string, count: number) =>
    summarise({ case: "aborts", system: "dramatis", metric, unit: "count" }, [count]);
  return [
    row("aborts of all actors", kills.length),
    row("turns", ends.length),
    row("turns that failed", ends.filter(({ type }) => type === "turn.failed").length),
    row("once operations", once.size),
    row("once operations that ran during an abort", interrupted.length),
    row("once operations of unknown outcome", unknown.length),
  ];
}
