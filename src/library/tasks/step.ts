/**
 * The steps of a task, as authors write them, and their checks.
 *
 * STEP-1  Every problem of a task's steps is found where the task is defined, and named by its place: references that are used twice,
 *         kinds of actions and options that do not exist, expressions that cannot be compiled, and paths that cannot be written.
 * STEP-2  A task has the weakest effect of its steps: with one `once` action it is `once`, and runs no second time.
 */
import { z } from "zod";
import type { RetryPolicy, ToolEffect } from "../../protocol/definitions.ts";
import { DramatisError, type InputIssue } from "../../shared/errors.ts";
import { compileExpression } from "../../shared/expressions/expression.ts";
import { type Mapping, mappingIssues } from "../../shared/expressions/mapping.ts";
import { ExpressionError } from "../../shared/expressions/values.ts";
import { inputIssues, issuesText } from "../../shared/validation.ts";
import { listIds } from "../known-ids.ts";
import { MAX_TOOL_BACKOFF_MS } from "../schemas.ts";
import { ACTION_KINDS, type Action, isKind, kindOf } from "./action.ts";
import { MAX_STEP_ATTEMPTS, MAX_STEPS } from "./limits.ts";
import { AREA_NAMES, pathProblem } from "./paths.ts";

/** What happens at a step: its action runs, or it is left out, or the task ends. */
const OUTCOMES = ["continue", "skip", "succeed", "fail"] as const;
export type StepOutcome = (typeof OUTCOMES)[number];

/** After a failure: the task fails; or it fails and may be run again from its first step; or it goes on. */
const ON_FAILURE = ["abort", "retry", "continue"] as const;

/** The second argument of `step`. Expressions are CEL over `input`, `state` and `output`. */
export interface StepOptions {
  action: Action;
  /** Decides what happens at the step. `then` is `continue` when absent, `else` is `skip`. */
  condition?: { if: string; then?: StepOutcome; else?: StepOutcome };
  /** The members of the action's input. The task's input when absent. */
  inputMapping?: Mapping;
  /**
   * What the step writes, by path: expressions that may use `result`, too. When absent, the result becomes `state._lastOutput`.
   * @example { "state.order": "result", "output.total": "result.total" }
   */
  outputMapping?: Mapping;
  /** Attempts of the action while its error may pass; one when absent. Not for `once` actions. */
  retry?: RetryPolicy;
  /** `abort` when absent. `continue` adds the error to `state._errors`. */
  onFailure?: (typeof ON_FAILURE)[number];
}

/** One step of a task. */
export interface Step extends StepOptions {
  /** Names the step in its task. */
  readonly ref: string;
}

const mapping = z.record(z.string().min(1).max(200), z.string().min(1));
const outcome = z.enum(OUTCOMES);

const stepSchema = z.strictObject({
  ref: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, "Must be 1 to 64 letters, digits, `_` and `-`."),
  action: z.unknown().optional(),
  condition: z.exactOptional(
    z.strictObject({
      if: z.string().min(1),
      then: z.exactOptional(outcome),
      else: z.exactOptional(outcome),
    }),
  ),
  inputMapping: z.exactOptional(mapping),
  outputMapping: z.exactOptional(mapping),
  retry: z.exactOptional(
    z.strictObject({
      maxAttempts: z.int().min(2).max(MAX_STEP_ATTEMPTS),
      backoffMs: z.int().min(0).max(MAX_TOOL_BACKOFF_MS),
    }),
  ),
  onFailure: z.exactOptional(z.enum(ON_FAILURE)),
});

/**
 * Returns a step of a task. `defineTask` checks it.
 * @example step("load", { action: loadOrder, inputMapping: { id: "input.orderId" }, outputMapping: { "state.order": "result" } });
 */
export function step(ref: string, options: StepOptions): Step {
  return { ref, ...options };
}

/** Throws `INVALID_INPUT` unless a task may have these steps. */
export function checkSteps(task: string, steps: readonly Step[]): void {
  const found = stepsIssues(steps);
  const issues = found.length > 0 ? found : againIssues(steps);
  if (issues.length === 0) return;
  throw new DramatisError("INVALID_INPUT", `Task "${task}" is not valid: ${issuesText(issues)}`, {
    errors: issues,
  });
}

/** Returns the effect of running the steps twice. */
export function effectOf(steps: readonly Step[]): ToolEffect {
  const effects = new Set(steps.map(({ action }) => kindOf(action).effect(action)));
  return (["once", "idempotent"] as const).find((effect) => effects.has(effect)) ?? "pure";
}

function stepsIssues(steps: unknown): InputIssue[] {
  if (!Array.isArray(steps) || steps.length === 0)
    return [{ path: "/steps", message: "Must be a list of steps, made with step(…)." }];
  if (steps.length > MAX_STEPS)
    return [{ path: "/steps", message: `Must have at most ${MAX_STEPS} steps. It has ${steps.length}.` }];
  const refs = steps.map((one: Partial<Step> | null) => one?.ref);
  return steps.flatMap((one: unknown, index) => {
    const base = `/steps/${index}`;
    const parsed = stepSchema.safeParse(one);
    if (!parsed.success) return inputIssues(parsed.error, base);
    const { ref, action } = parsed.data;
    const isRepeated = refs.indexOf(ref) < index;
    const repeated = {
      path: `${base}/ref`,
      message: `Another step is named "${ref}", too. Rename one of them.`,
    };
    return [
      ...(isRepeated ? [repeated] : []),
      ...actionIssues(action, `${base}/action`),
      ...retryIssues(parsed.data as Step, base),
      ...expressionIssues(parsed.data as Step, base),
    ];
  });
}

/** Returns the steps that would have their task run again although it must not (STEP-2). */
function againIssues(steps: readonly Step[]): InputIssue[] {
  const once = steps.find((one) => effectOf([one]) === "once");
  if (once === undefined) return [];
  const message = `Must not be "retry": with the \`once\` action of step "${once.ref}" the task has one attempt.`;
  return steps.flatMap(({ onFailure }, index) =>
    onFailure === "retry" ? [{ path: `/steps/${index}/onFailure`, message }] : [],
  );
}

function actionIssues(action: unknown, path: string): InputIssue[] {
  const { kind } = (action ?? {}) as { kind?: unknown };
  if (!isKind(kind)) {
    const known = `It is one of: ${listIds(String(kind), ACTION_KINDS)}.`;
    const message =
      kind === undefined
        ? `Must be made with defineAction(…), or have a \`kind\`. ${known}`
        : `There is no kind of actions "${String(kind)}". ${known}`;
    return [{ path: `${path}/kind`, message }];
  }
  // SAFETY: the schema of the kind checks the rest.
  const given = action as Action;
  const parsed = kindOf(given).schema.safeParse(given);
  if (!parsed.success) return inputIssues(parsed.error, path);
  const mappings = kindOf(given).mappings?.(given) ?? [];
  return mappings.flatMap(({ path: place, mapping: own }) =>
    mappingIssues(own, AREA_NAMES, `${path}${place}`),
  );
}

function retryIssues({ action, retry }: Step, base: string): InputIssue[] {
  if (retry === undefined || !isKind(action?.kind) || !kindOf(action).schema.safeParse(action).success)
    return [];
  if (kindOf(action).effect(action) !== "once") return [];
  const message = "A `once` action has one attempt, because a failed one may have taken effect.";
  return [{ path: `${base}/retry`, message }];
}

function expressionIssues(
  { condition, inputMapping = {}, outputMapping = {} }: Step,
  base: string,
): InputIssue[] {
  const paths = Object.keys(outputMapping).flatMap((path) => {
    const problem = pathProblem(path);
    return problem === null ? [] : [{ path: `${base}/outputMapping/${path}`, message: problem }];
  });
  return [
    ...(condition === undefined ? [] : conditionIssues(condition.if, `${base}/condition/if`)),
    ...mappingIssues(inputMapping, AREA_NAMES, `${base}/inputMapping`),
    ...paths,
    ...mappingIssues(outputMapping, [...AREA_NAMES, "result"], `${base}/outputMapping`),
  ];
}

function conditionIssues(source: string, path: string): InputIssue[] {
  try {
    compileExpression(source, AREA_NAMES);
    return [];
  } catch (error) {
    if (error instanceof ExpressionError) return [{ path, message: error.message }];
    throw error;
  }
}
