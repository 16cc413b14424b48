/** What the engine asks of a provider: one chat call, whole or streamed, whatever stands behind it. */

import type { RequestOutcome } from "../model/call-record.ts";
import type { AgentContext, RequestExtensions } from "../model/correlation.ts";
import type { TokenUsage } from "../model/usage.ts";
import type { ConversationMessage, MessageRole } from "./types.ts";

/** A message as it goes to a provider. `metadata` does not, but may say how the message is to be sent (`native`). */
export interface ChatInputMessage {
  role: MessageRole;
  content: unknown;
  name?: string;
  metadata?: Record<string, unknown>;
}

export interface ProviderChatRequest {
  /** Selected and shaped by the history builder. */
  messages: ChatInputMessage[];
  model: string;
  /** As the planner gave them. */
  parameters?: Record<string, unknown>;
}

/** A message on its way into a conversation. The engine gives it an id, the conversation and a time where it has none. */
export type NewMessage = Omit<ConversationMessage, "id" | "conversationId" | "createdAt"> &
  Partial<Pick<ConversationMessage, "id" | "conversationId" | "createdAt">>;

/** What an adapter knows of its call beside the reply: it goes into the call's record. */
export interface CallFacts {
  outcome?: RequestOutcome;
  /** The provider's own id of the request. */
  requestId?: string;
  /** US dollars. */
  cost?: number;
  responseMetadata?: Record<string, unknown>;
}

export interface ProviderChatResult {
  messages: NewMessage[];
  usage?: TokenUsage;
  /** The provider's own answer, for debugging. It is not stored. */
  raw?: unknown;
  call?: CallFacts;
}

export interface ProviderStreamChunk {
  /** A piece of the message: text as a string, anything else in a shape of its own. */
  delta?: unknown;
  /** Everything of the present message so far is void: the adapter begins again. */
  isReset?: boolean;
  /** The message is complete with this chunk. */
  isMessageComplete?: boolean;
  /** The whole message, with the chunk that completes it; without it the engine joins the texts of the deltas. */
  message?: NewMessage;
  /** With the last chunk. */
  usage?: TokenUsage;
  /** The provider's own chunk, for debugging. */
  raw?: unknown;
  /** With the last chunk. */
  call?: CallFacts;
}

export interface ProviderCallOptions {
  conversationId: string;
  turnId: string;
  agent: string;
  /** `{conversationId}:{turnId}`. */
  correlationId: string;
  parentCorrelationId?: string;
  /** Who makes the call, for telemetry and policies. */
  buildAgentContext: () => AgentContext;
  /** What policies and telemetry know of the request. */
  extensions: RequestExtensions;
  /** The turn's own metadata. */
  metadata?: Record<string, unknown>;
  /** Aborts when the turn is cancelled. */
  signal: AbortSignal;
}

export interface ProviderAdapter {
  /** Its name among the engine's providers. */
  readonly id: string;
  readonly supportsStreaming: boolean;
  sendChat(request: ProviderChatRequest, options: ProviderCallOptions): Promise<ProviderChatResult>;
  /** Where it is absent, `sendChat` is used. */
  streamChat?(request: ProviderChatRequest, options: ProviderCallOptions): AsyncIterable<ProviderStreamChunk>;
}
