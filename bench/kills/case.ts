/**
 * The case `kills`: kills the server again and again during six kinds of work. Each history is checked first. A run that violates a rule
 * reports no numbers.
 */
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { MAX_RECOVERIES } from "../../src/agents/conversation/core/conversation-limits.ts";
import { type Bundle, buildBundle } from "../harness/bundle.ts";
import { BENCH_DIR } from "../harness/paths.ts";
import { type ResultRow, summarise } from "../harness/results.ts";
import { checkBackground, missingIn } from "./background/check.ts";
import { backgroundRows } from "./background/measure.ts";
import { background } from "./background/scenario.ts";
import type { Violation } from "./check/records.ts";
import { check } from "./check.ts";
import type { History } from "./history.ts";
import { interruptionsOf, rowsOf } from "./measure.ts";
import { oneTurn, SURVIVOR, VICTIM } from "./one-turn.ts";
import { checkRuns, missingInRuns } from "./runs/check.ts";
import type { RunsHistory } from "./runs/history.ts";
import { runs } from "./runs/scenario.ts";
import { Site } from "./site.ts";
import { storm } from "./storm.ts";
import { checkTrees, missingInTrees } from "./trees/check.ts";
import type { TreesHistory } from "./trees/history.ts";
import { trees } from "./trees/scenario.ts";
import { checkVersions, missingInVersions } from "./versions/check.ts";
import { ACTS, type VersionsHistory } from "./versions/history.ts";
import { versions } from "./versions/scenario.ts";

const PATIENCE_MS = 300_000;
const BACKGROUND_PATIENCE_MS = 600_000;
const ONE_TURN_PATIENCE_MS = 180_000;
const TREES_PATIENCE_MS = 600_000;
const TREE_USERS = 4;
const RUNS_PATIENCE_MS = 600_000;
const KILLS_OF_RUN = 5;
const BRANCHES = 200;
const VERSIONS_PATIENCE_MS = 600_000;
const VERSIONS_USERS = 6;

interface Scope {
  bundle: Bundle;
  directory: string;
  kills: number;
  conversations: number;
  seed: number;
  keep(history: History): void;
}

/** The parts of the case, in their order. Each throws if a rule is violated, or if it caused too little to prove the rules. */
const PARTS: Readonly<Record<string, (scope: Scope) => Promise<ResultRow[]>>> = {
  storm: async ({ bundle, directory, kills, conversations, seed, keep }) => {
    console.log(`${kills} kills during ${conversations} conversations, seed ${seed}:`);
    const options = { kills, conversations, seed, patienceMs: PATIENCE_MS };
    const history = await onSite(bundle, directory, (site) => storm(site, options, tick), keep);
    console.log(`\n${summariesIn(history)} histories were compacted in the storm.`);
    refuseViolations(check(history));
    refuse(missing(history));
    if (summariesIn(history) === 0) refuse(["No history was compacted."]);
    return rowsOf(history);
  },
  "one-turn": async ({ bundle, directory, keep }) => {
    console.log(`\n${MAX_RECOVERIES} kills within one turn, then one more:`);
    const options = { kills: MAX_RECOVERIES, patienceMs: ONE_TURN_PATIENCE_MS };
    const history = await onSite(bundle, directory, (site) => oneTurn(site, options, tick), keep);
    refuseViolations(check(history));
    refuse(outcomeAmiss(history));
    return oneTurnRows(history);
  },
  background: async ({ bundle, directory, kills, conversations, seed }) => {
    console.log(`\n${kills} kills between batches of signals and work in the background:`);
    const options = { kills, conversations, seed, patienceMs: BACKGROUND_PATIENCE_MS };
    const history = await background(bundle, directory, options, tick);
    refuseViolations(checkBackground(history));
    refuse(missingIn(history));
    return backgroundRows(history);
  },
  trees: async ({ bundle, directory, kills, seed }) => {
    console.log(`\n${kills} kills over trees of agents:`);
    const options = { kills, users: TREE_USERS, seed, patienceMs: TREES_PATIENCE_MS, settleMs: 60_000 };
    const history = await trees(bundle, directory, options, tick);
    refuse(checkTrees(history));
    refuse(missingInTrees(history));
    return treeRows(history);
  },
  runs: async ({ bundle, directory, kills, seed }) => {
    const count = Math.ceil(kills / KILLS_OF_RUN);
    console.log(`\n${KILLS_OF_RUN} kills within the fan-out of each of ${count} runs:`);
    const options = { runs: count, kills: KILLS_OF_RUN, branches: BRANCHES, seed };
    const history = await runs(bundle, directory, { ...options, patienceMs: RUNS_PATIENCE_MS }, tick);
    refuse(checkRuns(history));
    refuse(missingInRuns(history));
    return runRows(history);
  },
  versions: async ({ bundle, directory, kills, seed }) => {
    console.log(`\n${kills} kills during forks, edits and regenerations:`);
    const options = { kills, users: VERSIONS_USERS, seed, patienceMs: VERSIONS_PATIENCE_MS };
    const history = await versions(bundle, directory, options, tick);
    refuse(checkVersions(history));
    refuse(missingInVersions(history));
    return versionsRows(history);
  },
};

/**
 * Options: `--kills`, `--conversations`, `--seed`, `--part NAME` for one part alone, and `--history FILE` for the recorded history, one JSON
 * text per scenario.
 */
export async function runKills(directory: string, args: readonly string[]): Promise<ResultRow[]> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      kills: { type: "string", default: "50" },
      conversations: { type: "string", default: "20" },
      seed: { type: "string", default: String(Date.now() % 1_000_000) },
      history: { type: "string" },
      part: { type: "string" },
    },
  });
  const [kills, conversations, seed] = [values.kills, values.conversations, values.seed].map(Number);
  if (!kills || !conversations || seed === undefined || Number.isNaN(seed)) {
    throw new Error("--kills, --conversations and --seed must be numbers.");
  }
  const chosen = Object.entries(PARTS).filter(([name]) => values.part === undefined || name === values.part);
  if (chosen.length === 0) throw new Error(`--part must be one of ${Object.keys(PARTS).join(", ")}.`);
  const bundle = await buildKillsBundle(directory);
  const keep = (history: History) => {
    if (values.history !== undefined) appendFileSync(values.history, `${JSON.stringify(history)}\n`);
  };
  const rows: ResultRow[] = [];
  for (const [name, part] of chosen)
    rows.push(
      ...(await part({ bundle, directory: join(directory, name), kills, conversations, seed, keep })),
    );
  return rows;
}

export function buildKillsBundle(directory: string): Promise<Bundle> {
  return buildBundle(join(directory, "bundle"), join(BENCH_DIR, "kills", "wrangler.jsonc"));
}

/** Runs a scenario on its own server. Also after an error, `keep` receives the history and the server stops. */
export async function onSite(
  bundle: Bundle,
  directory: string,
  scenario: (site: Site) => Promise<void>,
  keep: (history: History) => void = () => {},
): Promise<History> {
  const site = await Site.open(bundle, directory);
  try {
    await scenario(site);
    return site.history;
  } catch (error) {
    throw new Error(`The scenario did not end. Last output of the server:\n${site.output().slice(-5_000)}`, {
      cause: error,
    });
  } finally {
    keep(site.history);
    await site.close();
  }
}

/** Returns the missing kinds of interruption. A storm must cause each kind, or it proves too little. */
export function missing(history: History): string[] {
  const kinds = new Set(interruptionsOf(history).map((one) => one.in));
  return (["stream", "tool", "between"] as const)
    .filter((kind) => !kinds.has(kind))
    .map((kind) => `No kill interrupted a turn: ${kind}.`);
}

/** Returns the number of summaries that replace older turns. */
function summariesIn({ finals }: History): number {
  return finals.flatMap(({ journal }) => journal).filter(({ type }) => type === "context.compacted").length;
}

/** Returns the wrong outcomes. The surviving turn must complete, and the other turn, with one more kill, must fail. */
export function outcomeAmiss({ finals }: History): string[] {
  const endOf = ({ key }: { key: string }) => {
    const frames = finals.find((final) =>
      final.frames.some((frame) => frame.type === "turn.started" && frame.data.clientId === key),
    )?.frames;
    return frames?.find(({ type }) => type === "turn.completed" || type === "turn.failed")?.type;
  };
  return [
    ...(endOf(SURVIVOR) === "turn.completed" ? [] : ["The turn failed before the limit of kills."]),
    ...(endOf(VICTIM) === "turn.failed" ? [] : ["The turn survived more kills than the limit."]),
  ];
}

function oneTurnRows(history: History): ResultRow[] {
  const own = interruptionsOf(history).filter(({ key }) => key === SURVIVOR.key);
  const of = { case: "kills", system: "dramatis" };
  return [
    summarise({ ...of, metric: "kills within one turn", unit: "count" }, [own.length]),
    summarise(
      { ...of, metric: "resume, within one turn", unit: "ms" },
      own.map(({ resumedAfterMs }) => resumedAfterMs),
    ),
  ];
}

function treeRows({ kills, trees: grown, hits }: TreesHistory): ResultRow[] {
  const row = (metric: string, count: number) =>
    summarise({ case: "kills", system: "dramatis", metric: `trees: ${metric}`, unit: "count" }, [count]);
  return [
    row("kills", kills.length),
    row("trees", grown.length),
    row("stopped", grown.filter(({ stopped }) => stopped).length),
    row("conversations", grown.flatMap(({ rooms }) => rooms).length),
    row("runs of tools", hits.length),
  ];
}

function versionsRows({ kills, acts, hits, finals }: VersionsHistory): ResultRow[] {
  const row = (metric: string, count: number) =>
    summarise({ case: "kills", system: "dramatis", metric: `versions: ${metric}`, unit: "count" }, [count]);
  return [
    row("kills", kills.length),
    row("conversations", finals.length),
    ...ACTS.flatMap((kind) => {
      const own = acts.filter((act) => act.kind === kind);
      return [row(kind, own.length), row(`${kind}, interrupted`, own.filter(({ lost }) => lost > 0).length)];
    }),
    row("runs of tools", hits.filter(({ kind }) => kind === "tool").length),
  ];
}

function runRows({ kills, runs: ended, hits }: RunsHistory): ResultRow[] {
  const all = ended.flatMap((run) => [run, ...run.below]);
  const row = (metric: string, count: number) =>
    summarise({ case: "kills", system: "dramatis", metric: `runs: ${metric}`, unit: "count" }, [count]);
  const entries = (type: string) =>
    all.flatMap(({ journal }) => journal).filter((entry) => entry.type === type).length;
  const operations = new Set(hits.map(({ operationId }) => operationId)).size;
  return [
    row("kills", kills.length),
    row("runs", ended.length),
    row("runs of sub-workflows", all.length - ended.length),
    row("tasks", entries("task.completed") + entries("task.failed")),
    row("outcomes unknown", entries("task.failed")),
    row("requests per operation", hits.length / operations),
  ];
}

function refuseViolations(violations: readonly Violation[]): void {
  refuse(violations.map(({ rule, conversation, what }) => `${rule} ${conversation}: ${what}`));
}

function refuse(faults: readonly string[]): void {
  if (faults.length > 0) throw new Error(`The run violated a rule:\n${faults.slice(0, 50).join("\n")}`);
}

function tick(done: number): void {
  process.stdout.write(`${done} `);
}
