/** Chooses the model of personas without a model profile, from the environment. Also takes its provider's base URL from there. */
import type { ModelProfile, ProviderId } from "../model/profile.ts";
import { chosenModel } from "../model/provider-names.ts";
import { type HttpProvider, httpProvider } from "./gateway/http-providers.ts";

/** Variables of the environment; a blank one counts as absent. */
export interface ModelEnvironment {
  /** `provider/model`; the model may contain slashes. */
  DRAMATIS_MODEL?: string;
  OPENAI_API_KEY?: string;
  /** Base URL of a compatible server. */
  OPENAI_BASE_URL?: string;
  ANTHROPIC_API_KEY?: string;
  ANTHROPIC_BASE_URL?: string;
  GEMINI_API_KEY?: string;
  GEMINI_BASE_URL?: string;
  /** Hosts that may get keys in addition to the providers' own hosts, separated by commas. */
  DRAMATIS_MODEL_HOSTS?: string;
  /** Variables with keys that model profiles may name over the API, separated by commas. */
  DRAMATIS_MODEL_SECRETS?: string;
}

export const OFFLINE_PROFILE: ModelProfile = { provider: "offline", modelId: "offline-1" };

/** Providers in the order of choice, each with its default model. */
const CHOICES = [
  ["openai", "gpt-4.1-mini"],
  ["anthropic", "claude-haiku-5-5"],
  ["gemini", "gemini-3.8-flash"],
] as const satisfies [ProviderId, string][];
const WORKERS_AI_MODEL = "@cf/meta/llama-3.3-70b-instruct-fp8-fast";

/**
 * Returns the profile of `DRAMATIS_MODEL` if it is set. Otherwise the first of OpenAI, Anthropic and Gemini with a key or a base URL.
 * Otherwise Workers AI if it is bound, or the offline model. Throws `INVALID_INPUT` for an invalid `DRAMATIS_MODEL`.
 * @example defaultModelProfile({ DRAMATIS_MODEL: "openai/gpt-4.1-mini" }, false)
 */
export function defaultModelProfile(env: ModelEnvironment, hasAiBinding: boolean): ModelProfile {
  const chosen = chosenModel(env);
  if (chosen !== undefined) return atBaseUrl(chosen, env);
  const choice = CHOICES.find(([provider]) => isSetUp(provider, env));
  if (choice !== undefined) return atBaseUrl({ provider: choice[0], modelId: choice[1] }, env);
  return hasAiBinding ? { provider: "workers-ai", modelId: WORKERS_AI_MODEL } : OFFLINE_PROFILE;
}

/**
 * Returns the variables of the key that the default model lacks, and of the base URL that is enough for a server without keys; `undefined` if
 * the model needs no key, or has a key or a base URL. Throws as `defaultModelProfile`.
 */
export function missingKey(
  env: ModelEnvironment,
  hasAiBinding: boolean,
): Pick<HttpProvider, "keyName" | "baseUrlName"> | undefined {
  const { provider } = defaultModelProfile(env, hasAiBinding);
  return isSetUp(provider, env) ? undefined : httpProvider(provider);
}

/** Adds the provider's base URL from the environment if the profile has no base URL. */
export function atBaseUrl(profile: ModelProfile, env: ModelEnvironment): ModelProfile {
  const baseUrl = read(env, httpProvider(profile.provider)?.baseUrlName).replace(/\/+$/, "");
  return profile.baseUrl !== undefined || baseUrl === "" ? profile : { ...profile, baseUrl };
}

function isSetUp(provider: ProviderId, env: ModelEnvironment): boolean {
  const { keyName, baseUrlName } = httpProvider(provider) ?? {};
  return read(env, keyName) !== "" || read(env, baseUrlName) !== "";
}

function read(env: object, name: string | undefined): string {
  const value: unknown = name === undefined ? undefined : Reflect.get(env, name);
  return typeof value === "string" ? value.trim() : "";
}
