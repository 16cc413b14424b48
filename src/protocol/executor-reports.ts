/**
 * The shape of reports and results, checked where they arrive.
 *
 * REPORT-4  Only JSON arrives, nested at most as deep as a tool's output may be. A result has `result` if it succeeded, and
 *           `error` otherwise.
 */
import { z } from "zod";
import { isJsonWithin, type Json } from "../shared/json.ts";
import {
  type ExecutorReport,
  MAX_OUTPUT_DEPTH,
  type TaskError,
  type TaskResult,
  TOOL_ERROR_CODES,
  type ToolResult,
} from "./executor-api.ts";
import { type TaskSummary, taskSummarySchema } from "./task-summary.ts";

const operationId = z.string().min(1).max(200);

/** Zod's own JSON type would drop a member called `__proto__`. */
const json = z.custom<Json>(
  (value) => isJsonWithin(value, MAX_OUTPUT_DEPTH),
  `Must be JSON, nested at most ${MAX_OUTPUT_DEPTH} deep.`,
);

const error = z.strictObject({ code: z.enum(TOOL_ERROR_CODES), message: z.string(), retriable: z.boolean() });

const resultSchema: z.ZodType<ToolResult> = z.discriminatedUnion("success", [
  z.strictObject({ tool_call_id: z.string(), success: z.literal(true), result: json }),
  z.strictObject({ tool_call_id: z.string(), success: z.literal(false), error }),
]);

const deferred = z.strictObject({ expiresAt: z.int() });

const transient = z.exactOptional(z.literal(true));
const tainted = transient;
/** The record of a task is worth less than its result: a summary that is not valid is left out. */
// SAFETY: readers take an absent summary and an undefined one alike.
const task = z.exactOptional(taskSummarySchema.optional().catch(undefined) as z.ZodType<TaskSummary>);

export const reportsSchema: z.ZodType<ExecutorReport[]> = z.array(
  z.union([
    z.strictObject({ operationId, result: resultSchema, transient, task, tainted }),
    z.strictObject({ operationId, deferred }),
    z.strictObject({ operationId, progress: json }),
  ]),
);

const attempt = z.int().min(1);

export const taskResultSchema: z.ZodType<TaskResult> = z.union([
  z.strictObject({ operationId, attempt, result: resultSchema, transient, task, tainted }),
  z.strictObject({ operationId, attempt, deferred }),
]);

export const taskErrorSchema: z.ZodType<TaskError> = z.strictObject({
  operationId,
  attempt: z.int().min(1),
  error,
});
