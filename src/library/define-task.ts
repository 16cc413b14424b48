/**
 * Tasks: functions of a library that the platform runs, such as the hooks of a persona. A tool by API may run one, too.
 *
 * TASKDEF-1  A task's `execute` gets only input that its schema accepted, and only output that its schema accepts is used.
 */
import type { z } from "zod";
import type { ToolEffect } from "../protocol/definitions.ts";
import { inputIssues, issuesText } from "../shared/validation.ts";
import { defineTool, type Tool, type ToolContext } from "./define.ts";
import { ToolError } from "./tool-error.ts";

/** The argument of `defineTask`. */
export interface TaskOptions<Input extends z.ZodType, Output extends z.ZodType> {
  /** 1 to 64 letters, digits, `_` and `-`, unlike the ids of the library's tools. */
  id: string;
  /** Explains what the task does, for authors of tools over it. */
  description?: string;
  /** A zod object. */
  input: Input;
  /** The schema of the result; any JSON when absent. */
  output?: Output;
  /** Effect of running the task twice; `once` when absent. A `once` task is never repeated, not even after an error. */
  effect?: ToolEffect;
  /** Timeout of one attempt, in milliseconds: 1 to 900 000; 60 000 when absent. A hook has 30 000 at most. */
  timeoutMs?: number;
  execute(input: z.output<Input>, context: ToolContext): z.input<Output> | Promise<z.input<Output>>;
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
export function defineTask<Input extends z.ZodType, Output extends z.ZodType = z.ZodType>({
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
