/**
 * The contract of every model provider, in two halves: a **format adapter** (pure: neutral context to the provider's
 * own request, the provider's own stream chunks to deltas) and the **gateway** (I/O: posts a request, yields deltas).
 */

import type { DefinitionReference } from "../protocol/definitions.ts";
import type { ContextMessage, NativePart, NativeReply, ToolCall } from "../memory/session/types.ts";
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
    /** The reply must begin within this time, in milliseconds; 60 000 when absent. */
    firstByteTimeoutMs?: number;
    /** A reply that has begun may be silent this long, in milliseconds; 60 000 when absent. */
    idleTimeoutMs?: number;
  };
  /** Base URL of a compatible server, without a trailing slash. */
  baseUrl?: string;
  /** Name of the environment variable that holds the key. */
  apiKeySecret?: string;
  /** US dollars per 1 000 tokens. */
  costPer1kInput?: number;
  costPer1kOutput?: number;
  /** Of input read from the provider's cache, and written to it; the price of other input when absent. */
  costPer1kCachedInput?: number;
  costPer1kCacheWrite?: number;
  /** Who answers when this model cannot, in order. */
  fallbacks?: DefinitionReference[];
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
  /** `auto` lets the model call tools, `none` forces text, `required` a call, a name a call of that tool. */
  toolChoice: "auto" | "none" | "required" | { name: string };
  /** The reply must be JSON of this schema. */
  output?: OutputSpec;
  /** What helps a provider to find its prompt cache again. A hint: one that cannot take it does without. */
  cache?: {
    /** The same for all requests that begin alike. */
    key: string;
    /** How many of the messages, counted from the first, later requests will repeat. */
    stableMessages: number;
  };
}

/** What a structured reply must look like. */
export interface OutputSpec {
  /** 1 to 64 letters, digits, `_` and `-`. */
  name: string;
  /** JSON Schema of an object. */
  schema: JsonObject;
}

/** Tokens, as the provider counted them. */
export interface TokenUsage {
  /** All of the prompt, what came from a cache or went into one included. */
  inputTokens?: number;
  /** The part of the input that was read from the provider's cache. */
  cachedInputTokens?: number;
  /** The part of the input that was written to it. */
  cacheWriteTokens?: number;
  /** All that the model wrote, reasoning included. */
  outputTokens?: number;
  /** The part of the output that was reasoning. */
  reasoningTokens?: number;
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
  | "safety"
  | "unknown";

/** A failed model call as data. `message` never holds a secret. */
export interface ModelError {
  category: ErrorCategory;
  message: string;
  retriable: boolean;
  provider: ProviderId;
  status?: number;
  /** The provider's own id of the request. */
  requestId?: string;
  /** The provider asked to wait this long, in milliseconds. */
  retryAfterMs?: number;
}

/** A piece of a streamed reply. */
export type ModelDelta =
  /** The provider has begun to answer. From the gateway, before all others; no decoder gives it. */
  | { type: "response"; response: ResponseInfo }
  | { type: "message-id"; id: string }
  | { type: "text"; text: string }
  | { type: "reasoning"; text: string }
  /** A piece of the tool call at `index`; `id` and `name` come once, `arguments` is a fragment of JSON text. */
  | { type: "tool-call"; index: number; id?: string; name?: string; arguments?: string }
  | { type: "usage"; usage: TokenUsage }
  /** What the reply was made of, before `finish`; only where text and calls alone do not say it. */
  | { type: "native"; parts: NativePart[] }
  | { type: "finish"; reason: FinishReason }
  /** An error the provider reported inside the stream. */
  | { type: "error"; error: ModelError };

/** What is known of a response beside its body. */
export interface ResponseInfo {
  status?: number;
  /** The provider's own id of the request. */
  requestId?: string;
  rateLimit?: RateLimitFeedback;
}

/** What a provider says of its limits (§3.4). Times are milliseconds since the epoch. */
export interface RateLimitFeedback {
  limitRequests?: number;
  remainingRequests?: number;
  resetRequestsAt?: number;
  limitTokens?: number;
  remainingTokens?: number;
  resetTokensAt?: number;
  isRateLimited: boolean;
  /** The headers it was read from, names in lower case. */
  rawHeaders: Record<string, string>;
}

/** A whole reply, assembled from its deltas. */
export interface ModelReply {
  text: string;
  reasoning?: string;
  toolCalls: RequestedToolCall[];
  finishReason: FinishReason;
  usage?: TokenUsage;
  providerMessageId?: string;
  /** Without the provider and the model, which whoever made the call knows. */
  native?: NativeReply["parts"];
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
  extend(profile: ModelProfile, request: JsonObject, messages: readonly ContextMessage[]): JsonObject;
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
  /** What telemetry and policies are told beside that; reaches no provider. */
  trace?: RequestTrace;
}

/** What is known of a request beside where it comes from. */
export interface RequestTrace {
  /** The same for all attempts of one logical request; made up where it is absent. */
  requestId?: string;
  /** That of the turn before, or of the caller of a delegated call. */
  parentCorrelationId?: string;
  /** From 1; 1 when absent. */
  attempt?: number;
  /** `interactive` when absent. */
  requestClass?: "interactive" | "background" | "batch";
  metadata?: Record<string, unknown>;
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
