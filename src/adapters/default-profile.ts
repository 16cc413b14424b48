/** Which model answers where a persona names none, decided by the environment alone. */
import { DramatisError } from "../shared/errors.ts";
import { resolveProvider } from "./lookup.ts";
import type { ModelProfile } from "./types.ts";

/** The variables that decide; a blank one counts as absent. */
export interface ModelEnvironment {
  /** `provider/model`; the model may contain slashes. */
  DRAMATIS_MODEL?: string;
  OPENAI_API_KEY?: string;
  /** Base URL of a compatible server. */
  OPENAI_BASE_URL?: string;
}

export const OFFLINE_PROFILE: ModelProfile = { provider: "offline", modelId: "offline-1" };

const OPENAI_MODEL = "gpt-4.1-mini";
const WORKERS_AI_MODEL = "@cf/meta/llama-3.3-70b-instruct-fp8-fast";

/**
 * `DRAMATIS_MODEL` if it is set; else OpenAI if its key or base URL is; else Workers AI if it is bound; else the offline
 * model. Throws `INVALID_INPUT` for a `DRAMATIS_MODEL` that cannot be used.
 */
export function defaultModelProfile(env: ModelEnvironment, hasAiBinding: boolean): ModelProfile {
  const chosen = env.DRAMATIS_MODEL?.trim();
  if (chosen) return chosenProfile(chosen, env);
  if (env.OPENAI_API_KEY?.trim() || baseUrl(env) !== undefined) return openai(OPENAI_MODEL, env);
  if (hasAiBinding) return { provider: "workers-ai", modelId: WORKERS_AI_MODEL };
  return OFFLINE_PROFILE;
}

function chosenProfile(chosen: string, env: ModelEnvironment): ModelProfile {
  const slash = chosen.indexOf("/");
  const name = chosen.slice(0, slash);
  const modelId = chosen.slice(slash + 1);
  if (slash < 1 || modelId === "") {
    throw new DramatisError(
      "INVALID_INPUT",
      `DRAMATIS_MODEL must be "provider/model", such as "openai/${OPENAI_MODEL}"; it is "${chosen}".`,
    );
  }
  const provider = resolveProvider(name);
  if (name === "local" && baseUrl(env) === undefined) {
    throw new DramatisError(
      "INVALID_INPUT",
      "A local model needs the address of its server: set OPENAI_BASE_URL.",
    );
  }
  return provider === "openai" ? openai(modelId, env) : { provider, modelId };
}

function openai(modelId: string, env: ModelEnvironment): ModelProfile {
  const url = baseUrl(env);
  return { provider: "openai", modelId, ...(url === undefined ? {} : { baseUrl: url }) };
}

function baseUrl({ OPENAI_BASE_URL }: ModelEnvironment): string | undefined {
  return OPENAI_BASE_URL?.trim().replace(/\/+$/, "") || undefined;
}
