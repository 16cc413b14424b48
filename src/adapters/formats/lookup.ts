/**
 * Format adapters by provider.
 *
 * The folder of a format has `adapter.ts` (requests: parameters, tools, structured output), `messages.ts` (the conversation in the
 * provider's form) and `decoder.ts` (replies, payload by payload).
 * OpenAI's Chat Completions and Workers AI share `chat`. All formats share `common`.
 */
import type { AdapterLookup, FormatAdapter } from "../../model/format-adapter.ts";
import type { ProviderId } from "../../model/profile.ts";
import { findProvider, PROVIDER_NAMES } from "../../model/provider-names.ts";
import { invalid } from "../../shared/errors.ts";
import { aiSdkFormat } from "./ai-sdk/adapter.ts";
import { anthropicFormat } from "./anthropic/adapter.ts";
import { geminiFormat } from "./gemini/adapter.ts";
import { offlineFormat } from "./offline/adapter.ts";
import { openaiFormat } from "./openai/adapter.ts";
import { openaiResponsesFormat } from "./openai-responses/adapter.ts";
import { workersAIFormat } from "./workers-ai/adapter.ts";

const ADAPTERS: Readonly<Record<ProviderId, FormatAdapter>> = {
  openai: openaiFormat,
  "openai-responses": openaiResponsesFormat,
  "workers-ai": workersAIFormat,
  anthropic: anthropicFormat,
  gemini: geminiFormat,
  "ai-sdk": aiSdkFormat,
  offline: offlineFormat,
};

/**
 * Returns the format adapter of a provider.
 * @example adapterFor("openai").buildRequest(profile, context)
 */
export const adapterFor: AdapterLookup = (provider) => ADAPTERS[provider];

/** Returns the provider of a name or an alias (`cloudflare`, `google`, `local`); throws `INVALID_INPUT` for other names. */
export function resolveProvider(name: string): ProviderId {
  const provider = findProvider(name);
  if (provider !== undefined) return provider;
  throw invalid(`There is no provider "${name}"; use ${PROVIDER_NAMES.join(", ")}.`);
}
