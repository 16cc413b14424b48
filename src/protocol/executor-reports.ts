/** The shape of reports and results, checked where they arrive. */
import { z } from "zod";
import type { Json } from "../shared/json.ts";
import { type ExecutorReport, type TaskResult, TOOL_ERROR_CODES, type ToolResult } from "./executor-api.ts";

const operationId = z.string().min(1).max(200);

/** Zod's own JSON type would drop a member called `__proto__`. */
const json = z.custom<Json>((value) => value !== undefined);

const resultSchema: z.ZodType<ToolResult> = z.strictObject({
  tool_call_id: z.string(),
  success: z.boolean(),
  result: z.exactOptional(json),
  error: z.exactOptional(
    z.strictObject({ code: z.enum(TOOL_ERROR_CODES), message: z.string(), retriable: z.boolean() }),
  ),
});

export const reportsSchema: z.ZodType<ExecutorReport[]> = z.array(
  z.union([
    z.strictObject({ operationId, result: resultSchema }),
    z.strictObject({ operationId, progress: json }),
  ]),
);

export const taskResultSchema: z.ZodType<TaskResult> = z.strictObject({
  operationId,
  attempt: z.int().min(1),
  result: resultSchema,
});
