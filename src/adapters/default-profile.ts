/** What the environment says of models: which answers where a persona names none, and where a provider is. */

import type { ModelProfile, ProviderId } from "../model/profile.ts";
import { DramatisError } from "../shared/errors.ts";
import { resolveProvider } from "./formats/lookup.ts";
import { httpProvider } from "./gateway/http-providers.ts";

/** The variables that decide; a blank one counts as absent. */
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
  /** Hosts that may get keys beside the providers' own, separated by commas. */
  DRAMATIS_MODEL_HOSTS?: string;
  /** Variables whose keys model profiles by API may name, separated by commas. */
  DRAMATIS_MODEL_SECRETS?: string;
}

export const OFFLINE_PROFILE: ModelProfile = { provider: "offline", modelId: "offline-1" };

/** The providers that a key or a base URL chooses, in this order, each with the model that then answers. */
const CHOICES = [
  ["openai", "gpt-4.1-mini"],
  ["anthropic", "claude-haiku-5-5"],
  ["gemini", "gemini-3.8-flash"],
] as const satisfies [ProviderId, string][];
const WORKERS_AI_MODEL = "@cf/meta/llama-3.3-70b-instruct-fp8-fast";

/**
 * `DRAMATIS_MODEL` if it is set; else OpenAI, Anthropic or Gemini, the first whose key or base URL is; else Workers AI if
 * it is bound; else the offline model. Throws `INVALID_INPUT` for a `DRAMATIS_MODEL` that cannot be used.
 */
export function defaultModelProfile(env: ModelEnvironment, hasAiBinding: boolean): ModelProfile {
  const chosen = env.DRAMATIS_MODEL?.trim();
  if (chosen) return chosenProfile(chosen, env);
  const choice = CHOICES.find(([provider]) => isSetUp(provider, env));
  if (choice !== undefined) return profileOf(choice[0], choice[1], env);
  if (hasAiBinding) return { provider: "workers-ai", modelId: WORKERS_AI_MODEL };
  return OFFLINE_PROFILE;
}

/** The profile; one without a base URL gets its provider's in the environment, where there is one. */
export function atBaseUrl(profile: ModelProfile, env: ModelEnvironment): ModelProfile {
  const baseUrl = read(env, httpProvider(profile.provider)?.baseUrlName).replace(/\/+$/, "");
  return profile.baseUrl !== undefined || baseUrl === "" ? profile : { ...profile, baseUrl };
}

function chosenProfile(chosen: string, env: ModelEnvironment): ModelProfile {
  const slash = chosen.indexOf("/");
  const name = chosen.slice(0, slash);
  const modelId = chosen.slice(slash + 1);
  if (slash < 1 || modelId === "") {
    throw new DramatisError(
      "INVALID_INPUT",
      `DRAMATIS_MODEL must be "provider/model", such as "${CHOICES[0].join("/")}"; it is "${chosen}".`,
    );
  }
  const profile = profileOf(resolveProvider(name), modelId, env);
  if (name === "local" && profile.baseUrl === undefined) {
    throw new DramatisError(
      "INVALID_INPUT",
      "A local model needs the address of its server: set OPENAI_BASE_URL.",
    );
  }
  return profile;
}

function isSetUp(provider: ProviderId, env: ModelEnvironment): boolean {
  const { keyName, baseUrlName } = httpProvider(provider) ?? {};
  return read(env, keyName) !== "" || read(env, baseUrlName) !== "";
}

function profileOf(provider: ProviderId, modelId: string, env: ModelEnvironment): ModelProfile {
  return atBaseUrl({ provider, modelId }, env);
}

function read(env: object, name: string | undefined): string {
  const values: ReadonlyMap<string, unknown> = new Map(Object.entries(env));
  const value = name === undefined ? undefined : values.get(name);
  return typeof value === "string" ? value.trim() : "";
}
