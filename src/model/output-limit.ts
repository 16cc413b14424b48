/**
 * Limits of the tokens of a reply: their places in profiles and requests, and their replacement by a lower limit. Pure.
 *
 * OUTLIMIT-1  A limit for one call replaces the profile's limit if it is lower. It takes the name of the profile's limit. Without such a
 *             limit it takes the provider's usual name.
 * OUTLIMIT-2  A limit that leaves no room for a model to think turns its thinking off, because the provider would refuse the request.
 */
import { isJsonObject, type Json, type JsonObject } from "../shared/json.ts";
import type { ModelProfile, ProviderId } from "./profile.ts";
import { isLimit, limitIn, OUTPUT_LIMITS, type OutputLimit, thoughtTokens } from "./spending.ts";

/** The usual name of the limit at a provider. */
const NAME_OF_PROVIDER: Readonly<Record<ProviderId, OutputLimit>> = {
  openai: "max_tokens",
  "openai-responses": "max_output_tokens",
  anthropic: "max_tokens",
  gemini: "maxOutputTokens",
  "workers-ai": "max_tokens",
  "ai-sdk": "maxOutputTokens",
  offline: "maxOutputTokens",
};

/** Returns the profile with a limit of its replies (OUTLIMIT-1). */
export function withOutputLimit(profile: ModelProfile, limit: number | undefined): ModelProfile {
  if (limit === undefined) return profile;
  const { parameters = {} } = profile;
  return { ...profile, parameters: limited(parameters, limit, limitName(profile)) };
}

/** Returns the name of the limit in a profile, or the provider's usual name if the profile has no limit. */
export function limitName({ provider, parameters = {}, baseUrl }: ModelProfile): OutputLimit {
  const used = OUTPUT_LIMITS.find((name) => isLimit(parameters[name]));
  if (used !== undefined) return used;
  // Compatible servers take the older name, but OpenAI's own models refuse it.
  const isOpenAI = provider === "openai" && baseUrl === undefined;
  return isOpenAI ? "max_completion_tokens" : NAME_OF_PROVIDER[provider];
}

/** Returns a provider's own request with a limit of its reply, as `withOutputLimit` does. */
export function requestWithOutputLimit(
  request: JsonObject,
  profile: ModelProfile,
  limit: number | undefined,
): JsonObject {
  if (limit === undefined) return request;
  const parameters = profile.provider === "gemini" ? { generationConfig: {}, ...request } : request;
  return withOutputLimit({ ...profile, parameters }, limit).parameters ?? request;
}

function limited(parameters: JsonObject, limit: number, usual: string): JsonObject {
  const { generationConfig, thinking } = parameters;
  if (isJsonObject(generationConfig) && limitIn(parameters) === undefined)
    return { ...parameters, generationConfig: limited(generationConfig, limit, usual) };
  const used = OUTPUT_LIMITS.filter((name) => isLimit(parameters[name]));
  const names: readonly string[] = used.length === 0 ? [usual] : used;
  const limits = names.map((name) => [name, lower(parameters[name], limit)] as const);
  const room = Math.min(...limits.map(([, tokens]) => tokens));
  return {
    ...parameters,
    ...Object.fromEntries(limits),
    ...(thoughtTokens(thinking) >= room ? { thinking: { type: "disabled" } } : {}),
  };
}

function lower(own: Json | undefined, limit: number): number {
  return isLimit(own) ? Math.min(own, limit) : limit;
}
