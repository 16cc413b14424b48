/**
 * Runs the steps of a task, one after another, in the Executor.
 *
 * STEP-3  Steps run in their order. A condition decides before its step: the action runs, the step is left out, or the task ends with
 *         success or failure. A condition that is no boolean fails its step.
 * STEP-4  A step that fails with `abort` or `retry` ends the task; with `retry` its error may pass, so whoever runs the task tries it again
 *         from its first step, with a fresh state. With `continue` the error is in `state._errors`, and the next step runs.
 * STEP-5  Each action gets an operation id of its own, the same in all attempts of the task, and ends when its own time is over.
 * STEP-7  With `retry` an action is run again, under the same operation id and with the same input, while its error may pass.
 * STEP-6  The result of a task is its output, or where no step writes that, the result of its last step that maps nothing.
 */

import type { ToolContext } from "../../../library/define.ts";
import { MAX_TOOL_BACKOFF_MS } from "../../../library/schemas.ts";
import { AREA_NAMES } from "../../../library/tasks/paths.ts";
import type { Step, StepOutcome } from "../../../library/tasks/step.ts";
import { ToolError } from "../../../library/tool-error.ts";
import type { Clock } from "../../../ports/clock.ts";
import { sleepWith } from "../../../ports/deadline.ts";
import type { RetryPolicy } from "../../../protocol/definitions.ts";
import { DramatisError, toErrorData } from "../../../shared/errors.ts";
import { compileExpression } from "../../../shared/expressions/expression.ts";
import { STEPS_OF_EXPRESSION_CHARACTER } from "../../../shared/expressions/limits.ts";
import { mapped } from "../../../shared/expressions/mapping.ts";
import { ExpressionError } from "../../../shared/expressions/values.ts";
import { isJson, type Json } from "../../../shared/json.ts";
import { type Meter, Spent } from "../../../shared/json-schema/meter.ts";
import { checkBudget } from "../../../shared/json-schema/violations.ts";
import { TaskAreas } from "./areas.ts";
import { runAction } from "./run-action.ts";

/** Returns the result of a task. Throws `ToolError`, whose message names the step. */
export async function runSteps(
  steps: readonly Step[],
  input: Json,
  context: ToolContext,
  clock: Pick<Clock, "timer">,
): Promise<Json> {
  const areas = new TaskAreas(input);
  const meter = checkBudget();
  for (const [index, one] of steps.entries()) {
    context.progress({ step: one.ref, percent: Math.floor((index * 100) / steps.length) });
    try {
      const outcome = outcomeOf(one, areas, meter);
      if (outcome === "succeed") break;
      if (outcome === "fail") throw new ToolError("Its condition ends the task with a failure.");
      if (outcome === "continue") await runStep(one, areas, { context, clock, meter });
    } catch (thrown) {
      const error = stepError(one, thrown);
      if (one.onFailure !== "continue" || context.signal.aborted) throw error;
      areas.noteError({ step: one.ref, code: error.code, message: error.message });
    }
  }
  return areas.hasOutput ? areas.output : areas.last;
}

function outcomeOf({ condition }: Step, areas: TaskAreas, meter: Meter): StepOutcome {
  if (condition === undefined) return "continue";
  const { if: source, then = "continue", else: otherwise = "skip" } = condition;
  meter.spend(source.length * STEPS_OF_EXPRESSION_CHARACTER);
  const holds = compileExpression(source, AREA_NAMES).evaluate(areas.variables, meter);
  if (typeof holds !== "boolean")
    throw new ToolError(`Its condition is ${JSON.stringify(holds ?? null)}, and must be true or false.`, {
      code: "INVALID_INPUT",
    });
  return holds ? then : otherwise;
}

async function runStep(
  { ref, action, retry, inputMapping, outputMapping }: Step,
  areas: TaskAreas,
  { context, clock, meter }: { context: ToolContext; clock: Pick<Clock, "timer">; meter: Meter },
): Promise<void> {
  const input = inputMapping === undefined ? areas.input : mapped(inputMapping, areas.variables, meter);
  const run = () => runAction(action, { input, areas, meter, clock, context: contextOf(ref, context) });
  const value = await withAttempts(run, retry, context.signal, clock);
  const result = jsonOf(value);
  if (outputMapping === undefined) areas.writeLast(result);
  else areas.write(mapped(outputMapping, { ...areas.variables, result }, meter));
}

/** Runs an action again while its error may pass and attempts are left. */
async function withAttempts(
  run: () => Promise<unknown>,
  { maxAttempts, backoffMs }: RetryPolicy = { maxAttempts: 1, backoffMs: 0 },
  signal: AbortSignal,
  { timer }: Pick<Clock, "timer">,
): Promise<unknown> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await run();
    } catch (error) {
      const mayPass = describe(error).retriable && !signal.aborted;
      if (!mayPass || attempt >= maxAttempts) throw error;
      await sleepWith(timer, Math.min(backoffMs * 2 ** (attempt - 1), MAX_TOOL_BACKOFF_MS), signal);
    }
  }
}

/** Returns the context of one action. */
function contextOf(ref: string, context: ToolContext): ToolContext {
  return {
    ...context,
    operationId: `${context.operationId}/${ref}`,
    defer: () => Promise.reject(new ToolError("A step of a task cannot defer its result. Return it.")),
  };
}

function jsonOf(value: unknown): Json {
  if (value === undefined) return null;
  // SAFETY: `JSON.parse` returns JSON.
  const json = isJson(value) ? (JSON.parse(JSON.stringify(value)) as Json) : undefined;
  if (json === undefined) throw new ToolError("Its action returned a value that is not JSON.");
  return json;
}

/** Returns the error of a step, with its name. */
function stepError({ ref, onFailure }: Step, thrown: unknown): ToolError {
  const { code, message, retriable } = describe(thrown);
  return new ToolError(`Step "${ref}": ${message}`, {
    code,
    retriable: retriable || onFailure === "retry",
    cause: thrown,
  });
}

function describe(thrown: unknown): Pick<ToolError, "code" | "message" | "retriable"> {
  if (thrown instanceof ToolError) return thrown;
  if (thrown instanceof Spent)
    return {
      code: "INVALID_INPUT",
      message: "The expressions of the task took too many steps.",
      retriable: false,
    };
  if (thrown instanceof ExpressionError)
    return { code: "INVALID_INPUT", message: thrown.message, retriable: false };
  if (thrown instanceof DramatisError) {
    const { message, retriable } = toErrorData(thrown);
    return { code: "EXECUTION_FAILED", message, retriable };
  }
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return { code: "EXECUTION_FAILED", message: message || "It failed without a message.", retriable: false };
}
