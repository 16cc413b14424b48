/** The port to a provider: one chat call, whole or streamed. */
import type { ClosedCall } from "../model/call-record.ts";
import type { AgentContext, RequestExtensions } from "../model/correlation.ts";
import type { TokenUsage } from "../model/usage.ts";
import type { ConversationMessage } from "./records.ts";

/** A message to send. `metadata` is not sent; its member `native` may hold the provider's own form of the message. */
export type ChatInputMessage = Pick<ConversationMessage, "role" | "content" | "name" | "metadata">;

export interface ProviderChatRequest {
  /** Messages from the history builder. */
  messages: ChatInputMessage[];
  model: string;
  /** Parameters from the planner. */
  parameters?: Record<string, unknown>;
}

/**
 * A message to add to a conversation. The engine fills in a missing id, conversation and time.
 *
 * @example const message: NewMessage = { role: "user", content: "Hello" };
 */
export type NewMessage = Omit<ConversationMessage, "id" | "conversationId" | "createdAt"> &
  Partial<Pick<ConversationMessage, "id" | "conversationId" | "createdAt">>;

/** Facts about a call for its record. */
export type CallFacts = Partial<Pick<ClosedCall, "outcome" | "requestId" | "cost" | "responseMetadata">>;

export interface ProviderChatResult {
  messages: NewMessage[];
  usage?: TokenUsage;
  /** The provider's response, for debugging. It is not stored. */
  raw?: unknown;
  call?: CallFacts;
}

export interface ProviderStreamChunk {
  /** A piece of the message: a text, or a value in the provider's shape. */
  delta?: unknown;
  /** Discards all previous deltas of the message: the adapter starts another attempt. */
  isReset?: boolean;
  /** Marks the last chunk of a message. */
  isMessageComplete?: boolean;
  /** The whole message, in the chunk that completes it. By default the engine joins the deltas. */
  message?: NewMessage;
  /** In the last chunk. */
  usage?: TokenUsage;
  /** The provider's chunk, for debugging. */
  raw?: unknown;
  /** In the last chunk. */
  call?: CallFacts;
}

export interface ProviderCallOptions {
  conversationId: string;
  turnId: string;
  agent: string;
  /** `{conversationId}:{turnId}`. */
  correlationId: string;
  parentCorrelationId?: string;
  /** Returns the origin of the call, for telemetry and policies. */
  buildAgentContext: () => AgentContext;
  /** Properties of the request, for telemetry and policies. */
  extensions: RequestExtensions;
  /** Metadata of the turn. */
  metadata?: Record<string, unknown>;
  /** Aborts when the turn is cancelled. */
  signal: AbortSignal;
}

/**
 * Calls a provider. `createProviderAdapter` creates one for every provider of this package.
 *
 * @example
 * const echo: ProviderAdapter = {
 *   id: "echo",
 *   supportsStreaming: false,
 *   sendChat: async ({ messages }) => ({
 *     messages: [{ role: "assistant", content: messages.at(-1)?.content }],
 *   }),
 * };
 */
export interface ProviderAdapter {
  /** Name among the engine's providers. */
  readonly id: string;
  readonly supportsStreaming: boolean;
  sendChat(request: ProviderChatRequest, options: ProviderCallOptions): Promise<ProviderChatResult>;
  /** Without it, the engine uses `sendChat` for streamed turns too. */
  streamChat?(request: ProviderChatRequest, options: ProviderCallOptions): AsyncIterable<ProviderStreamChunk>;
}
