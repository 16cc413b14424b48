/** Model profiles: the model of a persona, and the settings of its calls. */
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

/** Default time limit of one attempt of a model call, in milliseconds. */
export const MODEL_TIMEOUT_MS = 120_000;

/** A model and the settings of its calls. It names secrets, but never contains one. */
export interface ModelProfile {
  provider: ProviderId;
  modelId: string;
  /** Merged unchanged into the provider's request (`temperature`, `max_tokens` …). */
  parameters?: JsonObject;
  executionConfig?: {
    /** Limit of one attempt, in milliseconds. Default: 120 000. */
    timeoutMs?: number;
    /** Limit until the reply begins, in milliseconds. Default: 60 000. */
    firstByteTimeoutMs?: number;
    /** Limit of a pause within a reply, in milliseconds. Default: 60 000. */
    idleTimeoutMs?: number;
  };
  /** Tokens that a request may have; 60 000 when absent. Leave room for the reply in the model's window. */
  contextTokens?: number;
  /** Base URL of a compatible server, without a trailing slash. */
  baseUrl?: string;
  /** Name of the environment variable with the key. */
  apiKeySecret?: string;
  /** US dollars per 1 000 tokens. */
  costPer1kInput?: number;
  costPer1kOutput?: number;
  /** Price of input that is read from the provider's cache, or written to it. Default: the price of other input. */
  costPer1kCachedInput?: number;
  costPer1kCacheWrite?: number;
  /** The model profiles to try, in order, if this model fails. */
  fallbacks?: DefinitionReference[];
}
