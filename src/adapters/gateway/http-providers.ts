/** Describes the HTTP interface of each provider: base URL, path, headers and key. Pure. */
import type { ModelRequest } from "../../model/gateway.ts";
import type { ModelProfile, ProviderId } from "../../model/profile.ts";
import type { JsonObject } from "../../shared/json.ts";
import { isPlainUrl } from "../../shared/text.ts";
import { ModelFailure } from "../errors/model-errors.ts";

/** One call, relative to a base URL. */
export interface HttpCall {
  /** Starts with a slash, and may include a query. */
  path: string;
  headers: Record<string, string>;
  body: JsonObject;
}

export interface HttpProvider {
  defaultBaseUrl: string;
  /** Name of the variable with the key, for profiles without one. */
  keyName: string;
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
    call({ profile, body: { betas = profile.parameters?.betas, ...body } }) {
      // Users give base URLs with and without the version.
      const path = /\/v1\/*$/.test(profile.baseUrl ?? "") ? "/messages" : "/v1/messages";
      return { path, headers: { "anthropic-version": "2023-06-01", ...betaHeader(betas) }, body };
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

/** Returns the description of a provider; `undefined` if the provider is not reached over HTTP. */
export function httpProvider(provider: ProviderId): HttpProvider | undefined {
  const providers: Partial<Record<ProviderId, HttpProvider>> = HTTP_PROVIDERS;
  return providers[provider];
}

export const HTTP_PROVIDER_IDS = Object.keys(HTTP_PROVIDERS).filter(
  (name): name is HttpProviderId => name in HTTP_PROVIDERS,
);

/** Returns the base URL of a profile. Throws `ModelFailure` if it is invalid. */
export function baseUrlOf(profile: Pick<ModelProfile, "baseUrl">, provider: HttpProvider): URL {
  const { baseUrl = provider.defaultBaseUrl } = profile;
  // The message omits the URL, because it may contain a password.
  if (!isPlainUrl(baseUrl)) {
    throw new ModelFailure(
      "validation",
      `The base URL in the profile or in ${provider.baseUrlName} must be an HTTP address such as http://127.0.0.1:11434/v1, without user, password or query.`,
    );
  }
  return new URL(baseUrl);
}

/** Returns the header for Anthropic's betas, which profiles list in the parameter `betas`. */
function betaHeader(betas: unknown): Record<string, string> {
  if (betas === undefined || betas === null) return {};
  const names = Array.isArray(betas) ? betas : [betas];
  if (!names.every((name) => typeof name === "string" && /^[\w.-]{1,100}$/.test(name)))
    throw new ModelFailure("validation", "The parameter `betas` must be a list of beta names.");
  return names.length === 0 ? {} : { "anthropic-beta": names.join(",") };
}

/** Returns the resource name of a model. An id without a slash is one of Google's models. */
function geminiModel(modelId: string): string {
  const name = modelId.includes("/") ? modelId : `models/${modelId}`;
  if (!/^(?:[A-Za-z0-9][\w.-]*\/)+[A-Za-z0-9][\w.-]*$/.test(name))
    throw new ModelFailure("validation", `"${modelId}" is not a valid Gemini model id.`);
  return name;
}
