/**
 * The failure of a model call as data, and the rules for the next step after it. Pure.
 *
 * MERR-1  Only `rate_limit`, `timeout`, `transient` and `network` are retriable.
 * MERR-3  A request that exceeds its model's context is recognised by the message: providers have no common code for it.
 */
import type { ErrorData } from "../shared/errors.ts";
import type { ProviderId } from "./profile.ts";

/** The categories of failure (§3.4). They decide about retry and fallback. */
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

/** A failed model call as data. `message` never contains a secret. */
export interface ModelError {
  category: ErrorCategory;
  message: string;
  retriable: boolean;
  provider: ProviderId;
  status?: number;
  /** The provider's own id of the request. */
  requestId?: string;
  /** The wait that the provider requested, in milliseconds. */
  retryAfterMs?: number;
  /** The error of a call that a setting of its project refused. No model was called. */
  refusal?: ErrorData;
}

const RETRIABLE: ReadonlySet<ErrorCategory> = new Set(["rate_limit", "timeout", "transient", "network"]);

/** Failures that every model would share: the caller left, or the request itself is refused. */
const SHARED: ReadonlySet<ErrorCategory> = new Set(["canceled", "validation", "safety"]);

/** Reports whether another attempt with the same model can succeed (MERR-1). */
export function isRetriable(category: ErrorCategory): boolean {
  return RETRIABLE.has(category);
}

/** Reports whether another model can succeed. */
export function mayFallBack(category: ErrorCategory): boolean {
  return !SHARED.has(category);
}

/** The messages of OpenAI and compatible servers, Anthropic, Gemini, Workers AI, Mistral, Groq and llama.cpp. */
const TOO_LONG = [
  /(?:maximum|available) context (?:length|size)|context (?:length|window|limit)s? (?:exceeded|limit)/i,
  /exceeds? (?:the |this model's )?(?:context (?:window|limit|length)|maximum number of (?:input )?tokens)/i,
  /prompt is too long|reduce the length of the messages|context_length_exceeded/i,
];

/** Reports whether a call failed because its request exceeds the model's context (MERR-3). */
export function exceedsContext({ category, message }: Pick<ModelError, "category" | "message">): boolean {
  return category !== "canceled" && category !== "rate_limit" && TOO_LONG.some((text) => text.test(message));
}

/** The inputs of a backoff, in milliseconds. */
export interface Backoff {
  /** The wait of the caller's own schedule. */
  scheduledMs: number;
  /** The wait that the provider requested. Replaces the scheduled one. */
  requestedMs: number | undefined;
  /** Default: 0. */
  minimumMs?: number;
  maximumMs: number;
}

/** Returns the wait before the next attempt, in milliseconds. */
export function backoffMs({ scheduledMs, requestedMs, minimumMs = 0, maximumMs }: Backoff): number {
  return Math.min(Math.max(requestedMs ?? scheduledMs, minimumMs), maximumMs);
}
