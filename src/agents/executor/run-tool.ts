/**
 * Runs one tool call to exactly one result, and never throws.
 *
 * TASK-1  Input that does not match the tool's schema never reaches its code.
 * TASK-2  A call ends on timeout or cancellation, even if the tool continues. Later results and progress are dropped, except for the result
 *         of a tool that continues after a cancellation (TASK-5).
 * TASK-3  An error carries the tool's message and code, never a stack.
 * TASK-4  Any value that a tool throws becomes a valid error: an unknown code is `EXECUTION_FAILED`, and the message is text.
 * TASK-5  `onAbandoned` gets the late result of a tool that ignored its cancellation.
 */
import {
  excerptOf,
  isLarge,
  pageRequest,
  READ_RESULT,
  viewOfResult,
} from "../../attachments/large-result.ts";
import type { Tool, ToolContext } from "../../library/define/define.ts";
import { mcpServerOf } from "../../library/definitions/mcp-reference.ts";
import type { ToolCodes } from "../../library/registry/deployed-code.ts";
import { Asked, Continued } from "../../library/tools/continued.ts";
import { type DeferOptions, Deferred, NOT_DEFERRABLE } from "../../library/tools/deferred.ts";
import { ToolError } from "../../library/tools/tool-error.ts";
import { MAX_RULE } from "../../policy/gate.ts";
import type { Clock } from "../../ports/clock.ts";
import { withDeadline } from "../../ports/deadline.ts";
import type { ToolArtifacts } from "../../protocol/artifacts.ts";
import type { ToolEffect } from "../../protocol/definition-parts.ts";
import type {
  AttemptEnd,
  AttemptResult,
  ToolErrorCode,
  ToolInvocation,
  ToolResult,
  ToolState,
} from "../../protocol/executor-api.ts";
import { MAX_OUTPUT_BYTES, MAX_PROGRESS_BYTES, TOOL_ERROR_CODES } from "../../protocol/executor-api.ts";
import type { GivenHandle } from "../../protocol/operation-handle.ts";
import type { ToolMemory } from "../../protocol/tool-memory.ts";
import type { ToolWorkspace } from "../../protocol/workspace.ts";
import { defined } from "../../shared/defined.ts";
import { placeOf } from "../../shared/error-place.ts";
import { DramatisError } from "../../shared/errors.ts";
import type { CallContext } from "../../shared/identifiers.ts";
import type { Json } from "../../shared/json.ts";
import { cut } from "../../shared/text.ts";
import { unreachableClass } from "../base/lookup/class-problems.ts";
import type { CallTaint } from "./memory.ts";
import { parseOutput, textOf, toJson } from "./output.ts";
import type { ActionPorts } from "./steps/run-action.ts";
import { runTask } from "./steps/run-task.ts";
import { StepError } from "./steps/step-error.ts";
import { TaskRecord } from "./steps/task-record.ts";
import type { StoredResults } from "./stored-results.ts";
import { toolErrorCode } from "./tool-error-code.ts";

export interface ToolPorts extends Omit<ActionPorts, "tools" | "clock"> {
  tools: ToolCodes;
  clock: Clock;
  state(context: CallContext): ToolState;
  /** Returns the memory that a call may use, as `memoryFor`. */
  memory(call: ToolInvocation, taint: CallTaint): ToolMemory;
  /** Returns the artifacts that a call may use, as `artifactsFor`. Without it, calls have no artifacts. */
  artifacts?(call: ToolInvocation, taint: CallTaint): ToolArtifacts;
  /** Returns the workspace of a call, as `workspaceFor`. Without it, calls have no workspace. */
  workspace?(call: ToolInvocation, signal: AbortSignal, taint: CallTaint): ToolWorkspace;
  defer(call: ToolInvocation, options: DeferOptions): Promise<GivenHandle>;
  results: StoredResults;
  /** Calls a tool of an MCP server. Without it, the Executor has no servers. */
  mcp?(call: ToolInvocation, server: string, context: ToolContext): Promise<Json | Asked>;
  /** Runs an attempt of a call of a remote agent. Without it, the Executor cannot call remote agents. */
  remoteAgent?(call: ToolInvocation, url: string, context: ToolContext): Promise<Json | Continued | Asked>;
  /** The address of the Worker, if it is known. */
  baseUrl: string | undefined;
}

const MAX_MESSAGE_LENGTH = 4_000;
const NO_WORKSPACE: ToolWorkspace = {
  perform: () => Promise.reject(new ToolError("This Executor has no workspaces.")),
};
const NO_ARTIFACTS: ToolArtifacts = {
  perform: () => Promise.reject(new ToolError("This Executor has no artifacts.")),
};
const NO_MESSAGE = "The tool failed without a message.";

/** Receives the reports of a call during and after its run. */
export interface CallListener {
  onProgress(progress: Json): void;
  /** Gets the success of a tool that continued after the cancellation of its call. Rejects if the tool fails. */
  onAbandoned(result: Promise<ToolResult>): void;
}

export async function runTool(
  ports: ToolPorts,
  call: ToolInvocation,
  signal: AbortSignal,
  { onProgress, onAbandoned }: CallListener,
): Promise<AttemptEnd> {
  const { clock, state, memory, defer, baseUrl } = ports;
  const record = call.task && new TaskRecord(call.task, clock, call.allowance);
  let running = true;
  const taint: CallTaint = {};
  const given = new Set<unknown>();
  let work: Promise<unknown> | undefined;
  /** Returns the effects of the call in addition to its result. */
  const did = () => defined({ task: record?.summary, tainted: taint.tainted });
  const succeeded = async (value: unknown): Promise<ToolResult> => {
    const result = await outputOf(ports, call, value);
    return { tool_call_id: call.toolCallId, success: true, result };
  };
  try {
    const run = async (ended: AbortSignal) => {
      const { effect, execute } = codeOf(ports, call, record);
      const context: ToolContext = {
        operationId: call.operationId,
        signal: ended,
        context: call.context,
        state: state(call.context),
        memory: memory(call, taint),
        workspace: ports.workspace?.(call, ended, taint) ?? NO_WORKSPACE,
        artifacts: ports.artifacts?.(call, taint) ?? NO_ARTIFACTS,
        skills: call.skills ?? [],
        now: () => clock.now(),
        async defer(options = {}) {
          if (effect === "pure") throw new ToolError(NOT_DEFERRABLE);
          const { handle, expiresAt } = await defer(call, options);
          const deferred = new Deferred(handle, expiresAt, baseUrl);
          given.add(deferred);
          return deferred;
        },
        progress(report) {
          const progress = toJson(report, "The progress", MAX_PROGRESS_BYTES);
          if (running) onProgress(progress);
        },
      };
      work = execute(call.input, context);
      return work;
    };
    const value = await withDeadline(clock, call.timeoutMs, run, {
      outer: signal,
      reason: () => timedOut(call),
    });
    if (value instanceof Deferred && given.has(value))
      return { deferred: { expiresAt: value.expiresAt.getTime() } };
    if (value instanceof Asked)
      return {
        result: failedResult(call.toolCallId, new ToolError(value.problem)),
        elicited: value.elicited,
      };
    if (value instanceof Continued)
      return { result: failedResult(call.toolCallId, timedOut(call)), continuesAt: value.at };
    return { result: await succeeded(value), ...did() };
  } catch (error) {
    if (!signal.aborted) return { ...failedAttempt(call, error), ...did() };
    if (work !== undefined) onAbandoned(work.then((value) => succeeded(finished(value))));
    const cancelled = new ToolError("The call was cancelled.", { code: "CANCELLED" });
    return { result: failedResult(call.toolCallId, cancelled), ...did() };
  } finally {
    running = false;
  }
}

/** Returns the value of a tool that has a result. Throws for a tool that has none yet, because its work continues elsewhere. */
function finished(value: unknown): unknown {
  if (!(value instanceof Continued || value instanceof Asked || value instanceof Deferred)) return value;
  throw new ToolError("The call was cancelled.", { code: "CANCELLED" });
}

/** Returns the output of a call, or a view of it if it is too large for the caller's turn (LARGE-1). */
async function outputOf(
  { results }: Pick<ToolPorts, "results">,
  call: ToolInvocation,
  value: unknown,
): Promise<Json> {
  const what = "The tool ran, but its output";
  const text = textOf(value, what);
  const { inlineBytes } = call;
  if (inlineBytes === undefined || !isLarge(text, inlineBytes))
    return parseOutput(text, what, MAX_OUTPUT_BYTES);
  return viewOfResult(excerptOf(text), await results.keep(call, text));
}

/** Returns the result of an attempt that failed with `error`. A defect of the tool's code may be transient. */
function failedAttempt(
  { toolCallId, tool: { library, id }, operationId }: ToolInvocation,
  error: unknown,
): AttemptResult {
  const result = failedResult(toolCallId, error, ` (${library}/${id}, ${operationId})`);
  return isDefect(error) || result.error?.retriable ? { result, transient: true } : { result };
}

/** Reports whether a tool, or a step of its task, failed with an error that is not a platform error. Never throws, as `errorOf`. */
function isDefect(thrown: unknown): boolean {
  try {
    if (thrown instanceof StepError) return thrown.mayPass;
    return !(thrown instanceof ToolError || thrown instanceof DramatisError);
  } catch {
    return true;
  }
}

/** Returns the result of a failed call. `place` is appended to the log of an unexpected error: the tool and its operation. */
export function failedResult(toolCallId: string, error: unknown, place = ""): ToolResult {
  return { tool_call_id: toolCallId, success: false, error: errorOf(error, place) };
}

/** Never throws. Reading a foreign error can fail, and its members can have any type. */
function errorOf(thrown: unknown, place: string): NonNullable<ToolResult["error"]> {
  try {
    const { code, message, retriable, rule } = describe(thrown, place);
    const text = cut(String(message ?? ""), MAX_MESSAGE_LENGTH) || NO_MESSAGE;
    const denied =
      code === "PERMISSION_DENIED" && typeof rule === "string" ? { rule: cut(rule, MAX_RULE) } : {};
    return { code: knownCode(code), message: text, retriable: Boolean(retriable), ...denied };
  } catch {
    return { code: "EXECUTION_FAILED", message: NO_MESSAGE, retriable: false };
  }
}

function knownCode(code: unknown): ToolErrorCode {
  return TOOL_ERROR_CODES.find((known) => known === code) ?? "EXECUTION_FAILED";
}

/** Returns the code of a call: the steps of its task, or deployed code. */
function codeOf(
  ports: ToolPorts,
  call: ToolInvocation,
  record: TaskRecord | undefined,
): { effect?: ToolEffect; execute: Tool["run"] } {
  const {
    task,
    remote,
    tool: { library, id },
  } = call;
  if (library === READ_RESULT.library && id === READ_RESULT.id)
    return {
      effect: "pure",
      execute: async () => ports.results.read(call, pageRequest(call.input)),
    };
  const server = mcpServerOf(library);
  if (server !== undefined && ports.mcp !== undefined) {
    const { mcp } = ports;
    return { execute: (_, context) => mcp(call, server, context) };
  }
  if (remote !== undefined && ports.remoteAgent !== undefined) {
    const { remoteAgent } = ports;
    return { execute: (_, context) => remoteAgent(call, remote.url, context) };
  }
  if (task !== undefined && record !== undefined)
    return { execute: (input, context) => runTask(task, input as Json, { context, ports, record }) };
  const code = ports.tools.toolCode(library, id);
  if (code !== undefined) return { effect: code.definition.effect, execute: code.run };
  throw new ToolError(`The tool "${library}/${id}" is not deployed.`, { code: "NOT_FOUND" });
}

function timedOut({ timeoutMs }: ToolInvocation): ToolError {
  const message = `The tool did not answer within ${timeoutMs} ms.`;
  return new ToolError(message, { code: "TIMEOUT", retriable: true });
}

function describe(
  error: unknown,
  place: string,
): { code: unknown; message: unknown; retriable: unknown; rule?: unknown } {
  if (error instanceof ToolError) return error;
  if (error instanceof DramatisError) {
    const { message, retriable, options } = error;
    return { code: toolErrorCode(error), message, retriable, rule: options.rule };
  }
  // Log the place of unexpected errors for the tool's author. The message is only in the result, because it may quote the input.
  console.error(`A tool failed${place}:`, placeOf(error));
  const message =
    error instanceof Error
      ? (unreachableClass(error) ?? error.message)
      : typeof error === "string"
        ? error
        : "";
  return { code: "EXECUTION_FAILED", message, retriable: false };
}
