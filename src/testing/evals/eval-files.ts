/**
 * Finds evals in files, runs them, and compares them with a baseline.
 *
 * EVALLIVE-1  Live calls use the default model, the base URLs and the keys of the environment, as the server does.
 */
import { existsSync, globSync, readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { z } from "zod";
import { atBaseUrl, defaultModelProfile, OFFLINE_PROFILE } from "../../adapters/default-profile.ts";
import { createModelGateway, secretsOf } from "../../adapters/gateway/gateway.ts";
import { trustedHosts } from "../../adapters/gateway/trusted-hosts.ts";
import type { ModelGateway } from "../../model/gateway.ts";
import type { ModelProfile } from "../../model/profile.ts";
import { systemClock } from "../../ports/system.ts";
import { defined } from "../../shared/defined.ts";
import { notFound } from "../../shared/errors.ts";
import { parseJson } from "../../shared/json.ts";
import { validate } from "../../shared/validation.ts";
import { asBundled } from "./as-bundled.ts";
import { type Eval, isEval } from "./eval.ts";
import { RecordedReplies } from "./recorded-replies.ts";
import { type Baseline, baselineOf, type EvalResult, runEvals } from "./run-evals.ts";

/** The options of `evalFiles`. */
export interface EvalFilesOptions {
  /** The file of the baseline. Default: `evals.baseline.json`, if it exists. */
  baseline?: string;
  /** Saves the scores of passed evals in the baseline. */
  save?: boolean;
  /** Calls models for requests without a recorded reply, and records the replies. */
  live?: boolean;
  /** The file of recorded replies. Default: `evals.replies.json`. */
  replies?: string;
}

const PATTERN = "**/*.eval.{ts,mts,js,mjs}";
const baselineSchema = z.record(
  z.string(),
  z.object({ score: z.number(), cases: z.record(z.string(), z.number()) }),
);

/** The results of evals. */
export interface EvalReport {
  results: readonly EvalResult[];
  /** The table of the results, and the problems of cases. */
  text: string;
  /** No eval failed. A run that saves the baseline does not compare with it. */
  passed: boolean;
}

/**
 * Runs the evals of these files; without files, of all `*.eval.ts` and `*.eval.js` below the folder.
 * @example
 * const { text, passed } = await evalFiles(process.argv.slice(2));
 * console.log(text);
 * process.exitCode = passed ? 0 : 1;
 */
export async function evalFiles(
  files: readonly string[],
  {
    baseline,
    save = false,
    live = false,
    replies: repliesPath = "evals.replies.json",
  }: EvalFilesOptions = {},
): Promise<EvalReport> {
  const path = baseline ?? "evals.baseline.json";
  const evals = await evalsIn(files);
  const replies = new RecordedReplies(repliesPath);
  const defaultProfile = modelOf(process.env);
  const results = await runEvals(evals, {
    ...{ replies, baseline: save ? {} : readBaseline(path, baseline !== undefined) },
    ...defined({ defaultProfile }),
    ...(live && { live: liveGateway(process.env) }),
  });
  replies.save();
  if (save) {
    const saved = { ...readBaseline(path, false), ...baselineOf(results.filter(({ passed }) => passed)) };
    writeFileSync(path, `${JSON.stringify(saved, null, 2)}\n`);
  }
  const text = reportOf(results, replies.calls).join("\n");
  return { results, text, passed: results.every(({ passed }) => passed) };
}

/** Returns the default model of the environment; `undefined` if it sets none. */
function modelOf(env: NodeJS.ProcessEnv): ModelProfile | undefined {
  const chosen = defaultModelProfile(env, false);
  return chosen === OFFLINE_PROFILE ? undefined : chosen;
}

/** Returns a gateway that trusts the hosts of all profiles, because they are in the code of the project. */
function liveGateway(env: NodeJS.ProcessEnv): ModelGateway {
  return {
    stream({ profile: given, body: { prompt_cache_key, ...rest }, context }, signal) {
      const profile = atBaseUrl(given, env);
      // A compatible server may refuse this member.
      const isOwnHost = profile.baseUrl === undefined && prompt_cache_key !== undefined;
      const ports = {
        secret: secretsOf(env),
        fetch: (input: string, init: RequestInit) => fetch(input, init),
        clock: systemClock,
        trustedHosts: trustedHosts({ env, profiles: [profile] }),
      };
      const body = isOwnHost ? { ...rest, prompt_cache_key } : rest;
      return createModelGateway(ports).stream({ profile, body, context }, signal);
    },
  };
}

async function evalsIn(files: readonly string[]): Promise<Eval[]> {
  const isOwn = (name: string) => !/(?:^|[\\/])(?:node_modules|dist)(?:[\\/]|$)/.test(name);
  const paths = files.length > 0 ? files : globSync(PATTERN).filter(isOwn).sort();
  const absent = paths.find((path) => !existsSync(path));
  if (absent !== undefined) throw notFound(`There is no file "${absent}". Name a file that exports an eval.`);
  const modules = await asBundled(() =>
    Promise.all(paths.map((path) => import(pathToFileURL(resolve(path)).href))),
  );
  const evals = modules.flatMap((module) => Object.values(module).filter(isEval));
  if (evals.length > 0) return [...new Set(evals)];
  const where =
    paths.length === 0 ? `No file matches ${PATTERN}.` : `No eval is exported by ${paths.join(", ")}.`;
  throw notFound(`${where} Export the result of \`defineEval\`.`);
}

function readBaseline(path: string, isRequired: boolean): Baseline {
  if (!isRequired && !existsSync(path)) return {};
  return validate(baselineSchema, parseJson(readFileSync(path, "utf8")), "", `The baseline ${path}`);
}

function reportOf(results: readonly EvalResult[], calls: number): string[] {
  const shown = (score: number) => score.toFixed(2);
  const rows = results.map(({ name, cases, scorers, score, threshold, baseline, passed }) => [
    name,
    String(cases.length),
    Object.entries(scorers)
      .map(([scorer, mean]) => `${scorer} ${shown(mean)}`)
      .join("  "),
    shown(score),
    shown(threshold),
    baseline === undefined
      ? "–"
      : `${shown(baseline)} (${score < baseline ? "" : "+"}${shown(score - baseline)})`,
    passed ? "passed" : "FAILED",
  ]);
  const all = [["eval", "cases", "scorers", "score", "threshold", "baseline", "result"], ...rows];
  const widths = all[0]?.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0))) ?? [];
  const table = all.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
  const problems = results.flatMap(({ name, cases }) =>
    cases.flatMap(({ id, status, problem, reasons }) => [
      ...(status === "needs call" ? [`${name} ${id} needs a call: ${problem}`] : []),
      ...(status === "failed" ? [`${name} ${id} failed: ${problem}`] : []),
      ...Object.entries(reasons).map(([scorer, reason]) => `${name} ${id} ${scorer}: ${reason}`),
    ]),
  );
  const cost = calls === 0 ? "No model was called." : `${calls} model calls were made.`;
  return [...table, ...(problems.length > 0 ? ["", ...problems] : []), "", cost];
}
