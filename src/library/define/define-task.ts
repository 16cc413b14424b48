/**
 * Builders of tasks, actions and prompts in TypeScript. They return data and references to functions of the deployed code.
 *
 * TASKDEF-1  The input and the output of a task must match their schemas.
 * TASKDEF-2  A task of steps, an action without code or a prompt has the same hash in TypeScript as in JSON.
 * TASKDEF-3  `retry` has the same form for a task of a function and a task of steps. A `once` task has one attempt.
 */
import { z } from "zod";
import type { ToolEffect } from "../../protocol/definition-parts.ts";
import type { CodeActionDefinition, TaskDefinition, TaskRetry } from "../../protocol/task-definition.ts";
import { defined } from "../../shared/defined.ts";
import { invalid } from "../../shared/errors.ts";
import type { JsonObject } from "../../shared/json.ts";
import { inputIssues, issuesText, plainly, validate } from "../../shared/validation.ts";
import { dataSchemaOf, objectSchema } from "../definitions/json-schema-of.ts";
import { actionIssues, effectOfAction, normalAction } from "../tasks/actions-schema.ts";
import type { CodeAction, Embedded, NamedAction, Prompt, Task } from "../tasks/built.ts";
import { promptSchema } from "../tasks/prompt.ts";
import { type Action, type AnswerTo, actionData, type Step, stepsData } from "../tasks/step.ts";
import { againIssues, type EffectLookup, effectOfSteps, isReference } from "../tasks/steps-schema.ts";
import { completeTask, taskRetrySchema, taskSchema } from "../tasks/task-schema.ts";
import type { Run, ToolContext } from "../tools/tool.ts";
import { checkedId, withId } from "../tools/tool-definition.ts";
import { ToolError } from "../tools/tool-error.ts";
import { codeTool } from "./define.ts";

interface CommonOptions<Input extends z.ZodType, Output extends z.ZodType> {
  /** 1 to 64 letters, digits, `_` and `-`. The tools of the library must have other ids. */
  id: string;
  /** Explains the task to authors who use it. */
  description?: string;
  /** A zod object. */
  input: Input;
  /** The schema of the result; any JSON when absent. */
  output?: Output;
  /** Timeout of one attempt, in milliseconds: 1 to 900 000; 60 000 when absent. The maximum for a hook is 30 000. */
  timeoutMs?: number;
}

/** A function with its input and output. Tasks and actions share these fields. */
export interface TaskOptions<Input extends z.ZodType, Output extends z.ZodType>
  extends CommonOptions<Input, Output> {
  /** Effect of running the task twice; `once` when absent. A `once` task never runs again, even after an error. */
  effect?: ToolEffect;
  execute(input: z.output<Input>, context: ToolContext): z.input<Output> | Promise<z.input<Output>>;
}

/** The argument of `defineTask` for a task of a function. */
export interface FunctionTaskOptions<Input extends z.ZodType, Output extends z.ZodType>
  extends TaskOptions<Input, Output> {
  /** Attempts after temporary errors. Default: one attempt. `once` tasks cannot retry. */
  retry?: TaskRetry;
}

/** The argument of `defineTask` for a task of steps. It has the strictest effect of its actions (STEP-2). */
export interface StepsTaskOptions<
  Input extends z.ZodType,
  Output extends z.ZodType,
  Steps extends readonly Step[] = readonly Step[],
> extends CommonOptions<Input, Output> {
  /** 1 to 64 steps, in their order. */
  steps: Steps;
  /** Attempts of the whole task after temporary errors, each from the first step. Default: one attempt. Tasks with a `once` action cannot retry. */
  retry?: TaskRetry;
}

/** The argument of `defineAction` for an action of a kind without code. */
export type NamedActionOptions = Action & { id: string };

const NOTHING: Embedded = { actions: [], prompts: [], modelProfiles: [] };

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
  options: FunctionTaskOptions<Input, Output>,
): Task<z.input<Input>, z.output<Output>>;
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
export function defineTask<
  Input extends z.ZodType,
  const Steps extends readonly Step[],
  Output extends z.ZodType = z.ZodType,
>(
  options: StepsTaskOptions<Input, Output, Steps>,
): Task<
  z.input<Input>,
  z.output<Output> & (Steps extends readonly [Step<infer Work>] ? AnswerTo<Work> : unknown)
>;
export function defineTask<Input extends z.ZodType, Output extends z.ZodType>(
  options: FunctionTaskOptions<Input, Output> | StepsTaskOptions<Input, Output>,
): Task {
  if ("steps" in options) return stepsTask(options);
  const { retry, ...own } = options;
  const { description, ...code } = codeOf("task", own);
  const { inputSchema, outputSchema, effect, timeoutMs } = code.definition;
  const definition: TaskDefinition = {
    inputSchema,
    timeoutMs,
    effect,
    ...defined({ outputSchema, description, retry: checkedAttempts(code.id, retry, effect) }),
  };
  return { ...withId(code.id, definition), made: "task", embedded: NOTHING, effect, run: code.run };
}

/** Returns the stored form of `retry` for a task of a function. Throws `INVALID_INPUT`. */
function checkedAttempts(id: string, given: unknown, effect: ToolEffect): TaskRetry | undefined {
  if (given === undefined) return undefined;
  const retry = validate(taskRetrySchema, given, "/retry", `Task "${id}"`);
  if (retry.maxAttempts === 1) return undefined;
  if (effect === "once")
    throw invalid(
      `Task "${id}": /retry: A \`once\` task has one attempt, because a failed attempt may have taken effect. Declare \`effect: "idempotent"\` if it may run twice under one operation id, or remove \`retry\`.`,
    );
  return retry;
}

function stepsTask<Input extends z.ZodType, Output extends z.ZodType>({
  id,
  description,
  input,
  output,
  timeoutMs,
  retry,
  steps: written,
  ...others
}: StepsTaskOptions<Input, Output>): Task {
  const task = `Task "${id}"`;
  const other = ["execute", "effect"].find((name) => Object.hasOwn(others, name));
  if (other !== undefined) {
    const message = `${task} has both \`steps\` and \`${other}\`. Remove one.`;
    throw invalid(message);
  }
  const { steps, embedded } = stepsData(written);
  const given = {
    ...others,
    inputSchema: objectSchema(task, dataSchemaOf(`The input of task "${id}"`, input)),
    steps,
    ...defined({
      description,
      timeoutMs,
      retry,
      outputSchema: output && dataSchemaOf(`The output of task "${id}"`, output),
    }),
  };
  const definition = completeTask(validate(taskSchema, given, "", task));
  const known: EffectLookup = (action) => {
    if (!isReference(action)) return effectOfAction(action);
    const own = embedded.actions.find((candidate) => candidate.id === action);
    return own && effectOfAction(own.definition);
  };
  const errors = againIssues(definition.steps ?? [], known, definition.retry !== undefined);
  if (errors.length > 0) throw invalid(`${task} is not valid: ${issuesText(errors)}`, { errors });
  const effect = effectOfSteps(definition.steps ?? [], (action) => known(action) ?? "once");
  return { ...withId(checkedId("task", id), definition), made: "task", embedded, effect };
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
): CodeAction;
/**
 * Defines an action of a kind without code, for steps of several tasks. Throws `INVALID_INPUT`.
 * @example defineAction({ id: "ask_bank", kind: "http.request", hosts: ["bank.example"], effect: "pure" });
 */
export function defineAction(options: NamedActionOptions): NamedAction;
export function defineAction<Input extends z.ZodType, Output extends z.ZodType>(
  options: TaskOptions<Input, Output> | NamedActionOptions,
): CodeAction | NamedAction {
  if ("kind" in options) return namedAction(options);
  const { description, ...code } = codeOf("action", options);
  const definition: CodeActionDefinition = { kind: "code", ...code.definition, ...defined({ description }) };
  return { ...withId(code.id, definition), made: "action", embedded: NOTHING, run: code.run };
}

function namedAction({ id, ...written }: NamedActionOptions): NamedAction {
  const { action, embedded } = actionData(written as Action);
  const normal = normalAction(action) as typeof action;
  const errors = actionIssues(normal, "");
  if (errors.length > 0)
    throw invalid(`Action "${id}" is not valid: ${issuesText(errors)}`, {
      errors,
    });
  return { ...withId(checkedId("action", id), normal), made: "action", embedded };
}

/**
 * Defines a prompt: a text for models in Liquid. Throws `INVALID_INPUT`.
 * @example definePrompt("summarise", { template: "Summarise in {{ words }} words:\n{{ text }}" });
 */
export function definePrompt(id: string, prompt: Prompt["definition"]): Prompt {
  return withId(checkedId("prompt", id), validate(promptSchema, prompt, "", `Prompt "${id}"`));
}

function codeOf<Input extends z.ZodType, Output extends z.ZodType>(
  kind: "task" | "action",
  { description, output, ...options }: TaskOptions<Input, Output>,
): {
  id: string;
  description: string | undefined;
  definition: Omit<CodeActionDefinition, "kind" | "description">;
  run: Run;
} {
  const { id } = options;
  const what = typeof id === "string" ? `${kind === "task" ? "Task" : "Action"} "${id}"` : `The ${kind}`;
  const tool = codeTool({ ...options, name: id, description: description ?? `The task ${id}.` }, what);
  const { inputSchema, effect, timeoutMs } = tool.definition;
  const definition = {
    inputSchema,
    effect,
    timeoutMs,
    ...defined({ outputSchema: output && resultSchemaOf(output) }),
  };
  if (output === undefined) return { id, description, definition, run: tool.run };
  const run: Run = async (input, context) => {
    const parsed = await output.safeParseAsync(await tool.run(input, context), { error: plainly });
    if (parsed.success) return parsed.data;
    const issues = issuesText(inputIssues(parsed.error));
    throw new ToolError(`The output does not match the schema of the task "${id}": ${issues}`);
  };
  return { id, description, definition, run };
}

/** Converts the schema of a function's result. Types that JSON Schema lacks accept any value. */
function resultSchemaOf(output: z.ZodType): JsonObject {
  const { $schema: _, ...schema } = z.toJSONSchema(output, { io: "output", unrepresentable: "any" });
  return JSON.parse(JSON.stringify(schema));
}
