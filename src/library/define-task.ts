/**
 * Tasks: functions of a library, or lists of steps, that the platform runs, such as the hooks of a persona. A tool by API may run one, too.
 *
 * TASKDEF-1  A task gets only input that its schema accepted, and only output that its schema accepts is used.
 */
import type { z } from "zod";
import type { ToolEffect } from "../protocol/definitions.ts";
import { DramatisError } from "../shared/errors.ts";
import type { Json } from "../shared/json.ts";
import { inputIssues, issuesText } from "../shared/validation.ts";
import { defineTool, type Tool, type ToolContext } from "./define.ts";
import type { CodeAction } from "./tasks/action.ts";
import { checkSteps, effectOf, type Step } from "./tasks/step.ts";
import { ToolError } from "./tool-error.ts";

/** The fields of both kinds of tasks. */
interface CommonOptions<Input extends z.ZodType, Output extends z.ZodType> {
  /** 1 to 64 letters, digits, `_` and `-`, unlike the ids of the library's tools. */
  id: string;
  /** Explains what the task does, for authors of tools over it. */
  description?: string;
  /** A zod object. */
  input: Input;
  /** The schema of the result; any JSON when absent. */
  output?: Output;
  /** Timeout of one attempt, in milliseconds: 1 to 900 000; 60 000 when absent. A hook has 30 000 at most. */
  timeoutMs?: number;
}

/** The argument of `defineTask`, and of `defineAction`. */
export interface TaskOptions<Input extends z.ZodType, Output extends z.ZodType>
  extends CommonOptions<Input, Output> {
  /** Effect of running the task twice; `once` when absent. A `once` task is never repeated, not even after an error. */
  effect?: ToolEffect;
  execute(input: z.output<Input>, context: ToolContext): z.input<Output> | Promise<z.input<Output>>;
}

/** The argument of `defineTask` for a task of steps. Its effect is the weakest of its actions' (STEP-2). */
export interface StepsTaskOptions<Input extends z.ZodType, Output extends z.ZodType>
  extends CommonOptions<Input, Output> {
  /** 1 to 64 steps, in their order. */
  steps: readonly Step[];
}

/** A task: its definition, which a tool over it inherits, and its code. */
export type Task = Tool;

/**
 * Defines a task. Throws `INVALID_INPUT`.
 * @example
 * const recall = defineTask({
 *   id: "recall",
 *   input: z.looseObject({ user_message: z.any() }),
 *   effect: "pure",
 *   execute: ({ user_message }) => ({ model: "gpt-4.1", stream: true, messages: [{ role: "user", content: user_message }] }),
 * });
 */
export function defineTask<Input extends z.ZodType, Output extends z.ZodType = z.ZodType>(
  options: TaskOptions<Input, Output>,
): Task;
/**
 * Defines a task of steps. Throws `INVALID_INPUT`.
 * @example
 * const bill = defineTask({
 *   id: "bill",
 *   input: z.object({ orderId: z.string() }),
 *   steps: [
 *     step("load", { action: loadOrder, inputMapping: { id: "input.orderId" }, outputMapping: { "state.order": "result" } }),
 *     step("sum", { action: { kind: "update_context", values: { total: "state.order.items.map(i, i.price).sum()" } } }),
 *   ],
 * });
 */
export function defineTask<Input extends z.ZodType, Output extends z.ZodType = z.ZodType>(
  options: StepsTaskOptions<Input, Output>,
): Task;
export function defineTask<Input extends z.ZodType, Output extends z.ZodType>(
  options: TaskOptions<Input, Output> | StepsTaskOptions<Input, Output>,
): Task {
  if (!("steps" in options)) return taskOf(options);
  const { steps, ...others } = options;
  if ("execute" in options || "effect" in options) {
    const field = "execute" in options ? "execute" : "effect";
    throw new DramatisError(
      "INVALID_INPUT",
      `Task "${options.id}" has \`steps\`, so it has no \`${field}\`: its steps say what it does. Remove one.`,
    );
  }
  checkSteps(options.id, steps);
  const own = [...steps];
  const execute = (input: unknown, context: ToolContext) => stepsRunner(context)(own, input as Json, context);
  // SAFETY: the schema of the output checks the result.
  return taskOf({ ...others, effect: effectOf(steps), execute } as unknown as TaskOptions<Input, Output>);
}

/**
 * Defines an action in code, which steps of tasks use. Throws `INVALID_INPUT`.
 * @example
 * const loadOrder = defineAction({
 *   id: "load_order",
 *   input: z.object({ id: z.string() }),
 *   effect: "pure",
 *   execute: ({ id }) => orders.get(id),
 * });
 */
export function defineAction<Input extends z.ZodType, Output extends z.ZodType = z.ZodType>(
  options: TaskOptions<Input, Output>,
): CodeAction {
  return { kind: "code", ...taskOf(options) };
}

/** Runs the steps of a task. The Executor brings it with a call's context. */
export const RUN_STEPS = Symbol("steps");

/** The context of a call in the Executor. */
export interface ExecutorContext extends ToolContext {
  [RUN_STEPS](steps: readonly Step[], input: Json, context: ToolContext): Promise<Json>;
}

function stepsRunner(context: Partial<ExecutorContext>): ExecutorContext[typeof RUN_STEPS] {
  const run = context[RUN_STEPS];
  if (run !== undefined) return run;
  throw new ToolError("The steps of a task run in the Executor only. Call the task by a tool or a hook.");
}

function taskOf<Input extends z.ZodType, Output extends z.ZodType>({
  id,
  description = `The task ${id}.`,
  output,
  ...options
}: TaskOptions<Input, Output>): Task {
  const tool = defineTool({ ...options, name: id, description });
  if (output === undefined) return tool;
  return {
    ...tool,
    async run(input, context) {
      const parsed = await output.safeParseAsync(await tool.run(input, context));
      if (parsed.success) return parsed.data;
      const issues = issuesText(inputIssues(parsed.error));
      throw new ToolError(`The output does not match the schema of the task "${id}": ${issues}`);
    },
  };
}
