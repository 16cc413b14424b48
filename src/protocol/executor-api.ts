/**
 * The interface between an actor, a conversation or a coordinator of a workflow, and the executor of its calls.
 *
 * STATE-1  `put` of tool state is durable when it resolves.
 * STATE-2  In tool state `null` means absent: `get` returns it for a missing key, and putting it deletes the key.
 */

import type { Allowance } from "../model/spending.ts";
import type { Result } from "../shared/errors.ts";
import type { CallContext } from "../shared/identifiers.ts";
import type { Json, JsonObject } from "../shared/json.ts";
import type { PinnedTask } from "./task-definition.ts";
import type { TaskSummary } from "./task-summary.ts";
import type { CalledMemory } from "./tool-memory.ts";

/** One tool call to run. */
export interface ToolInvocation {
  /** Identifies the call across retries: the tool's idempotency key. */
  operationId: string;
  /** The attempt of the operation, from 1. */
  attempt: number;
  toolCallId: string;
  /** Version 0 means the deployed one. */
  tool: { library: string; id: string; version: number };
  /** The steps of a task, which run in the place of the tool's code. */
  task?: PinnedTask;
  input: JsonObject;
  /** The most that the models of the task may use up (LLM-5); absent where no budget limits them. */
  allowance?: Allowance;
  timeoutMs: number;
  /**
   * The most bytes of JSON that the caller's turn takes as the result. The Executor stores a larger result, and the caller gets a view of
   * it. Absent: a result of more than `MAX_OUTPUT_BYTES` is an error.
   */
  inlineBytes?: number;
  context: CallContext;
  /** Absent where the agent has no memory. */
  memory?: CalledMemory;
}

export const TOOL_ERROR_CODES = [
  "EXECUTION_FAILED",
  "TIMEOUT",
  "NOT_FOUND",
  "PERMISSION_DENIED",
  "APPROVAL_DENIED",
  "INVALID_INPUT",
  "AGENT_DECLINED",
  "CANCELLED",
  "BUDGET_EXCEEDED",
  "INTERNAL_ERROR",
] as const;

export type ToolErrorCode = (typeof TOOL_ERROR_CODES)[number];

/** The result of a tool call, as the model gets it: `result` if it succeeded, otherwise `error`. */
export interface ToolResult {
  tool_call_id: string;
  success: boolean;
  result?: Json;
  error?: { code: ToolErrorCode; message: string; retriable: boolean };
}

/** Maximum size of a tool's output, in bytes of JSON. */
export const MAX_OUTPUT_BYTES = 1_048_576;

/** Maximum nesting of a tool's output and of its progress. */
export const MAX_OUTPUT_DEPTH = 1_000;

/** The result of one attempt of a call. */
export interface AttemptResult {
  result: ToolResult;
  /** The attempt failed for a reason that may pass: its time was over, its code broke, or the tool said that a repetition may succeed. */
  transient?: true;
  /** The record of a task of steps. */
  task?: TaskSummary;
  /** The call has read a tainted memory, or a turn with a mark (MEMTOOL-6). */
  tainted?: true;
}

/** An attempt that ended without a result: it comes later, by a handle. */
export interface DeferredAttempt {
  /** `expiresAt`: milliseconds since the epoch. */
  deferred: { expiresAt: number };
}

/** The end of one attempt of a call. */
export type AttemptEnd = AttemptResult | DeferredAttempt;

/** A report on one call. A call ends once, after all of its progress. */
export type ExecutorReport = ({ operationId: string } & AttemptEnd) | { operationId: string; progress: Json };

/** The caller's side of a batch. */
export interface BatchCaller {
  /**
   * Takes reports, in order. Resolves with the operations whose results could not be stored, to be reported again: with
   * none when all results are the caller's. A rejected report was not taken. A report may come twice.
   */
  report(reports: ExecutorReport[]): Promise<string[]>;
  /**
   * Resolves with operations that were cancelled, when there are some: their signals must abort. Resolves with none when
   * the batch is over.
   */
  cancelled(): Promise<string[]>;
}

/** Runs tool calls: the RPC interface of the `Executor` entrypoint. */
export interface TaskExecutor {
  /**
   * Runs a batch of calls at once and reports on each as it proceeds, so a slow tool delays no other. An invalid call gets an
   * error result. Resolves when every result was taken. Rejects with `INVALID_INPUT` if `calls` is not a batch of calls; any
   * other rejection means that the executor is lost, and the outcome of calls without a result unknown. Throws, instead of
   * rejecting, where the executor cannot be reached: then no call runs.
   *
   * If the caller is lost, the calls go on. Their results go to the caller's actor by `TaskResultApi`.
   */
  run(calls: ToolInvocation[], caller: BatchCaller): Promise<void>;
}

/** The result of an operation whose executor has lost its caller. */
export type TaskResult = { operationId: string; attempt: number } & AttemptEnd;

/** The failure of an attempt. */
export interface TaskError {
  operationId: string;
  attempt: number;
  error: NonNullable<ToolResult["error"]>;
}

/** The door of a caller's actor for results that come after a crash. Only Workers with a binding reach it. */
export interface TaskResultApi {
  /**
   * Takes the result if the operation still waits for this attempt, and changes nothing otherwise. `NOT_FOUND` for an unknown
   * operation. Resolves when the result is durable.
   */
  handleTaskResult(result: TaskResult): Promise<Result<null>>;
}

/** The door of a `Conversation` actor for failures that other code than the Executor reports. */
export interface TaskErrorApi {
  /** As `handleTaskResult`, for a failure. */
  handleTaskError(failure: TaskError): Promise<Result<null>>;
}

/**
 * Small facts that the tools of a conversation, or the tasks of a workflow's run, keep in its actor: they survive restarts and end
 * with the conversation or the run. Keys have at most 200 characters, values at most 64 KiB of JSON; `INVALID_INPUT` otherwise. Repeating a `put` changes nothing, so a
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

/** `ToolState` as a caller's actor serves it by RPC. */
export interface ToolStateApi {
  toolStateGet(key: string): Promise<Result<Json>>;
  toolStatePut(key: string, value: Json): Promise<Result<null>>;
  toolStateList(prefix: string): Promise<Result<ToolStateEntry[]>>;
}
