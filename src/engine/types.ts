/**
 * The records of a conversation as the engine keeps them, whatever store and whatever provider. The actor
 * `Conversation` tells of its own turns in the same records.
 */
import type { ProviderCallRecord } from "../model/call-record.ts";

export type MessageRole = "system" | "user" | "assistant" | "tool" | "other";

export interface ConversationMessage {
  id: string;
  conversationId: string;
  role: MessageRole;
  /** A text, a list of parts, or anything that whoever wrote it understands. */
  content: unknown;
  /** Who speaks: an agent, a tool, a user. */
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
  /** The logical agent that answers. */
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

/** A conversation as the engine keeps it; the actor is `Conversation`. */
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
