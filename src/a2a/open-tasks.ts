/** The tasks of remote agents that wait for input, in the tool state of the conversation that may answer (A2ACALL-5, A2ACALL-12). */
import { TASK_MEMBER } from "../library/tools/remote-agent.ts";
import { ToolError } from "../library/tools/tool-error.ts";
import type { ToolState } from "../protocol/executor-api.ts";
import { approvalIn, REMOTE_STATE, type RemoteCall } from "../protocol/remote-call.ts";
import { sha256Hex } from "../shared/sha256.ts";
import type { AgentRequests } from "./requests.ts";
import { type ApprovalRequest, isAsking, type OpenTask, openTask, openTaskSchema } from "./results.ts";
import { taskOf } from "./tasks.ts";

/** A tool that a remote agent answers, with the address of the agent. */
export interface RemoteTool {
  tool: { library: string; id: string };
  url: string;
}

export async function openKey({ tool: { library, id }, url }: RemoteTool, taskId: string): Promise<string> {
  return `${REMOTE_STATE}open.${await sha256Hex([url, library, id, taskId].join("\n"))}`;
}

/** Returns the task that a call continues; `undefined` for a new task. Throws `ToolError` if the task did not ask for input. */
export async function openOf(
  state: ToolState,
  remote: RemoteTool,
  continues: string | undefined,
): Promise<OpenTask | undefined> {
  if (continues === undefined) return undefined;
  const open = await state.get(await openKey(remote, continues));
  if (open === null)
    throw new ToolError(
      `No task "${continues}" of this agent waits for input in this conversation. Leave out \`${TASK_MEMBER}\` to begin a task.`,
      { code: "INVALID_INPUT" },
    );
  const { data } = openTaskSchema.safeParse(open);
  if (data !== undefined) return data;
  throw new ToolError("The stored task cannot be read. Its question was not answered.");
}

/**
 * Returns the request for approval that a message would answer, and stores what the task waits for now. `open` is absent for a repeated attempt.
 * Throws `ToolError` if the task no longer waits, or cannot be asked.
 */
export async function requestOf(
  requests: AgentRequests,
  call: RemoteCall,
  open: OpenTask | undefined,
  { text, state, ...remote }: RemoteTool & { text: string; state: ToolState },
): Promise<ApprovalRequest | undefined> {
  const { continues } = call;
  if (continues === undefined || (open?.request === undefined && approvalIn(text) === undefined))
    return undefined;
  const task = await taskOf(requests, call, continues);
  if (task === null)
    throw new ToolError("The remote agent did not say what its task waits for.", { retriable: true });
  if (isAsking(task)) {
    const now = openTask(task);
    await state.put(await openKey(remote, continues), requests.clean(now));
    return now.request;
  }
  // A repeated message may have been the answer.
  if (open === undefined) return undefined;
  throw new ToolError(`The task "${continues}" no longer waits for input.`, { code: "INVALID_INPUT" });
}
