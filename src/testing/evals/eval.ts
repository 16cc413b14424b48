/** Evals: data, the code that answers it, and the functions that score the answers. */
import type { ModelGateway } from "../../model/gateway.ts";
import type { ModelProfile } from "../../model/profile.ts";
import type { TurnRecording } from "../../protocol/recording.ts";
import { invalid } from "../../shared/errors.ts";
import type { JsonValue } from "../../shared/json.ts";
import type { ScriptedReply } from "../model-script.ts";
import type { TestCall } from "../test-turn.ts";

/** One case of an eval: a line of a JSON Lines file, an item of an array, or a recording. */
export interface EvalCase {
  /** Unique in its eval. Default: the number of the case. */
  id?: string;
  input: JsonValue;
  expected?: JsonValue;
  /** Recorded replies of the models, in order. With them, the case calls no model. */
  replies?: readonly (string | ScriptedReply)[];
  /** A recorded turn: its replies and the results of its tools replace calls. */
  recording?: TurnRecording;
}

/** The answer to a case. */
export interface EvalOutput {
  text: string;
  /** The structured answer, if there is one. */
  output?: JsonValue;
  /** The calls of tools, in order. */
  calls?: readonly Pick<TestCall, "name" | "input" | "output">[];
}

/** The services of a run and of a scorer. */
export interface EvalContext {
  /** Calls models on recorded replies, or live with the option `live`. */
  gateway: ModelGateway;
  /** The model of agents without a model profile. */
  defaultProfile: ModelProfile;
}

/** Answers a case. Throws `CallNeeded` for a case without a recorded reply or result, and another error for a case that fails. */
export type EvalRun = (one: EvalCase, context: EvalContext) => Promise<EvalOutput | string>;

/** A score from 0 to 1, or passed and failed. */
export type Score = number | boolean | { score: number; reason?: string };

/** A scorer and its name in tables. */
export interface Scorer {
  name: string;
  score(one: EvalCase, output: EvalOutput, context: EvalContext): Score | Promise<Score>;
}

/** The argument of `defineEval`. */
export interface EvalOptions {
  /** Unique in a project. */
  name: string;
  data: readonly EvalCase[] | (() => readonly EvalCase[] | Promise<readonly EvalCase[]>);
  run: EvalRun;
  scorers: readonly Scorer[];
  /** The mean score that the eval needs, from 0 to 1. Without it, any score above 0 passes. */
  threshold?: number;
}

/** An eval. `npx dramatis eval` runs the evals that a module exports. */
export interface Eval extends EvalOptions {
  readonly kind: "eval";
}

/** The error of a case that needs a call of a model or a tool, which no recorded reply or result replaces. */
export class CallNeeded extends Error {
  override readonly name = "CallNeeded";
}

/**
 * Defines an eval. Throws `INVALID_INPUT`.
 * @example
 * export default defineEval({
 *   name: "support",
 *   data: fromJsonl("evals/support.jsonl"),
 *   run: evalAgent({ libraries: [library] }, "guide"),
 *   scorers: [contains(), toolOrder(["search"])],
 *   threshold: 0.8,
 * });
 */
export function defineEval(options: EvalOptions): Eval {
  const { name, scorers, threshold = 0 } = options;
  const refuse = (problem: string) => invalid(`Eval "${name}": ${problem}`);
  if (typeof name !== "string" || name === "") throw refuse("`name` must be a text.");
  if (scorers.length === 0) throw refuse("`scorers` is empty. Add a scorer, such as `contains()`.");
  if (!(threshold >= 0 && threshold <= 1))
    throw refuse(`\`threshold\` must be from 0 to 1, not ${threshold}.`);
  const names = scorers.map((scorer) => scorer.name);
  const twice = names.find((one, index) => names.indexOf(one) !== index);
  if (twice !== undefined) throw refuse(`two scorers have the name "${twice}". Rename one of them.`);
  return { ...options, kind: "eval" };
}

export function isEval(value: unknown): value is Eval {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "eval";
}
