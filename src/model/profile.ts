/** Model profiles: which model answers, and how it is called. */

import type { DefinitionReference } from "../shared/identifiers.ts";
import type { JsonObject } from "../shared/json.ts";

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
