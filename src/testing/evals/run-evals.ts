/**
 * Runs evals, and compares their scores with a baseline.
 *
 * EVAL-1  An eval fails if its mean score is below its threshold or its baseline, or if a case fails or needs a call.
 * EVAL-2  An eval without cases, or with two cases of one id, is refused. Without a threshold, a score of 0 fails.
 */
import type { ModelGateway } from "../../model/gateway.ts";
import type { ModelProfile } from "../../model/profile.ts";
import { errorText, invalid } from "../../shared/errors.ts";
import {
  CallNeeded,
  type Eval,
  type EvalCase,
  type EvalContext,
  type EvalOutput,
  type Score,
} from "./eval.ts";
import { RecordedReplies } from "./recorded-replies.ts";

/** The result of a case. */
export interface CaseResult {
  id: string;
  /** The scores by scorer; empty for a case without an output. */
  scores: Readonly<Record<string, number>>;
  /** Reasons of scores below 1, by scorer. */
  reasons: Readonly<Record<string, string>>;
  /** `needs call`: no recorded reply or result answers the case. */
  status: "scored" | "failed" | "needs call";
  /** The problem of a case that was not scored. */
  problem?: string;
}

/** The result of an eval. */
export interface EvalResult {
  name: string;
  /** The mean of all scores; 0 without a scored case. */
  score: number;
  threshold: number;
  /** The mean of each scorer. */
  scorers: Readonly<Record<string, number>>;
  cases: readonly CaseResult[];
  /** The mean score of the baseline. */
  baseline?: number;
  passed: boolean;
}

export type Baseline = Readonly<Record<string, { score: number; cases: Readonly<Record<string, number>> }>>;

export interface RunEvalsOptions {
  baseline?: Baseline;
  /** Calls models for requests without a recorded reply. */
  live?: ModelGateway;
  /** The model of agents without a model profile, as the environment chooses it. */
  defaultProfile?: ModelProfile;
  replies?: RecordedReplies;
}

/** Differences of scores below this number are errors of rounding. */
const EPSILON = 1e-9;

export async function runEvals(
  evals: readonly Eval[],
  { baseline = {}, live, defaultProfile: chosen, replies = new RecordedReplies() }: RunEvalsOptions = {},
): Promise<EvalResult[]> {
  const results: EvalResult[] = [];
  const defaultProfile = replies.defaultProfile(live !== undefined, chosen);
  for (const one of evals) {
    const data = typeof one.data === "function" ? await one.data() : one.data;
    checkCases(one.name, data);
    const cases: CaseResult[] = [];
    for (const [index, item] of data.entries())
      cases.push(await runCase(one, item, index, { live, defaultProfile, replies }));
    results.push(resultOf(one, cases, baseline[one.name]?.score));
  }
  return results;
}

function checkCases(name: string, data: readonly EvalCase[]): void {
  const refuse = (problem: string) => invalid(`Eval "${name}": ${problem}`);
  if (data.length === 0) throw refuse("it has no cases. Check the file of its `data`.");
  const ids = data.map(idOf);
  const twice = ids.find((id, index) => ids.indexOf(id) !== index);
  if (twice !== undefined) throw refuse(`two cases have the id "${twice}". Rename one of them.`);
}

function idOf({ id }: EvalCase, index: number): string {
  return id ?? String(index + 1);
}

async function runCase(
  { run, scorers }: Eval,
  item: EvalCase,
  index: number,
  {
    live,
    defaultProfile,
    replies,
  }: { live: ModelGateway | undefined; defaultProfile: ModelProfile; replies: RecordedReplies },
): Promise<CaseResult> {
  const id = idOf(item, index);
  const needs: string[] = [];
  const gateway = replies.gateway(live, defaultProfile, (problem) => needs.push(problem));
  const context: EvalContext = { gateway, defaultProfile };
  let isAnswered = false;
  try {
    const given = await run(item, context);
    if (needs[0] !== undefined) throw new CallNeeded(needs[0]);
    isAnswered = true;
    const output: EvalOutput = typeof given === "string" ? { text: given } : given;
    const scores: Record<string, number> = {};
    const reasons: Record<string, string> = {};
    for (const { name, score } of scorers) {
      const { value, reason } = scoreOf(name, await score(item, output, context));
      scores[name] = value;
      if (reason !== undefined && value < 1) reasons[name] = reason;
    }
    return { id, scores, reasons, status: "scored" };
  } catch (error) {
    const problem = needs[0] ?? errorText(error);
    const isMissing = error instanceof CallNeeded && !(isAnswered && live !== undefined);
    const status = isMissing || needs.length > 0 ? "needs call" : "failed";
    return { id, scores: {}, reasons: {}, status, problem };
  }
}

function scoreOf(scorer: string, score: Score): { value: number; reason: string | undefined } {
  const value = Number(typeof score === "object" ? score.score : score);
  if (!(value >= 0 && value <= 1))
    throw new Error(
      `The scorer "${scorer}" gave ${value}. A score is a number from 0 to 1, or true or false.`,
    );
  return { value, reason: typeof score === "object" ? score.reason : undefined };
}

function resultOf(
  { name, scorers, threshold: needed }: Eval,
  cases: readonly CaseResult[],
  baseline: number | undefined,
): EvalResult {
  const scored = cases.filter(({ status }) => status === "scored");
  const means = scorers.map((scorer): [string, number] => [
    scorer.name,
    mean(scored.map(({ scores }) => scores[scorer.name] ?? 0)),
  ]);
  const score = mean(means.map(([, value]) => value));
  const threshold = needed ?? 0;
  const passed =
    (needed !== undefined || score > 0) &&
    scored.length === cases.length &&
    score >= threshold - EPSILON &&
    (baseline === undefined || score >= baseline - EPSILON);
  const compared = baseline === undefined ? {} : { baseline };
  return { name, score, threshold, scorers: Object.fromEntries(means), cases, ...compared, passed };
}

function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}

export function baselineOf(results: readonly EvalResult[]): Baseline {
  return Object.fromEntries(
    results.map(({ name, score, cases }) => [
      name,
      { score, cases: Object.fromEntries(cases.map(({ id, scores }) => [id, mean(Object.values(scores))])) },
    ]),
  );
}
