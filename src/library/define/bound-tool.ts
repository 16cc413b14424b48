/**
 * Tools in code that run a task or a workflow of a library, or that an agent of another server answers.
 *
 * FLOWTOOL-1  A tool with the target `{workflow}` is `idempotent` by default, because a repeated call finds the run that it has started. Its
 *             author may declare `once`. It is never `pure`, because pure calls may start before the model's reply is stored.
 */
import { z } from "zod";
import type { A2aTarget } from "../../protocol/definitions.ts";
import { defined } from "../../shared/defined.ts";
import { invalid } from "../../shared/errors.ts";
import { type Mapping, mappingIssues } from "../../shared/expressions/mapping.ts";
import type { DefinitionReference } from "../../shared/identifiers.ts";
import { issuesText, validate } from "../../shared/validation.ts";
import { referenceSchema } from "../definitions/reference.ts";
import { isTask, isWorkflow, type Task, type Tool, type Workflow } from "../tasks/built.ts";
import { attemptsOf } from "../tasks/task-schema.ts";
import { REMOTE_DEFAULTS, REMOTE_NEVER_PURE } from "../tools/remote-agent.ts";
import { commonOptions, definedTool, type ToolOptions, zodSchema } from "../tools/tool-definition.ts";
import { ToolError } from "../tools/tool-error.ts";
import { a2aTargetSchema } from "../tools/tool-schema.ts";
import { NEVER_PURE, WORKFLOW_DEFAULTS } from "../tools/workflow-tool.ts";

/** The argument of `defineTool` for a tool that runs a task. Absent members default to the values of the task. */
export interface TaskToolOptions extends Omit<ToolOptions<z.ZodType>, "input" | "execute" | "hosts"> {
  /** A task in code, or a reference to a task, with or without a version. */
  target: { task: Task | DefinitionReference };
  /** The input from the model, a zod object. Default: the task's input. Required if the task is a reference. */
  input?: z.ZodType;
  /** The members of the task's input, as expressions over `input`; the model's input when absent. */
  inputMapping?: Mapping;
}

/** The argument of `defineTool` for a tool that runs a workflow. */
export interface WorkflowToolOptions
  extends Omit<ToolOptions<z.ZodType>, "input" | "execute" | "hosts" | "effect"> {
  /** A workflow in code, or a reference to a workflow, with or without a version. */
  target: { workflow: Workflow | DefinitionReference };
  /** The input from the model, a zod object. Default: the workflow's input. Required if the workflow is a reference. */
  input?: z.ZodType;
  /** The members of the run's input, as expressions over `input`; the model's input when absent. */
  inputMapping?: Mapping;
  /** `idempotent` when absent. */
  effect?: "idempotent" | "once";
  /** Time limit of a run, in milliseconds: 900 000 at most, and when absent. */
  timeoutMs?: number;
}

/** The argument of `defineTool` for a tool that an agent of another server answers, over A2A. */
export interface RemoteToolOptions
  extends Omit<ToolOptions<z.ZodType>, "input" | "execute" | "hosts" | "effect"> {
  /** The address of the agent, such as `https://example.com/a2a/helper`. */
  target: A2aTarget;
  /**
   * The input from the model, a zod object. Its member `task_id`, if any, names the task that a call continues. Default: `message` and an
   * optional `task_id`.
   */
  input?: z.ZodType;
  /** The members of the message, as expressions over `input`; the model's input when absent. */
  inputMapping?: Mapping;
  /** `idempotent` when absent. Declare `once` if the other server may start two tasks for one message id. */
  effect?: "idempotent" | "once";
  /** Time limit of the whole call, in milliseconds. Default: one hour. Maximum: 30 days. */
  timeoutMs?: number;
}

/** The common fields of the options, without `target`. */
const boundOptions = { ...commonOptions, input: zodSchema.optional(), inputMapping: z.unknown().optional() };

const taskOptionsSchema = z.strictObject({
  ...boundOptions,
  target: z.strictObject({
    task: z.union([z.custom<Task>(isTask), referenceSchema], {
      error: "Must be made with defineTask(…), or be a reference to a task.",
    }),
  }),
});

const workflowOptionsSchema = z.strictObject({
  ...boundOptions,
  hosts: z
    .undefined({
      error:
        "Is not allowed for a tool that runs a workflow, because the hosts of its tasks are unknown. Remove it.",
    })
    .optional(),
  effect: z.enum(["idempotent", "once"], { error: NEVER_PURE }).optional(),
  target: z.strictObject({
    workflow: z.union([z.custom<Workflow>(isWorkflow), referenceSchema], {
      error: "Must be made with defineWorkflow(…), or be a reference to a workflow.",
    }),
  }),
});

const remoteOptionsSchema = z.strictObject({
  ...boundOptions,
  hosts: z
    .undefined({
      error: "Is not allowed for a tool that a remote agent answers: its host is in `target.a2a`. Remove it.",
    })
    .optional(),
  effect: z.enum(["idempotent", "once"], { error: REMOTE_NEVER_PURE }).optional(),
  target: a2aTargetSchema,
});

/** Returns a tool that an agent of another server answers. Throws `INVALID_INPUT`. */
export function remoteTool(options: RemoteToolOptions, tool: string): Tool {
  validate(remoteOptionsSchema, options, "", tool);
  const { target, input, inputMapping } = options;
  checkInput(options, tool, "a2a", true);
  return {
    ...definedTool(options, tool, { target, usual: REMOTE_DEFAULTS, ...defined({ input, inputMapping }) }),
    run: () =>
      Promise.reject(new ToolError(`"${options.name}" is answered by a remote agent and runs no code.`)),
  };
}

/** Returns a tool that runs a task. Throws `INVALID_INPUT`. */
export function taskTool(options: TaskToolOptions, tool: string): Tool {
  validate(taskOptionsSchema, options, "", tool);
  const { target } = options;
  const task = isTask(target.task) ? target.task : undefined;
  const reference = isTask(target.task) ? target.task.id : target.task;
  const usual = task && {
    inputSchema: task.definition.inputSchema,
    timeoutMs: task.definition.timeoutMs,
    effect: task.effect,
    ...defined({ retry: attemptsOf(task.definition.retry) }),
  };
  checkInput(options, tool, "task", task !== undefined);
  const { input, inputMapping } = options;
  return {
    ...definedTool(options, tool, {
      target: { task: reference },
      ...defined({ input, inputMapping, usual }),
    }),
    ...defined({ task }),
    run: () => Promise.reject(new ToolError(`"${options.name}" runs a task and no code of its own.`)),
  };
}

/** Returns a tool that runs a workflow. Throws `INVALID_INPUT`. */
export function workflowTool(options: WorkflowToolOptions, tool: string): Tool {
  validate(workflowOptionsSchema, options, "", tool);
  const { target } = options;
  const workflow = isWorkflow(target.workflow) ? target.workflow : undefined;
  const reference = isWorkflow(target.workflow) ? target.workflow.id : target.workflow;
  checkInput(options, tool, "workflow", workflow !== undefined);
  const { input, inputMapping } = options;
  const { inputSchema } = workflow?.definition ?? {};
  return {
    ...definedTool(options, tool, {
      target: { workflow: reference },
      usual: { ...WORKFLOW_DEFAULTS, ...defined({ inputSchema }) },
      ...defined({ input, inputMapping }),
    }),
    ...defined({ workflow }),
    run: () => Promise.reject(new ToolError(`"${options.name}" runs a workflow and no code of its own.`)),
  };
}

/** Throws `INVALID_INPUT` if the input schema is unknown, or if an expression of the mapping is invalid. */
function checkInput(
  { input, inputMapping }: Pick<TaskToolOptions, "input" | "inputMapping">,
  tool: string,
  kind: "task" | "workflow" | "a2a",
  isHere: boolean,
): void {
  if (!isHere && input === undefined)
    throw invalid(`${tool}: /input: Is required if \`target.${kind}\` is a reference.`);
  const issues = inputMapping === undefined ? [] : mappingIssues(inputMapping, ["input"], "/inputMapping");
  if (issues.length > 0) throw invalid(`${tool}: ${issuesText(issues)}`, { errors: issues });
}
