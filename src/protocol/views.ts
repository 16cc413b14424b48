/** The views of resources that servers answer with, over HTTP, in frames and by RPC. Times are ISO 8601 UTC. */
import type {
  ConversationSummary,
  ConversationView,
  MessageView,
  TurnSummary,
} from "./conversation-schemas.ts";
import type { AgentCallView, ApprovalView, WireError } from "./move-schemas.ts";
import type { TaskView } from "./task-summary.ts";

/** A conversation as its actor publishes it to the lists, without the members that change with every turn and each person. */
export type PublishedConversation = Omit<ConversationSummary, "lastActivityAt" | "pinned" | "archived">;

export interface OperationView {
  id: string;
  turnId: string;
  name: string;
  /** The model's input. For a call that needs a person's approval: the input that runs. */
  input: unknown;
  /** The model's own input of such a call. Absent if the tool does not map it. */
  modelInput?: unknown;
  /** The task or the workflow that such a call runs, as `library/id`. Absent if the tool has no target. */
  target?: string;
  /** A client runs the tool: the turn waits for its result. */
  client?: true;
  /** The agent that answers the call. */
  agent?: AgentCallView;
  /** The run of a workflow that the call has started, in its present or last attempt. Its starter, and operators, may read it. */
  runId?: string;
  /** The operation runs in the background while the agent continues. */
  async?: true;
  /** The result comes later, by a handle: until this time, ISO 8601 UTC. Absent unless the call is deferred now. */
  deferredUntil?: string;
  /** The run or the agent of the call, or work below it, waits for a person. */
  held?: true;
  /** Number of the present or last attempt; 1 when absent. */
  attempt?: number;
  /** Present if the call needs a person's approval. */
  approval?: ApprovalView;
  /** `awaiting_approval`: the call runs once a person approves it. */
  state: "awaiting_approval" | "running" | "completed" | "failed" | "cancelled";
  /** The record of the last attempt, for a task of steps. */
  task?: TaskView;
  result?: unknown;
  error?: WireError;
}

export interface Snapshot {
  conversation: ConversationView;
  /** The turns of `messages`, and every active one. */
  turns: TurnSummary[];
  /** The last page. HTTP serves earlier pages. */
  messages: MessageView[];
  partials: { messageId: string; turnId: string; text: string }[];
  operations: OperationView[];
}
