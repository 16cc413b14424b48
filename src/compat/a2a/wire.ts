/** The JSON of A2A 1.0, as far as the server uses it. Pure. */
import type { JsonValue } from "../../shared/json.ts";

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

/** The states of A2A that tasks of the server have. */
export type TaskState = `TASK_STATE_${"WORKING" | "INPUT_REQUIRED" | "COMPLETED" | "FAILED" | "CANCELED"}`;

export interface TaskStatus {
  state: TaskState;
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
  artifacts?: A2aArtifact[];
  history?: A2aMessage[];
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

export interface TaskPage {
  tasks: A2aTask[];
  /** Empty on the last page. */
  nextPageToken: string;
  pageSize: number;
  totalSize: number;
}
