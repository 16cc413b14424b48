/** The JSON of A2A 1.0, as far as the server uses it. Pure. */
import type { JsonObject, JsonValue } from "../../shared/json.ts";

export const A2A_VERSION = "1.0";

export type A2aPart = ({ text: string } | { raw: string } | { url: string } | { data: JsonValue }) & {
  mediaType?: string | undefined;
  filename?: string | undefined;
};

export interface A2aMessage {
  messageId: string;
  contextId: string;
  taskId: string;
  role: "ROLE_USER" | "ROLE_AGENT";
  parts: A2aPart[];
}

export interface TaskStatus {
  state: `TASK_STATE_${"WORKING" | "INPUT_REQUIRED" | "COMPLETED" | "FAILED" | "CANCELED"}`;
  message?: A2aMessage;
  timestamp: string;
}

export interface A2aArtifact {
  artifactId: string;
  name: string;
  parts: A2aPart[];
}

export interface A2aTask {
  id: string;
  contextId: string;
  status: TaskStatus;
  artifacts: A2aArtifact[];
  history: A2aMessage[];
}

interface TaskIds {
  taskId: string;
  contextId: string;
}

/** An event of a stream. The first event is the task. */
export type StreamEvent =
  | { task: A2aTask }
  | { statusUpdate: TaskIds & { status: TaskStatus } }
  | { artifactUpdate: TaskIds & { artifact: A2aArtifact; append: boolean; lastChunk: boolean } };

/** The error codes of JSON-RPC and of A2A that the server sends. */
export const RPC_ERRORS = {
  METHOD_NOT_FOUND: -32601,
  INVALID_PARAMS: -32602,
  INTERNAL_ERROR: -32603,
  TASK_NOT_FOUND: -32001,
  TASK_NOT_CANCELABLE: -32002,
  PUSH_NOTIFICATION_NOT_SUPPORTED: -32003,
  UNSUPPORTED_OPERATION: -32004,
  VERSION_NOT_SUPPORTED: -32009,
} as const;

/** An error of JSON-RPC. `data` has its `google.rpc.ErrorInfo`. */
export interface RpcError {
  code: (typeof RPC_ERRORS)[keyof typeof RPC_ERRORS];
  message: string;
  data: JsonObject[];
}
