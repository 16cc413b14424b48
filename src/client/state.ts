/**
 * What a client knows of one conversation: a plain immutable value, and the views that user interfaces read from it.
 *
 * VIEW-1  What a frame did not touch keeps its identity, so a rendered item changes only when its object does.
 * VIEW-2  A turn's items stand in the order in which they first appeared; a finished message takes its partial's place.
 */

import type { OutputSpec, ToolSpec } from "../model/context.ts";
import type { ToolChoice, ToolSubmission } from "../protocol/requests.ts";
import type {
  ConversationView,
  MessageView,
  OperationView,
  TurnIssues,
  WireError,
} from "../protocol/views.ts";
import type { Content } from "../shared/content.ts";
import { defined } from "../shared/defined.ts";

/**
 * `reconnecting`: lost, and being restored. `closed`: it will not be restored by itself. `unauthorized`: neither will
 * this; the server takes the token no longer.
 */
export type ConnectionStatus = "connecting" | "open" | "reconnecting" | "closed" | "unauthorized";

export interface OperationState extends OperationView {
  /** The newest progress report of a running tool. */
  progress?: unknown;
}

/** A failed attempt that is being repeated. */
export interface RetryNotice {
  code: string;
  message: string;
  /** ISO 8601 UTC. */
  time: string;
}

/** One thing that a turn brought forth. `thought` is text beside tool calls: never part of the transcript. */
export type TurnItem =
  | { type: "message"; id: string; message: MessageView }
  | { type: "partial"; id: string; text: string; agentId: string; startedAt: string; restarted: boolean }
  | { type: "thought"; id: string; text: string }
  | { type: "tool"; id: string; operation: OperationState };

export interface TurnState {
  id: string;
  status: "active" | "completed" | "failed";
  agentId: string;
  /** ISO 8601 UTC. */
  createdAt: string;
  completedAt: string | null;
  items: readonly TurnItem[];
  /** Every attempt that failed and was repeated. */
  retries: readonly RetryNotice[];
  /** An attempt has failed and the next one shows no progress yet. */
  retrying: boolean;
  error?: WireError;
  issues?: TurnIssues;
  /** The data of its answer, where it asked for data. */
  output?: unknown;
}

/** A message that this client has sent and the conversation has not yet recorded. */
export interface PendingMessage {
  clientId: string;
  content: Content;
  replyToMessageId?: string;
  /** The answer must be JSON of this schema. */
  output?: OutputSpec;
  tools?: ToolSpec[];
  toolChoice?: ToolChoice;
  /** ISO 8601 UTC. */
  createdAt: string;
  /** `rejected`: the conversation refused it; `error` says why. */
  status: "sending" | "rejected";
  error?: WireError;
}

/** A result that this client has given and the conversation has not yet recorded. */
export interface PendingResult extends ToolSubmission {
  /** `rejected`: the conversation refused it; `refusal` says why. */
  status: "sending" | "rejected";
  refusal?: WireError;
}

export interface LiveConversation {
  /** Number of the last durable frame that was applied; `null` before the first. */
  seq: number | null;
  connection: ConnectionStatus;
  /** `null` until the first snapshot. */
  conversation: ConversationView | null;
  /** The transcript as far as it is loaded, oldest first. */
  messages: readonly MessageView[];
  /** The turns of `messages` and every active one, oldest first. */
  turns: readonly TurnState[];
  pending: readonly PendingMessage[];
  /** Results that this client has given of tools that it runs; none when absent. */
  results?: readonly PendingResult[];
  /** The last error that concerns neither a turn nor a message of this client. */
  error: WireError | null;
}

export const initialState: LiveConversation = {
  seq: null,
  connection: "connecting",
  conversation: null,
  messages: [],
  turns: [],
  pending: [],
  error: null,
};

/** A message as a user interface shows it, whatever its state. */
export interface TranscriptMessage {
  /** Stays the same from sending to recorded, from streaming to complete. */
  key: string;
  role: "user" | "agent";
  status: "sending" | "rejected" | "sent" | "streaming";
  content: Content;
  /** ISO 8601 UTC. */
  createdAt: string;
  id?: string;
  turnId?: string;
  agentId?: string;
  error?: WireError;
}

/** Recorded messages, then those being streamed, then those being sent. */
export function visibleMessages(state: LiveConversation): TranscriptMessage[] {
  return [
    ...state.messages.map(recordedMessage),
    ...state.turns.flatMap(streamedMessages),
    ...state.pending.map(pendingMessage),
  ];
}

/** Some turn is still at work. */
export function isAnswering(state: LiveConversation): boolean {
  return state.turns.some((turn) => turn.status === "active");
}

/** The text of a content; images and files have none. */
export function textOf(content: Content): string {
  if (typeof content === "string") return content;
  return content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n");
}

function recordedMessage(message: MessageView): TranscriptMessage {
  const { id, turnId, role, content, createdAt, agentId, clientId } = message;
  return {
    key: clientId ?? id,
    role,
    status: "sent",
    content,
    createdAt,
    id,
    turnId,
    ...defined({ agentId }),
  };
}

function streamedMessages(turn: TurnState): TranscriptMessage[] {
  return turn.items.flatMap((item) =>
    item.type === "partial"
      ? [
          {
            key: item.id,
            role: "agent" as const,
            status: "streaming" as const,
            content: item.text,
            createdAt: item.startedAt,
            id: item.id,
            turnId: turn.id,
            agentId: item.agentId,
          },
        ]
      : [],
  );
}

function pendingMessage({ clientId, content, createdAt, status, error }: PendingMessage): TranscriptMessage {
  return {
    key: clientId,
    role: "user",
    status,
    content,
    createdAt,
    ...defined({ error }),
  };
}
