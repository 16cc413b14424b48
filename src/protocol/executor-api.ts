/**
 * The interface between an actor, a conversation or a coordinator of a workflow, and the executor of its calls.
 *
 * STATE-1  `put` of tool state is durable when it resolves.
 * STATE-2  In tool state `null` means absent: `get` returns it for a missing key, and putting it deletes the key.
 * REPORT-4  Only JSON arrives, nested at most as deep as a tool's output may be. A result has `result` if it succeeded, and
 *           `error` otherwise.
 */
import { z } from "zod";
import type { Allowance } from "../model/spending.ts";
import type { Result } from "../shared/errors.ts";
import type { CallContext } from "../shared/identifiers.ts";
import { isJsonWithin, type Json, type JsonObject } from "../shared/json.ts";
import { validate } from "../shared/validation.ts";
import type { Skill } from "./definition-parts.ts";
import { type ElicitedAnswer, elicitedSchema } from "./elicitation.ts";
import type { PinnedTask } from "./task-definition.ts";
import { type TaskSummary, taskSummarySchema } from "./task-summary.ts";
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
  /** The steps of a task. They replace the tool's code. */
  task?: PinnedTask;
  /** The agent of another server that answers the call. `url` is its address. `following`: the attempt sends no message (A2ATASK-3). */
  remote?: { url: string; following?: true };
  /** The answer of a person to the question of the attempt before. */
  answer?: ElicitedAnswer;
  input: JsonObject;
  /** The budget of the task's models (LLM-5). Absent without a budget. */
  allowance?: Allowance;
  timeoutMs: number;
  /**
   * The most bytes of JSON that the caller's turn takes as the result. The Executor stores a larger result, and the caller gets a view of
   * it. Absent: a result of more than `MAX_OUTPUT_BYTES` is an error.
   */
  inlineBytes?: number;
  context: CallContext;
  /** The projects of the agent. Absent if it has only the project of the context. */
  projectIds?: readonly string[];
  /** Absent if the agent has no skills. */
  skills?: readonly Skill[];
  /** Absent if the agent has no memory. */
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

/** The failure of a tool call in results and in messages between actors. */
export const toolErrorFields = {
  code: z.enum(TOOL_ERROR_CODES),
  message: z.string(),
  retriable: z.boolean(),
};

/** The result of a tool call, as the model gets it: `result` if it succeeded, otherwise `error`. */
export interface ToolResult {
  tool_call_id: string;
  success: boolean;
  result?: Json;
  /** `rule`: the id of the rule that denied the call while it ran. */
  error?: { code: ToolErrorCode; message: string; retriable: boolean; rule?: string };
}

/** Maximum size of a tool's output, in bytes of JSON. */
export const MAX_OUTPUT_BYTES = 1_048_576;
/** Maximum size of a report of progress, in bytes of JSON. */
export const MAX_PROGRESS_BYTES = 16_384;

/** Maximum nesting of a tool's output and of its progress. */
export const MAX_OUTPUT_DEPTH = 1_000;

const operationId = z.string().min(1).max(200);
const attempt = z.int().min(1);

/** Zod's own JSON type would drop a member called `__proto__`. */
const json = z.custom<Json>(
  (value) => isJsonWithin(value, MAX_OUTPUT_DEPTH),
  `Must be JSON, nested at most ${MAX_OUTPUT_DEPTH} deep.`,
);

const error = z.strictObject({ ...toolErrorFields, rule: z.string().exactOptional() });

// The members are optional in the type, so that readers need no check of `success`.
const resultSchema: z.ZodType<ToolResult> = z.discriminatedUnion("success", [
  z.strictObject({ tool_call_id: z.string(), success: z.literal(true), result: json }),
  z.strictObject({ tool_call_id: z.string(), success: z.literal(false), error }),
]);

const attemptResultSchema = z.strictObject({
  result: resultSchema,
  /** The attempt failed for a reason that may pass: its time was over, its code broke, or the tool said that a repetition may succeed. */
  transient: z.literal(true).exactOptional(),
  /**
   * The work continues elsewhere, and `result` is no result. The next attempt asks for the result, no earlier than this time, in
   * milliseconds since the epoch. Only calls of remote agents continue.
   */
  continuesAt: z.int().min(0).exactOptional(),
  /** The call asks a person. `result` is the error of a call that cannot ask. */
  elicited: elicitedSchema.exactOptional(),
  /** The record of a task of steps. It is worth less than the result: an invalid record is left out. */
  // SAFETY: readers take an absent summary and an undefined one alike.
  task: (taskSummarySchema.optional().catch(undefined) as z.ZodType<TaskSummary>).exactOptional(),
  /** The call has read a tainted memory, or a turn with a mark (MEMTOOL-6). */
  tainted: z.literal(true).exactOptional(),
});

export type AttemptResult = z.infer<typeof attemptResultSchema>;

const deferredSchema = z.strictObject({
  /** `expiresAt`: milliseconds since the epoch. */
  deferred: z.strictObject({ expiresAt: z.int() }),
});

/** An attempt that ended without a result: it comes later, by a handle. */
export type DeferredAttempt = z.infer<typeof deferredSchema>;

export type AttemptEnd = AttemptResult | DeferredAttempt;

export const reportsSchema = z.array(
  z.union([
    attemptResultSchema.extend({ operationId }),
    deferredSchema.extend({ operationId }),
    z.strictObject({ operationId, progress: json }),
  ]),
);

/** A report on one call. A call ends once, after all of its progress. */
export type ExecutorReport = z.infer<typeof reportsSchema>[number];

export interface BatchCaller {
  /**
   * Accepts reports in order. Resolves with the operations that must be reported again because their results were not
   * stored. The list is empty if all results are stored. If it rejects, the report was not accepted. A report may
   * arrive twice.
   */
  report(reports: ExecutorReport[]): Promise<string[]>;
  /**
   * Resolves with cancelled operations as soon as there are some. Their signals must abort. Resolves with an empty
   * list when the batch is over.
   */
  cancelled(): Promise<string[]>;
}

/** Runs tool calls: the RPC interface of the `Executor` entrypoint. */
export interface TaskExecutor {
  /**
   * Runs a batch of calls concurrently and reports progress of each call, so a slow tool does not delay the others.
   * An invalid call gets an error result. Resolves when every result was accepted. Rejects with `INVALID_INPUT` if
   * `calls` is not a batch of calls. Any other rejection means that the executor is lost: the outcome of calls
   * without a result is unknown. Throws synchronously if the executor is unreachable: then no call runs.
   *
   * If the caller is lost, the calls continue. Their results reach the caller's actor through `TaskResultApi`.
   */
  run(calls: ToolInvocation[], caller: BatchCaller): Promise<void>;
}

export const taskResultSchema = z.union([
  attemptResultSchema.extend({ operationId, attempt }),
  deferredSchema.extend({ operationId, attempt }),
]);

/** The result of an operation after its executor has lost its caller. */
export type TaskResult = z.infer<typeof taskResultSchema>;

const taskErrorSchema = z.strictObject({ operationId, attempt, error });

/** Returns a failure as the result of its attempt. Throws `INVALID_INPUT`. */
export function taskFailure(failure: unknown) {
  const { error, ...address } = validate(taskErrorSchema, failure);
  return { ...address, result: { tool_call_id: "", success: false as const, error } };
}

export type TaskError = z.infer<typeof taskErrorSchema>;

/** The RPC interface of a caller's actor for results that come after a crash. Only Workers with a binding reach it. */
export interface TaskResultApi {
  /**
   * Accepts the result if the operation still waits for this attempt, and ignores it otherwise. `NOT_FOUND` for an
   * unknown operation. Resolves when the result is durable.
   */
  handleTaskResult(result: TaskResult): Promise<Result<null>>;
}

/** The RPC interface of a `Conversation` actor for failures that other code than the Executor reports. */
export interface TaskErrorApi {
  /** As `handleTaskResult`, for a failure. */
  handleTaskError(failure: TaskError): Promise<Result<null>>;
}

/** The methods of a `Conversation` actor for the results that the Executor stores. */
export interface ErasedCallApi {
  /** Reports whether a call was erased. Removes its stored results if it was. `NOT_FOUND` if the conversation does not exist. */
  isErased(operationId: string): Promise<Result<boolean>>;
}

/**
 * Small facts that the tools of a conversation or the tasks of a run store in its actor. They survive restarts and
 * end with the conversation or the run. Keys have at most 200 characters, values at most 64 KiB of JSON. Larger
 * entries fail with `INVALID_INPUT`. Repeating a `put` is a no-op, so a tool may run twice under one operation id.
 */
export interface ToolState {
  get(key: string): Promise<Json>;
  put(key: string, value: Json): Promise<void>;
  /** Returns the first 1 000 entries with a key that starts with `prefix`, ascending by key. */
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
