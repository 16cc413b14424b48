/** A model's reply, as a stream of deltas and as a whole. */
import type { ModelError } from "./error.ts";
import type { NativePart, NativeReply, ToolCall } from "./messages.ts";
import type { TokenUsage } from "./usage.ts";

/** `paused`: the provider interrupted a long reply. Send the reply back as the last message to have it continued. */
export type FinishReason = "stop" | "tool_calls" | "length" | "content_filter" | "paused" | "other";

/** A piece of a streamed reply. */
export type ModelDelta =
  /** The provider has begun to answer. The gateway yields it first; decoders never do. */
  | { type: "response"; response: ResponseInfo }
  | { type: "message-id"; id: string }
  | { type: "text"; text: string }
  | { type: "reasoning"; text: string }
  /** A piece of the tool call at `index`. `id` and `name` come once; `arguments` is a fragment of JSON text. */
  | { type: "tool-call"; index: number; id?: string; name?: string; arguments?: string }
  /** The tokens of the reply so far. It replaces the counts before it as a whole. */
  | { type: "usage"; usage: TokenUsage }
  /** The native form of the reply, before `finish`, if it contains more than text and calls. */
  | { type: "native"; parts: NativePart[] }
  | { type: "finish"; reason: FinishReason }
  /** The failure of the call. */
  | { type: "error"; error: ModelError };

/** The facts about a response, without its body. */
export interface ResponseInfo {
  status?: number;
  /** The provider's own id of the request. */
  requestId?: string;
  rateLimit?: RateLimitFeedback;
}

/** The state of a provider's rate limits (§3.4). Times are milliseconds since the epoch. */
export interface RateLimitFeedback {
  limitRequests?: number;
  remainingRequests?: number;
  resetRequestsAt?: number;
  limitTokens?: number;
  remainingTokens?: number;
  resetTokensAt?: number;
  isRateLimited: boolean;
  /** The source headers, with names in lower case. */
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
  /** Without provider and model: the caller adds them. */
  native?: NativeReply["parts"];
}

/** A tool call as the model wrote it. */
export interface RequestedToolCall extends ToolCall {
  /** The text of arguments that are not a JSON object. `arguments` is empty then. */
  invalidArguments?: string;
}
