/** Which adapter speaks for which provider, and by which names a provider is known. */

import type { AdapterLookup } from "../../model/format-adapter.ts";
import { PROVIDERS, type ProviderId } from "../../model/profile.ts";
import { DramatisError } from "../../shared/errors.ts";
import { aiSdkFormat } from "./ai-sdk/ai-sdk.ts";
import { anthropicFormat } from "./anthropic/anthropic.ts";
import { openaiFormat } from "./chat/openai.ts";
import { geminiFormat } from "./gemini/gemini.ts";
import { offlineFormat } from "./offline/offline.ts";
import { openaiResponsesFormat } from "./openai-responses/openai-responses.ts";
import { workersAIFormat } from "./workers-ai/workers-ai.ts";

export const adapterFor: AdapterLookup = (provider) => {
  switch (provider) {
    case "openai":
      return openaiFormat;
    case "openai-responses":
      return openaiResponsesFormat;
    case "workers-ai":
      return workersAIFormat;
    case "anthropic":
      return anthropicFormat;
    case "gemini":
      return geminiFormat;
    case "ai-sdk":
      return aiSdkFormat;
    case "offline":
      return offlineFormat;
    default:
      return provider satisfies never;
  }
};

const ALIASES: ReadonlyMap<string, ProviderId> = new Map<string, ProviderId>([
  ...PROVIDERS.map((provider) => [provider, provider] as const),
  ["cloudflare", "workers-ai"],
  ["google", "gemini"],
  ["local", "openai"],
]);

/** The provider behind a name or an alias (`cloudflare`, `google`, `local`); throws `INVALID_INPUT` for any other. */
export function resolveProvider(name: string): ProviderId {
  const provider = ALIASES.get(name);
  if (provider !== undefined) return provider;
  throw new DramatisError(
    "INVALID_INPUT",
    `There is no provider "${name}"; use ${[...ALIASES.keys()].join(", ")}.`,
  );
}
