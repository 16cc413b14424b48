/**
 * The interface between a conversation and the executor of its tools.
 *
 * STATE-1  `put` of tool state is durable when it resolves.
 * STATE-2  In tool state `null` means absent: `get` returns it for a missing key, and putting it deletes the key.
 */
import type { Result } from "../shared/errors.ts";
import type { CallContext } from "../shared/identifiers.ts";
import type { Json, JsonObject } from "../shared/json.ts";

/** One tool call to run. */
export interface ToolInvocation {
  /** Identifies the call across retries: the tool's idempotency key. */
  operationId: string;
  toolCallId: string;
  /** Version 0 means the deployed one. */
  tool: { library: string; id: string; version: number };
  input: JsonObject;
  timeoutMs: number;
  context: CallContext;
}

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

/** The result of a tool call, as the model gets it. */
export interface ToolResult {
  tool_call_id: string;
  success: boolean;
  result?: Json;
  error?: { code: ToolErrorCode; message: string; retriable: boolean };
}

/** Maximum size of a tool's output, in bytes of JSON. */
export const MAX_OUTPUT_BYTES = 1_048_576;

/** One line of an executor's answer. */
export type ExecutorReport =
  | { operationId: string; result: ToolResult }
  | { operationId: string; progress: Json };

/**
 * Runs a batch of calls and reports each as it proceeds, so a slow tool delays no other. Each call gets one result, after its
 * progress. Iterating throws `UNAVAILABLE` if the executor is lost: the outcome of calls without a result is then unknown.
 * Aborting the signal ends running calls with the result `EXECUTION_FAILED`. Leaving the iteration aborts them without a
 * report.
 */
export interface TaskExecutor {
  run(calls: ToolInvocation[], signal: AbortSignal): AsyncIterable<ExecutorReport>;
}

/** The RPC interface of the `Executor` entrypoint. */
export interface ExecutorService {
  /**
   * Runs all calls at once and returns their reports as bytes, one JSON text per line. An invalid call gets an error result;
   * rejects with `INVALID_INPUT` if `calls` is not a batch of calls. Aborting `signal` or cancelling the stream cancels the
   * calls that still run.
   */
  run(calls: ToolInvocation[], signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;
}

/**
 * Small facts that the tools of a conversation keep in it: they survive restarts and end with the conversation. Keys have at
 * most 200 characters, values at most 64 KiB of JSON; `INVALID_INPUT` otherwise. Repeating a `put` changes nothing, so a
 * tool may run twice under one operation id.
 */
export interface ToolState {
  get(key: string): Promise<Json>;
  put(key: string, value: Json): Promise<void>;
  /** Returns the entries whose key starts with `prefix`, ascending by key; the first 1 000. */
  list(prefix: string): Promise<ToolStateEntry[]>;
}

export interface ToolStateEntry {
  key: string;
  value: Json;
}

/** `ToolState` as a `Conversation` actor serves it by RPC. */
export interface ToolStateApi {
  toolStateGet(key: string): Promise<Result<Json>>;
  toolStatePut(key: string, value: Json): Promise<Result<null>>;
  toolStateList(prefix: string): Promise<Result<ToolStateEntry[]>>;
}
