/**
 * The stored form of a task's steps, and their checks.
 *
 * STEP-1  Defining a task reports all problems of its steps with their places: duplicate refs, unknown kinds of actions, unknown options,
 *         expressions that do not compile, and invalid paths.
 * STEP-2  A task has the strictest effect of its steps. With a `once` action, the task is `once` and has one attempt.
 * STEP-9  A step that asks a person must be the only step of its task. Its action alone is used: the step's condition, retry and output mapping
 *         have no effect. For actions of a library, this is checked when the task is pinned.
 * STEP-8  If steps have `ordinal`, the ordinals must be 0, 1, 2 and so on. They set the order.
 */
import { z } from "zod";
import type { ToolEffect } from "../../protocol/definition-parts.ts";
import type { StepDefinition } from "../../protocol/task-definition.ts";
import type { InputIssue } from "../../shared/errors.ts";
import { compileExpression } from "../../shared/expressions/expression.ts";
import { mappingIssues } from "../../shared/expressions/mapping.ts";
import { ExpressionError } from "../../shared/expressions/values.ts";
import { isJsonObject } from "../../shared/json.ts";
import { templateBudget } from "../../shared/templates/template.ts";
import { inputIssues, plainly } from "../../shared/validation.ts";
import { referenceSchema } from "../definitions/reference.ts";
import { MAX_TOOL_BACKOFF_MS } from "../tools/tool-schema.ts";
import { normalAction, optionIssues } from "./actions-schema.ts";
import { asksPerson } from "./kinds.ts";
import { AREA_NAMES, pathProblem } from "./paths.ts";
import { MAX_STEP_ATTEMPTS, MAX_STEPS } from "./task-limits.ts";

const mapping = z.record(z.string().min(1).max(200), z.string().min(1));
const outcome = z.enum(["continue", "skip", "succeed", "fail"]);

const stepSchema = z.strictObject({
  ref: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, "Must be 1 to 64 letters, digits, `_` and `-`."),
  action: z.unknown().optional(),
  condition: z
    .strictObject({
      if: z.string().min(1),
      then: outcome.exactOptional(),
      else: outcome.exactOptional(),
    })
    .exactOptional(),
  inputMapping: mapping.exactOptional(),
  outputMapping: mapping.exactOptional(),
  retry: z
    .strictObject({
      maxAttempts: z.int().min(2).max(MAX_STEP_ATTEMPTS),
      backoffMs: z.int().min(0).max(MAX_TOOL_BACKOFF_MS),
    })
    .exactOptional(),
  idempotencyKey: z.string().min(1).exactOptional(),
  onFailure: z.enum(["abort", "retry", "continue"]).exactOptional(),
});

/** Returns the stored form of steps: sorted by ordinal, without the ordinals (STEP-8). Other problems stay for the checks. */
export function normalSteps(steps: unknown): unknown {
  if (!Array.isArray(steps)) return steps;
  const ordinals = steps.map((one: unknown) => (isJsonObject(one) ? one.ordinal : undefined));
  const isOrdered = ordinals.every((_, place) => ordinals.includes(place));
  const inOrder = isOrdered ? steps.toSorted((one, other) => one.ordinal - other.ordinal) : steps;
  return inOrder.map((one: unknown) => {
    if (!isJsonObject(one)) return one;
    const { ordinal: _, ...rest } = one;
    const kept = isOrdered || one.ordinal === undefined ? rest : one;
    return "action" in kept ? { ...kept, action: normalAction(kept.action) } : kept;
  });
}

/** The error of a question to a person in a task with other steps. */
export const ALONE =
  "Asks a person, so it must be the only step of its task. Move the other steps into other nodes of the workflow.";

function isQuestion(step: unknown): boolean {
  const { action } = (step ?? {}) as { action?: unknown };
  return isJsonObject(action) && typeof action.kind === "string" && asksPerson({ kind: action.kind });
}

/** Returns the problems of steps in their stored form (STEP-1), without the keywords of schemas. */
export function stepsIssues(steps: unknown): InputIssue[] {
  if (!Array.isArray(steps) || steps.length === 0)
    return [
      {
        path: "/steps",
        message: `Must be a list of 1 to ${MAX_STEPS} steps. In code, make each with step(…).`,
      },
    ];
  if (steps.length > MAX_STEPS)
    return [{ path: "/steps", message: `Must have at most ${MAX_STEPS} steps. It has ${steps.length}.` }];
  const together = steps.flatMap((one: unknown, index) =>
    steps.length > 1 && isQuestion(one) ? [index] : [],
  );
  if (together.length > 0)
    return together.map((index) => ({ path: `/steps/${index}/action`, message: ALONE }));
  const meter = templateBudget();
  const refs = steps.map((one: Partial<StepDefinition> | null) => one?.ref);
  return steps.flatMap((one: unknown, index) => {
    const base = `/steps/${index}`;
    if (isJsonObject(one) && "ordinal" in one)
      return [
        {
          path: `${base}/ordinal`,
          message: "The ordinals of the steps must be 0, 1, 2 and so on, each once.",
        },
      ];
    const parsed = stepSchema.safeParse(one, { error: plainly });
    if (!parsed.success) return inputIssues(parsed.error, base);
    const { ref, action } = parsed.data;
    const isRepeated = refs.indexOf(ref) < index;
    const repeated = {
      path: `${base}/ref`,
      message: `Another step is named "${ref}", too. Rename one of them.`,
    };
    // SAFETY: the schema has checked all members but the action.
    const checked = parsed.data as unknown as StepDefinition;
    return [
      ...(isRepeated ? [repeated] : []),
      ...(isReference(action)
        ? referenceIssues(action, base)
        : optionIssues(action, `${base}/action`, meter)),
      ...expressionIssues(checked, base),
    ];
  });
}

export type EffectLookup = (action: StepDefinition["action"]) => ToolEffect | undefined;

/** Returns the effect of running the steps twice (STEP-2). An unknown action counts as `pure`. */
export function effectOfSteps(steps: readonly StepDefinition[], effectOf: EffectLookup): ToolEffect {
  const effects = new Set(steps.map(({ action }) => effectOf(action)));
  return (["once", "idempotent"] as const).find((effect) => effects.has(effect)) ?? "pure";
}

/** Returns the problems of retries that would repeat a `once` action (STEP-2). */
export function againIssues(
  steps: readonly StepDefinition[],
  effectOf: EffectLookup,
  hasTaskRetry: boolean,
): InputIssue[] {
  const once = steps.find(({ action }) => effectOf(action) === "once");
  if (once === undefined) return [];
  const why = `with the \`once\` action of step "${once.ref}" the task has one attempt.`;
  const attempts = steps.flatMap(({ action, retry }, index) =>
    retry !== undefined && effectOf(action) === "once"
      ? [{ path: `/steps/${index}/retry`, message: ONE_ATTEMPT }]
      : [],
  );
  const again = steps.flatMap(({ onFailure }, index) =>
    onFailure === "retry"
      ? [{ path: `/steps/${index}/onFailure`, message: `Must not be "retry": ${why}` }]
      : [],
  );
  const whole = hasTaskRetry ? [{ path: "/retry", message: `Must be absent: ${why}` }] : [];
  return [...attempts, ...again, ...whole];
}

const ONE_ATTEMPT =
  'A `once` action has one attempt, because a failed attempt may have taken effect. Declare `effect: "idempotent"` if it may run twice under one operation id, or remove `retry`.';

export function isReference(action: unknown): action is Exclude<StepDefinition["action"], { kind: string }> {
  return typeof action === "string" || (isJsonObject(action) && "library" in action && !("kind" in action));
}

function referenceIssues(action: unknown, base: string): InputIssue[] {
  const parsed = referenceSchema.safeParse(action, { error: plainly });
  return parsed.success ? [] : inputIssues(parsed.error, `${base}/action`);
}

function expressionIssues(
  { condition, inputMapping = {}, outputMapping = {}, idempotencyKey }: StepDefinition,
  base: string,
): InputIssue[] {
  const paths = Object.keys(outputMapping).flatMap((path) => {
    const problem = pathProblem(path);
    return problem === null ? [] : [{ path: `${base}/outputMapping/${path}`, message: problem }];
  });
  return [
    ...(condition === undefined ? [] : sourceIssues(condition.if, `${base}/condition/if`)),
    ...(idempotencyKey === undefined ? [] : sourceIssues(idempotencyKey, `${base}/idempotencyKey`)),
    ...mappingIssues(inputMapping, AREA_NAMES, `${base}/inputMapping`),
    ...paths,
    ...mappingIssues(outputMapping, [...AREA_NAMES, "result"], `${base}/outputMapping`),
  ];
}

function sourceIssues(source: string, path: string): InputIssue[] {
  try {
    compileExpression(source, AREA_NAMES);
    return [];
  } catch (error) {
    if (error instanceof ExpressionError) return [{ path, message: error.message }];
    throw error;
  }
}
