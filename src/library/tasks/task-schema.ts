/** Tasks of steps as JSON, and their stored form. A task in TypeScript passes the same schema, so equal content has an equal hash. */
import { z } from "zod";
import type { RetryPolicy } from "../../protocol/definition-parts.ts";
import type { TaskDefinition, TaskRetry } from "../../protocol/task-definition.ts";
import { defined } from "../../shared/defined.ts";
import { invalid } from "../../shared/errors.ts";
import { issuesText } from "../../shared/validation.ts";
import {
  DEFAULT_TOOL_BACKOFF_MS,
  DEFAULT_TOOL_TIMEOUT_MS,
  MAX_TIMEOUT_MS,
  MAX_TOOL_BACKOFF_MS,
} from "../tools/tool-schema.ts";
import { actionSchemas } from "./actions-schema.ts";
import { readIssues } from "./reads.ts";
import { objectSchemaCheck, schemaCheck, schemaIssues } from "./schema-check.ts";
import { normalSteps, stepsIssues } from "./steps-schema.ts";
import { MAX_STEP_ATTEMPTS } from "./task-limits.ts";

export const taskRetrySchema = z.strictObject({
  maxAttempts: z.int().min(1).max(MAX_STEP_ATTEMPTS),
  backoff: z.enum(["none", "linear", "exponential"]).exactOptional(),
  initialDelayMs: z.int().min(0).max(MAX_TOOL_BACKOFF_MS).exactOptional(),
  maxDelayMs: z.int().min(0).max(MAX_TOOL_BACKOFF_MS).exactOptional(),
});

const steps = z.preprocess(
  normalSteps,
  z.unknown().superRefine((given, context) => {
    for (const { path, message } of stepsIssues(given))
      context.addIssue({ code: "custom", path: path.split("/").slice(2), message });
  }),
);

export const taskFields = {
  description: z.string().min(1).max(10_000).exactOptional(),
  inputSchema: objectSchemaCheck,
  outputSchema: schemaCheck.exactOptional(),
  timeoutMs: z.int().min(1).max(MAX_TIMEOUT_MS).exactOptional(),
  retry: taskRetrySchema.exactOptional(),
  // SAFETY: only valid steps pass `stepsIssues`.
  steps: steps as unknown as z.ZodType<NonNullable<TaskDefinition["steps"]>>,
};

export const taskSchema = z.strictObject(taskFields);

/** Maximum number of reported problems of one task. */
const MAX_ISSUES = 20;

/**
 * Returns the stored form of a task: adds the default time limit, and removes a `retry` with one attempt. Throws `INVALID_INPUT` for invalid
 * schemas and invalid reads (STEPREAD-1). The schemas of a task share one budget.
 */
export function completeTask({
  description,
  inputSchema,
  outputSchema,
  timeoutMs = DEFAULT_TOOL_TIMEOUT_MS,
  retry,
  steps,
  effect,
}: Omit<TaskDefinition, "timeoutMs"> & { timeoutMs?: number }): TaskDefinition {
  const errors = [
    ...schemaIssues([
      { path: "/inputSchema", schema: inputSchema },
      { path: "/outputSchema", schema: outputSchema },
      ...(steps ?? []).flatMap(({ action }, index) => actionSchemas(action, `/steps/${index}/action`)),
    ]),
    ...readIssues({ inputSchema, outputSchema, steps: steps ?? [] }),
  ].slice(0, MAX_ISSUES);
  if (errors.length > 0) throw invalid(`The task is not valid: ${issuesText(errors)}`, { errors });
  const again = retry === undefined || retry.maxAttempts === 1 ? undefined : retry;
  return { inputSchema, timeoutMs, ...defined({ description, outputSchema, retry: again, steps, effect }) };
}

/** Converts the `retry` of a task to the retry policy of a call; `undefined` if it is absent. */
export function attemptsOf(retry: TaskRetry | undefined): RetryPolicy | undefined {
  if (retry === undefined) return undefined;
  const { maxAttempts, backoff, initialDelayMs = DEFAULT_TOOL_BACKOFF_MS, maxDelayMs } = retry;
  return { maxAttempts, backoffMs: initialDelayMs, ...defined({ backoff, maxDelayMs }) };
}
