/**
 * The contract of every model provider, in two halves: a **format adapter** (pure: neutral context to the provider's
 * own request, the provider's own stream chunks to deltas) and the **gateway** (I/O: posts a request, yields deltas).
 */
import type { ContextMessage, ToolCall } from "../memory/types.ts";
import type { Json, JsonObject } from "../shared/json.ts";

export const PROVIDERS = [
  "workers-ai",
  "openai",
  "openai-responses",
  "anthropic",
  "gemini",
  "ai-sdk",
  "offline",
] as const;

export type ProviderId = (typeof PROVIDERS)[number];

/** Which model answers, and how it is called. Secrets are named, never held. */
export interface ModelProfile {
  provider: ProviderId;
  modelId: string;
  /** Merged into the provider's request as they are (`temperature`, `max_tokens` …). */
  parameters?: JsonObject;
  executionConfig?: {
    /** One attempt may take this long, in milliseconds; 120 000 when absent. */
    timeoutMs?: number;
  };
  /** Base URL of a compatible server, without a trailing slash. */
  baseUrl?: string;
  /** Name of the environment variable that holds the key. */
  apiKeySecret?: string;
  /** US dollars per 1 000 tokens. */
  costPer1kInput?: number;
  costPer1kOutput?: number;
}

/** A tool as a model sees it. */
export interface ToolSpec {
  name: string;
  description: string;
  /** JSON Schema of the arguments. */
  inputSchema: JsonObject;
}

/** Everything a request is built from. */
export interface ModelContext {
  systemInstructions: readonly string[];
  messages: readonly ContextMessage[];
  tools: readonly ToolSpec[];
  /** `auto` lets the model call tools; `none` forces text. */
  toolChoice: "auto" | "none";
}

/** Tokens, as the provider counted them. */
export interface TokenUsage {
  inputTokens?: number;
  outputTokens?: number;
  totalTokens?: number;
  breakdown?: Record<string, Json>;
}

export type FinishReason = "stop" | "tool_calls" | "length" | "content_filter" | "other";

/** The classes of failure (§3.4): they decide whether a call is tried again. */
export type ErrorCategory =
  | "auth"
  | "validation"
  | "not_found"
  | "quota"
  | "rate_limit"
  | "timeout"
  | "transient"
  | "network"
  | "canceled"
  | "unknown";

/** A failed model call as data. `message` never holds a secret. */
export interface ModelError {
  category: ErrorCategory;
  message: string;
  retriable: boolean;
  provider: ProviderId;
  status?: number;
  /** The provider asked to wait this long, in milliseconds. */
  retryAfterMs?: number;
}

/** A piece of a streamed reply. */
export type ModelDelta =
  | { type: "message-id"; id: string }
  | { type: "text"; text: string }
  | { type: "reasoning"; text: string }
  /** A piece of the tool call at `index`; `id` and `name` come once, `arguments` is a fragment of JSON text. */
  | { type: "tool-call"; index: number; id?: string; name?: string; arguments?: string }
  | { type: "usage"; usage: TokenUsage }
  | { type: "finish"; reason: FinishReason }
  /** An error the provider reported inside the stream. */
  | { type: "error"; error: ModelError };

/** A whole reply, assembled from its deltas. */
export interface ModelReply {
  text: string;
  reasoning?: string;
  toolCalls: RequestedToolCall[];
  finishReason: FinishReason;
  usage?: TokenUsage;
  providerMessageId?: string;
}

/** A tool call as the model wrote it. `invalidArguments` holds text that was not a JSON object; then `arguments` is empty. */
export interface RequestedToolCall extends ToolCall {
  invalidArguments?: string;
}

/** The pure half: one per provider wire format. */
export interface FormatAdapter {
  readonly provider: ProviderId;
  /** The provider's own request body. Throws `UNSUPPORTED` naming what the provider cannot express. */
  buildRequest(profile: ModelProfile, context: ModelContext): JsonObject;
  /** The same request continued by later messages (a cycle's moves): what was sent before stays byte for byte. */
  extend(request: JsonObject, messages: readonly ContextMessage[]): JsonObject;
  /** A decoder for one reply. */
  decoder(): StreamDecoder;
}

/** Decodes one reply. `push` takes the payload of one server-sent event (the text of its `data`). */
export interface StreamDecoder {
  push(data: string): ModelDelta[];
  /** The stream ended; reports an error delta if the reply is not complete. */
  end(): ModelDelta[];
}

/** One call of a model: a provider-native request and where it goes. */
export interface ModelRequest {
  profile: ModelProfile;
  /** The provider's own body, as built by the format adapter or by a context hook. */
  body: JsonObject;
  /** Who is calling, for correlation; reaches no provider. */
  context: ExecutionContext;
}

/** Where an effect comes from. On every signal, operation and call. */
export interface ExecutionContext {
  tenant: string;
  projectId: string;
  agentId: string;
  conversationId: string;
  turnId: string;
  traceparent?: string;
}

/**
 * The I/O half. One attempt: no retries here, the caller owns them, because an attempt is durable there.
 * Failures before or inside the stream come as one `error` delta, never as a throw; aborting gives category `canceled`
 * (or `timeout`, when the signal's reason is a `TimeoutError`).
 */
export interface ModelGateway {
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelDelta>;
}

/** The format adapter of a provider; throws `UNSUPPORTED` for one that is not built in. */
export type AdapterLookup = (provider: ProviderId) => FormatAdapter;
