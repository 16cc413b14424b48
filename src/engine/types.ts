/**
 * The records of a conversation as the engine keeps them, whatever store and whatever provider. The actor
 * `Conversation` tells of its own turns in the same records.
 */
import type { ErrorCategory, RateLimitFeedback, TokenUsage } from "../adapters/types.ts";

export type Role = "system" | "user" | "assistant" | "tool" | "other";

export interface ConversationMessage {
  id: string;
  conversationId: string;
  role: Role;
  /** A text, a list of parts, or anything that whoever wrote it understands. */
  content: unknown;
  /** Who speaks: an agent, a tool, a user. */
  name?: string;
  /** ISO 8601 UTC. */
  createdAt: string;
  providerMessageId?: string;
  metadata?: Record<string, unknown>;
}

/** What became of one logical request: one per call, however many attempts it took, also when it failed. */
export interface RequestOutcome {
  ok: boolean;
  /** The HTTP status of the last attempt, where there was one. */
  status?: number;
  /** `none` where it went well. */
  errorCategory: ErrorCategory | "none";
  /** 0 where no attempt was made. */
  attempts: number;
  /** Milliseconds since the epoch. */
  startedAt: number;
  finishedAt: number;
  rateLimitFeedback?: RateLimitFeedback;
}

/** One call of a provider. */
export interface ProviderCallRecord {
  id: string;
  conversationId: string;
  turnId: string;
  provider: string;
  model: string;
  operation: "chat" | "embedding" | "other";
  /** The provider's own id of the request. */
  requestId?: string;
  /** `{conversationId}:{turnId}`. */
  correlationId?: string;
  /** That of the turn before, or of the caller of a delegated call. */
  parentCorrelationId?: string;
  /** Sent to no provider. */
  requestMetadata?: Record<string, unknown>;
  responseMetadata?: Record<string, unknown>;
  usage?: TokenUsage;
  /** US dollars, where the profile has prices and the provider counted. */
  cost?: number;
  outcome?: RequestOutcome;
  /** ISO 8601 UTC. */
  startedAt: string;
  /** Absent while it runs. */
  finishedAt?: string;
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

/** Who makes a request, for telemetry and policies. */
export interface AgentContext {
  agent?: string;
  /** `{conversationId}:{turnId}`. */
  runId?: string;
  labels?: Record<string, string>;
  metadata?: Record<string, unknown>;
}
