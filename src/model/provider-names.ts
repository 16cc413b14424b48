/** The names of providers in settings, and the form of `DRAMATIS_MODEL`. The server, `npm start` and the doctor all check it by `chosenModel`. Pure. */
import { invalid } from "../shared/errors.ts";
import { didYouMean } from "../shared/known-ids.ts";
import { PROVIDERS, type ProviderId } from "./profile.ts";

const ALIASES: ReadonlyMap<string, ProviderId> = new Map<string, ProviderId>([
  ...PROVIDERS.map((provider) => [provider, provider] as const),
  ["cloudflare", "workers-ai"],
  ["google", "gemini"],
  ["local", "openai"],
]);

export const PROVIDER_NAMES: readonly string[] = [...ALIASES.keys()];

export function findProvider(name: string): ProviderId | undefined {
  return ALIASES.get(name);
}

/**
 * Returns the provider and the model that `DRAMATIS_MODEL` names; `undefined` if it is blank. Throws `INVALID_INPUT` for an invalid value. The
 * message omits the value, because `/health` is public and the value may be a misplaced secret.
 */
export function chosenModel(env: {
  DRAMATIS_MODEL?: string | undefined;
  OPENAI_BASE_URL?: string | undefined;
}): { provider: ProviderId; modelId: string } | undefined {
  const chosen = env.DRAMATIS_MODEL?.trim();
  if (!chosen) return undefined;
  const [, name = "", modelId] = /^([^/]+)\/(.+)$/s.exec(chosen) ?? [];
  const provider = findProvider(name);
  if (provider === undefined || modelId === undefined)
    throw invalid(
      `DRAMATIS_MODEL must be "provider/model", such as "openai/gpt-4.1-mini".${didYouMean(name, PROVIDER_NAMES)} Providers are ${PROVIDER_NAMES.join(", ")}.`,
    );
  if (name === "local" && !env.OPENAI_BASE_URL?.trim())
    throw invalid("DRAMATIS_MODEL names a local model. Set OPENAI_BASE_URL to the address of its server.");
  return { provider, modelId };
}
