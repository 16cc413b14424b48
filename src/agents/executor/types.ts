/** What passes between a conversation and the executor of its tools. */
import type { ExecutionContext } from "../../adapters/types.ts";
import type { Result } from "../../shared/errors.ts";
import type { Json, JsonObject } from "../../shared/json.ts";

export const TOOL_ERROR_CODES = [
  "EXECUTION_FAILED",
  "TIMEOUT",
  "NOT_FOUND",
  "PERMISSION_DENIED",
  "INVALID_INPUT",
  "AGENT_DECLINED",
  "INTERNAL_ERROR",
] as const;

export type ToolErrorCode = (typeof TOOL_ERROR_CODES)[number];

/** What a tool answered, as the model is told. */
export interface ToolResult {
  tool_call_id: string;
  success: boolean;
  result?: Json;
  error?: { code: ToolErrorCode; message: string; retriable: boolean };
}

/** One tool call to run. `operationId` is its identity across retries: the tool's idempotency key. */
export interface ToolInvocation {
  operationId: string;
  toolCallId: string;
  /** Version 0 = whatever is deployed. */
  tool: { library: string; id: string; version: number };
  input: JsonObject;
  timeoutMs: number;
  context: ExecutionContext;
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

/**
 * Small facts that the tools of one conversation keep in it: they survive restarts and end with it. Keys have at most
 * 200 characters, values at most 64 KiB of JSON; `INVALID_INPUT` otherwise. Writing the same again changes nothing, so
 * a tool that is run twice under one operation id does no harm by it.
 *
 * STATE-1  `put` is durable when it resolves.
 * STATE-2  `null` is absence: `get` answers it for a key that is not there, `put` of it removes the key.
 */
export interface ToolState {
  get(key: string): Promise<Json>;
  put(key: string, value: Json): Promise<void>;
  /** Entries whose key starts with `prefix`, ascending by key; the first 1 000. */
  list(prefix: string): Promise<ToolStateEntry[]>;
}

export interface ToolStateEntry {
  key: string;
  value: Json;
}

/** What a `Conversation` offers the tools it runs: the RPC face of `ToolState`. */
export interface ToolStateApi {
  toolStateGet(key: string): Promise<Result<Json>>;
  toolStatePut(key: string, value: Json): Promise<Result<null>>;
  toolStateList(prefix: string): Promise<Result<ToolStateEntry[]>>;
}
