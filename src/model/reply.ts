/** A model's reply, as a stream of deltas and assembled. */

import type { ModelError } from "./error.ts";
import type { NativePart, NativeReply, ToolCall } from "./messages.ts";
import type { TokenUsage } from "./usage.ts";

export type FinishReason = "stop" | "tool_calls" | "length" | "content_filter" | "other";

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
