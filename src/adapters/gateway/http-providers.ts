/** How each provider that is reached over HTTP wants to be called: where, with which headers, under which key. Pure. */

import type { ModelRequest } from "../../model/gateway.ts";
import type { ModelProfile, ProviderId } from "../../model/profile.ts";
import type { JsonObject } from "../../shared/json.ts";
import { isPlainUrl } from "../../shared/text.ts";
import { ModelFailure } from "../errors/model-errors.ts";

/** One call, as it goes out below a base URL. */
export interface HttpCall {
  /** From its slash on, with a query where there is one. */
  path: string;
  headers: Record<string, string>;
  body: JsonObject;
}

export interface HttpProvider {
  defaultBaseUrl: string;
  /** The variable that holds the key, where a profile names none. */
  keyName: string;
  /** The variable that holds the base URL. */
  baseUrlName: string;
  keyHeader(key: string): Record<string, string>;
  call(request: Pick<ModelRequest, "profile" | "body">): HttpCall;
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

const openai = {
  defaultBaseUrl: "https://api.openai.com/v1",
  keyName: "OPENAI_API_KEY",
  baseUrlName: "OPENAI_BASE_URL",
  keyHeader: bearer,
};

const HTTP_PROVIDERS = {
  openai: { ...openai, call: ({ body }) => ({ path: "/chat/completions", headers: {}, body }) },
  "openai-responses": { ...openai, call: ({ body }) => ({ path: "/responses", headers: {}, body }) },
  anthropic: {
    defaultBaseUrl: "https://api.anthropic.com",
    keyName: "ANTHROPIC_API_KEY",
    baseUrlName: "ANTHROPIC_BASE_URL",
    keyHeader: (key) => ({ "x-api-key": key }),
    call({ profile, body: { betas: asked = profile.parameters?.betas, ...body } }) {
      // Both forms of the base URL are in use, with the version and without.
      const path = /\/v1\/*$/.test(profile.baseUrl ?? "") ? "/messages" : "/v1/messages";
      return { path, headers: { "anthropic-version": "2023-06-01", ...betaHeader(asked) }, body };
    },
  },
  gemini: {
    defaultBaseUrl: "https://generativelanguage.googleapis.com/v1beta",
    keyName: "GEMINI_API_KEY",
    baseUrlName: "GEMINI_BASE_URL",
    keyHeader: (key) => ({ "x-goog-api-key": key }),
    call: ({ profile, body }) => ({
      path: `/${geminiModel(profile.modelId)}:streamGenerateContent?alt=sse`,
      headers: {},
      body,
    }),
  },
} satisfies Partial<Record<ProviderId, HttpProvider>>;

export type HttpProviderId = keyof typeof HTTP_PROVIDERS;

/** The description of a provider; `undefined` for one that is not reached over HTTP. */
export function httpProvider(provider: ProviderId): HttpProvider | undefined {
  const providers: Partial<Record<ProviderId, HttpProvider>> = HTTP_PROVIDERS;
  return providers[provider];
}

export const HTTP_PROVIDER_IDS = Object.keys(HTTP_PROVIDERS).filter(
  (name): name is HttpProviderId => name in HTTP_PROVIDERS,
);

/** The base URL without trailing slashes, as an address and as it is written. Throws `ModelFailure` for one that cannot be used. */
export function baseUrlOf(profile: Pick<ModelProfile, "baseUrl">, provider: HttpProvider): URL {
  const { baseUrl = provider.defaultBaseUrl } = profile;
  // What is refused is not repeated: it may hold a password.
  if (!isPlainUrl(baseUrl)) {
    throw new ModelFailure(
      "validation",
      `The base URL, of the profile or in ${provider.baseUrlName}, must be an HTTP address such as http://127.0.0.1:11434/v1, without user, password or query.`,
    );
  }
  return new URL(baseUrl);
}

/** Anthropic's betas are a header: they stand among the parameters as `betas`, a list of names. */
function betaHeader(betas: unknown): Record<string, string> {
  if (betas === undefined || betas === null) return {};
  const names = Array.isArray(betas) ? betas : [betas];
  if (!names.every((name) => typeof name === "string" && /^[\w.-]{1,100}$/.test(name))) {
    throw new ModelFailure("validation", "The parameter `betas` must be a list of names of betas.");
  }
  return names.length === 0 ? {} : { "anthropic-beta": names.join(",") };
}

/** The resource name of a model: an id alone is one of Google's own. */
function geminiModel(modelId: string): string {
  const name = modelId.includes("/") ? modelId : `models/${modelId}`;
  if (!/^(?:[A-Za-z0-9][\w.-]*\/)+[A-Za-z0-9][\w.-]*$/.test(name)) {
    throw new ModelFailure("validation", `"${modelId}" is no id of a Gemini model.`);
  }
  return name;
}
