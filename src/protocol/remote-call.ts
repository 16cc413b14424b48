/** The stored part of a call of a remote agent, and its cancellation. */
import { z } from "zod";
import type { JsonObject } from "../shared/json.ts";
import { serverAddressSchema } from "../shared/server-address.ts";

/** The version of A2A that the server and the client speak. */
export const A2A_VERSION = "1.0";

/** The kind of a remote task's address in envelopes. There is no actor of this kind. */
export const REMOTE_TASK = "remote-task";
/** The type of an envelope that cancels a remote task. */
export const REMOTE_CANCEL = "remote_task.cancel";

/** The identity of a tool that a remote agent answers. */
const tool = { library: z.string(), id: z.string() };

/** A call that may have been sent. It is stored before the message is sent, so that a repeated attempt sends the same message. */
export const remoteCallSchema = z.object({
  /** The address for requests. */
  endpoint: serverAddressSchema,
  /** The `tenant` of the agent's interface. */
  tenant: z.string().exactOptional(),
  /** When the call began, in milliseconds since the epoch. */
  begunAt: z.number(),
  contextId: z.string().exactOptional(),
  /** The task that the message continues. */
  continues: z.string().exactOptional(),
  /** The id of the request for approval that the message answers. */
  answers: z.string().exactOptional(),
  /** The task that answers. Absent until the agent has answered the message. */
  taskId: z.string().exactOptional(),
});

export type RemoteCall = z.infer<typeof remoteCallSchema>;

export const remoteCancelSchema = z.object({
  operationId: z.string(),
  tool: z.object(tool),
  url: serverAddressSchema,
  projectId: z.string(),
  /** The call as it was stored when the envelope was made, for a conversation that is deleted. Absent if no call was stored. */
  call: remoteCallSchema.exactOptional(),
});

export type RemoteCancelBody = z.infer<typeof remoteCancelSchema>;

/** The beginning of the keys of remote agents in the tool state. Lists of tool state do not contain them. */
export const REMOTE_STATE = "a2a.";

/** Returns the key of a call in the tool state of its conversation. */
export function remoteCallKey(operationId: string): string {
  return `${REMOTE_STATE}call.${operationId}`;
}

/** Returns the task that a cancellation ends: the task that answers the call, or else the task that its message continues. */
export function taskOfCall({ taskId, continues }: RemoteCall): string | undefined {
  return taskId ?? continues;
}

/** Returns `true` for the text `approve`, `false` for `deny`, and `undefined` for other texts. Spaces and case do not matter. */
export function approvalIn(text: string): boolean | undefined {
  const word = text.trim().toLowerCase();
  return word === "approve" || word === "deny" ? word === "approve" : undefined;
}

/** A message that was sent, perhaps without an answer. `input` is the input of the call. */
export interface LostMessage {
  operationId: string;
  input: JsonObject;
}

/** Cancels the task of a call. `lost`: the message, if it may be sent again to learn the task. Throws `DramatisError`: a retriable error if a later attempt may succeed. */
export type CancelRemote = (
  project: { tenant: string; projectId: string },
  remote: Pick<RemoteCancelBody, "tool" | "url">,
  call: RemoteCall,
  lost?: LostMessage,
) => Promise<void>;
