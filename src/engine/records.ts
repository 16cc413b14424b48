/** The records that the engine stores: conversations, their messages and turns. */
import type { ProviderCallRecord } from "../model/call-record.ts";

export type MessageRole = "system" | "user" | "assistant" | "tool" | "other";

export interface ConversationMessage {
  id: string;
  conversationId: string;
  role: MessageRole;
  /** A text, a list of `MessagePart`, or any JSON. */
  content: unknown;
  /** Name of the speaker: an agent, a tool or a user. */
  name?: string;
  /** ISO 8601 UTC. */
  createdAt: string;
  providerMessageId?: string;
  metadata?: Record<string, unknown>;
}

export type TurnStatus = "pending" | "running" | "succeeded" | "failed" | "cancelled";

export interface ConversationTurn {
  id: string;
  conversationId: string;
  /** Logical agent that answers. */
  agent: string;
  inputMessages: ConversationMessage[];
  outputMessages: ConversationMessage[];
  providerCalls: ProviderCallRecord[];
  status: TurnStatus;
  /** `user_message`, `tool_result`, `system_trigger` … */
  triggerType?: string;
  /** ISO 8601 UTC. */
  startedAt: string;
  finishedAt?: string;
  error?: { message: string; code?: string; provider?: string; raw?: unknown };
  metadata?: Record<string, unknown>;
}

/** A conversation of the engine. The class `Conversation` is the actor. */
export interface ConversationRecord {
  id: string;
  agent: string;
  subjectId?: string;
  title?: string;
  /** ISO 8601 UTC. */
  createdAt: string;
  updatedAt: string;
  metadata?: Record<string, unknown>;
}
