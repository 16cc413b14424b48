/**
 * Runs the steps of a task in sequence, in the Executor.
 *
 * STEP-3  Steps run in order. A condition decides before its step: the action runs, the step is skipped, or the task ends with success or
 *         failure, regardless of `onFailure`. If a condition is not a boolean, its step fails.
 * STEP-4  A failed step with `abort` or `retry` ends the task. With `retry` its error is transient, so the caller retries the task from its
 *         first step with a fresh state. With `continue` the error is in `state._errors`, and the next step runs.
 * STEP-5  Each action gets its own operation id, the same in all attempts of the task, and ends at its own timeout. `idempotencyKey`
 *         replaces the id. It is unique within its tenant, task and step.
 * STEP-6  The result of a task is its output. If no step writes the output, it is the result of the last step without mappings.
 * STEP-7  With `retry` an action is repeated with the same operation id and input while its error is transient. As for a tool, an exception
 *         is transient. An error that the action reports is transient if it is marked as such.
 */
import type { ToolContext } from "../../../library/define/define.ts";
import { AREA_NAMES } from "../../../library/tasks/paths.ts";
import { pauseAfter } from "../../../library/tools/retry.ts";
import { ToolError } from "../../../library/tools/tool-error.ts";
import { sleepWith } from "../../../ports/deadline.ts";
import type { RetryPolicy } from "../../../protocol/definition-parts.ts";
import type { PinnedStep, PinnedTask, StepOutcome } from "../../../protocol/task-definition.ts";
import { compileExpression } from "../../../shared/expressions/expression.ts";
import { STEPS_OF_EXPRESSION_CHARACTER } from "../../../shared/expressions/expression-limits.ts";
import { mapped } from "../../../shared/expressions/mapping.ts";
import { typeOf } from "../../../shared/expressions/values.ts";
import { isJson, type Json, MAX_DEPTH } from "../../../shared/json.ts";
import type { Meter } from "../../../shared/json-schema/meter.ts";
import { sha256Hex } from "../../../shared/sha256.ts";
import { textOf } from "../output.ts";
import { TaskAreas } from "./areas.ts";
import { type ActionPorts, runAction } from "./run-action.ts";
import { describe, stepError } from "./step-error.ts";
import type { TaskRecord } from "./task-record.ts";

/** UTF-16 units of JSON that are copied per step. A response of 512 KiB takes a thirtieth of the budget. */
const UNITS_OF_RESULT_STEP = 64;

export interface StepsRun {
  context: ToolContext;
  ports: ActionPorts;
  /** The step budget of all expressions and texts of the task. */
  meter: Meter;
  record: TaskRecord;
}

/** Returns the result of a task's steps. Throws `ToolError` with the name of the step. */
export async function runSteps(task: PinnedTask, input: Json, run: StepsRun): Promise<Json> {
  const { context, meter, record } = run;
  const areas = new TaskAreas(input);
  const pace = { at: meter.spent };
  for (const [index, one] of task.steps.entries()) {
    context.progress({ step: one.ref, percent: Math.floor((index * 100) / task.steps.length) });
    const end = record.beginStep(one.ref);
    const tries = { count: 0 };
    let ended = false;
    try {
      const outcome = outcomeOf(one, areas, meter);
      if (outcome === "fail") {
        ended = true;
        throw new ToolError("Its condition ends the task with a failure.");
      }
      if (outcome === "continue") await runStep(task, one, areas, run, tries);
      end(
        outcome === "continue" ? { status: "completed", attempts: tries.count } : { status: ENDED[outcome] },
      );
      if (outcome === "succeed") break;
    } catch (thrown) {
      const error = stepError(one, thrown);
      const { code, message } = error;
      const attempts = Math.max(1, tries.count);
      end({ status: ended ? "ended" : "failed", attempts, error: { code, message } });
      if (ended || one.onFailure !== "continue" || context.signal.aborted) throw error;
      areas.noteError({ step: one.ref, code, message });
    }
    await breathe(pace, run, one.action.kind === "code");
  }
  return areas.hasOutput ? areas.output : areas.last;
}

/** Yields to other work of the isolate if the expressions since the last yield took long. */
async function breathe(pace: { at: number }, { meter, ports }: StepsRun, isCode: boolean): Promise<void> {
  // The input of code is copied, and the meter does not count this.
  if (!isCode && meter.spent - pace.at < STEPS_WITHOUT_BREAK) return;
  pace.at = meter.spent;
  await new Promise<void>((resolve) => void ports.clock.timer(0, resolve));
}

/** Steps of the meter without a break: about 1 ms. */
const STEPS_WITHOUT_BREAK = 20_000;

const ENDED = { skip: "skipped", succeed: "succeeded" } as const;

function outcomeOf({ condition }: PinnedStep, areas: TaskAreas, meter: Meter): StepOutcome {
  if (condition === undefined) return "continue";
  const { if: source, then = "continue", else: otherwise = "skip" } = condition;
  const holds = evaluated(source, areas, meter);
  if (typeof holds !== "boolean")
    throw new ToolError(`Its condition is a ${typeOf(holds)}. It must be true or false.`, {
      code: "INVALID_INPUT",
    });
  return holds ? then : otherwise;
}

function evaluated(source: string, areas: TaskAreas, meter: Meter): Json | undefined {
  meter.spend(source.length * STEPS_OF_EXPRESSION_CHARACTER);
  return compileExpression(source, AREA_NAMES).evaluate(areas.variables, meter);
}

async function runStep(
  task: PinnedTask,
  one: PinnedStep,
  areas: TaskAreas,
  { context, ports, meter, record }: StepsRun,
  tries: { count: number },
): Promise<void> {
  const { action, retry, inputMapping, outputMapping } = one;
  const input = inputMapping === undefined ? areas.input : mapped(inputMapping, areas.variables, meter);
  const own = await contextOf(task, one, areas, context, meter);
  const run = () => {
    tries.count += 1;
    return runAction(action, {
      input,
      areas,
      meter,
      ports,
      record,
      context: own,
      isAuthored: task.authored === true,
    });
  };
  const value = await withAttempts(run, retry, context.signal, ports.clock);
  const result = jsonOf(value, meter);
  if (outputMapping === undefined) areas.writeLast(result);
  else areas.write(mapped(outputMapping, { ...areas.variables, result }, meter));
}

/** Repeats an action while its error is transient and attempts are left. */
async function withAttempts(
  run: () => Promise<unknown>,
  retry: RetryPolicy = { maxAttempts: 1, backoffMs: 0 },
  signal: AbortSignal,
  { timer }: ActionPorts["clock"],
): Promise<unknown> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await run();
    } catch (error) {
      const isFinal = !describe(error).mayPass || signal.aborted;
      if (isFinal || attempt >= retry.maxAttempts) throw error;
      await sleepWith(timer, pauseAfter(retry, attempt), signal);
    }
  }
}

async function contextOf(
  task: PinnedTask,
  { ref, idempotencyKey }: PinnedStep,
  areas: TaskAreas,
  context: ToolContext,
  meter: Meter,
): Promise<ToolContext> {
  const key = idempotencyKey === undefined ? undefined : evaluated(idempotencyKey, areas, meter);
  if (idempotencyKey !== undefined && (typeof key !== "string" || key === ""))
    throw new ToolError(
      `Its idempotency key is ${key === "" ? "empty" : `a ${typeOf(key)}`}. It must be a string.`,
      {
        code: "INVALID_INPUT",
      },
    );
  return {
    ...context,
    operationId:
      typeof key === "string"
        ? // A hash hides the tenant and its tasks from the called service.
          await sha256Hex(`${context.context.tenant}:${task.library}/${task.id}/${ref}:${key}`)
        : `${context.operationId}/${ref}`,
    defer: () => Promise.reject(new ToolError("A step of a task cannot defer its result. Return it.")),
  };
}

/** Returns a copy of an action's result. Charges the copying to the budget. */
function jsonOf(value: unknown, meter: Meter): Json {
  const text = textOf(value, "Its action ran, but its result");
  meter.spend(text.length / UNITS_OF_RESULT_STEP);
  const result: Json = JSON.parse(text);
  if (isJson(result)) return result;
  throw new ToolError(`Its action ran, but its result nests deeper than ${MAX_DEPTH} levels.`);
}
