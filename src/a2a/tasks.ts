/** The requests about a task of an agent of another server. */
import { remoteMessage } from "../library/tools/remote-agent.ts";
import { ToolError } from "../library/tools/tool-error.ts";
import { approvalIn, type LostMessage, type RemoteCall } from "../protocol/remote-call.ts";
import { type AgentRequests, Refusal, TooLarge } from "./requests.ts";
import { type RemoteTask, sentSchema, taskSchema } from "./wire.ts";

/** Sends a message. The end of the call does not abort the request, so that the answer names the task to cancel. */
export function sendMessage(requests: AgentRequests, call: RemoteCall, messageId: string, text: string) {
  const { contextId, continues: taskId, answers: id } = call;
  // The id keeps the answer from another request, which the task may have by now.
  const part = id === undefined ? { text } : { data: { id, approved: approvalIn(text) === true } };
  const message = {
    ...{ messageId, role: "ROLE_USER", parts: [part] },
    ...(contextId !== undefined && { contextId }),
    ...(taskId !== undefined && { taskId }),
  };
  const configuration = {
    acceptedOutputModes: ["text/plain", "application/json"],
    historyLength: 0,
    returnImmediately: true,
  };
  return requests.call(call, "SendMessage", { message, configuration }, sentSchema);
}

/** Sends a message again to learn its task; `undefined` if it has no task. */
export async function taskOfMessage(
  requests: AgentRequests,
  call: RemoteCall,
  { operationId, input }: LostMessage,
): Promise<string | undefined> {
  try {
    const answer = await sendMessage(requests, call, operationId, remoteMessage(input).text);
    return "task" in answer ? answer.task.id : undefined;
  } catch (error) {
    if (error instanceof Refusal && !error.retriable) return undefined;
    throw error;
  }
}

/** Reports whether a request was not permitted, by the other server or here. */
export function isDenied(error: unknown): boolean {
  return error instanceof ToolError && error.code === "PERMISSION_DENIED";
}

/** Returns a task; `null` if the agent cannot be asked now (A2ACALL-11). Throws `ToolError`. */
export async function taskOf(
  requests: AgentRequests,
  call: RemoteCall,
  id: string,
): Promise<RemoteTask | null> {
  try {
    return { ...(await requests.call(call, "GetTask", { id, historyLength: 0 }, taskSchema)), id };
  } catch (error) {
    if (isDenied(error)) throw error;
    const isRefused = error instanceof Refusal && !error.retriable;
    if (!isRefused && !(error instanceof TooLarge)) return null;
    await cancelTask(requests, call, id).catch(() => undefined);
    throw error;
  }
}

export async function cancelTask(requests: AgentRequests, call: RemoteCall, id: string): Promise<void> {
  try {
    await requests.call(call, "CancelTask", { id }, taskSchema);
  } catch (error) {
    // The task is over, or unknown.
    if (!(error instanceof Refusal) || error.retriable) throw error;
  }
}
