/** What passes between a conversation and the executor of its tools. */
import type { ToolResult } from "../../protocol/tool-result.ts";
import type { CallContext } from "../../shared/call-context.ts";
import type { Json, JsonObject } from "../../shared/json.ts";

/** One tool call to run. `operationId` is its identity across retries: the tool's idempotency key. */
export interface ToolInvocation {
  operationId: string;
  toolCallId: string;
  /** Version 0 = whatever is deployed. */
  tool: { library: string; id: string; version: number };
  input: JsonObject;
  timeoutMs: number;
  context: CallContext;
}

/** One line of an executor's answer. */
export type ExecutorReport =
  | { operationId: string; result: ToolResult }
  | { operationId: string; progress: Json };

/**
 * Runs a batch of calls; each is reported as it gets there, so a slow tool delays no other. Each call gets one result,
 * after its progress. Iterating throws `UNAVAILABLE` if the executor is lost: the outcome of calls without a result is
 * then unknown. Aborting the signal gives the calls still running the result `EXECUTION_FAILED`; leaving the iteration
 * aborts them without a report.
 */
export interface TaskExecutor {
  run(calls: ToolInvocation[], signal: AbortSignal): AsyncIterable<ExecutorReport>;
}
