/**
 * Decides which hosts receive keys. Authors of a tenant may write model profiles, but only the deployer decides about keys. Pure.
 *
 * TRUST-1  A key is sent only to the provider's own host, or to a host that the deployer named. The deployer names a host by the provider's
 *          base URL in the environment, by a profile in the deployed code (for this profile's key), or as an allowed host.
 * TRUST-2  Scheme and port count: a host that is trusted over HTTPS receives no key over plain HTTP.
 * TRUST-3  A profile cannot send a key by naming its variable. The key must belong to the provider or to a profile in the deployed code, or
 *          the deployer must have named its variable.
 */
import type { ModelProfile, ProviderId } from "../../model/profile.ts";
import { defined } from "../../shared/defined.ts";
import { invalid } from "../../shared/errors.ts";
import { HTTP_PROVIDER_IDS, httpProvider } from "./http-providers.ts";

/** A host that may receive all keys, or only keys of one provider or one variable. */
export interface TrustedHost {
  /** `https://host` or `http://host:port`. */
  origin: string;
  provider?: ProviderId;
  secret?: string;
}

/** The deployer's decisions about hosts. */
export interface TrustOptions {
  /**
   * Environment with the base URLs of providers, and `DRAMATIS_MODEL_HOSTS` and `DRAMATIS_MODEL_SECRETS`: hosts and
   * variable names, separated by commas or spaces.
   */
  env?: object;
  /** Profiles in the deployed code. */
  profiles?: readonly ModelProfile[];
  /** `host` or `host:port`, with an optional `http://` or `https://`; HTTPS without a scheme. */
  allowedHosts?: readonly string[];
  /** Variables with keys that may be sent to the same hosts as the provider's own key. */
  allowedSecrets?: readonly string[];
}

const OWN: readonly TrustedHost[] = HTTP_PROVIDER_IDS.flatMap((provider) =>
  hostOf(httpProvider(provider)?.defaultBaseUrl, { provider }),
);

/**
 * Lists the trusted hosts, including the providers' own, each with a key that it may receive. Throws `INVALID_INPUT` for an
 * invalid allowed host or secret.
 *
 * @example trustedHosts({ env, allowedHosts: ["llm.example.com"], allowedSecrets: ["EXAMPLE_API_KEY"] })
 */
export function trustedHosts({
  env = {},
  profiles = [],
  allowedHosts = [],
  allowedSecrets = [],
}: TrustOptions = {}): TrustedHost[] {
  const variables: ReadonlyMap<string, unknown> = new Map(Object.entries(env));
  const read = (name: string) => String(variables.get(name) ?? "").trim();
  const listed = (name: string) => read(name).split(/[\s,]+/);
  const named = (items: readonly string[]) => items.filter((item) => item !== "");
  const secrets = [
    ...named(allowedSecrets).map(allowedSecret("models.allowedSecrets")),
    ...named(listed("DRAMATIS_MODEL_SECRETS")).map(allowedSecret("DRAMATIS_MODEL_SECRETS")),
  ];
  const hosts = [
    ...named(allowedHosts).map(allowedHost("models.allowedHosts")),
    ...named(listed("DRAMATIS_MODEL_HOSTS")).map(allowedHost("DRAMATIS_MODEL_HOSTS")),
  ];
  const inCode = profiles.flatMap(({ apiKeySecret }) => apiKeySecret ?? []);
  const keyNames = HTTP_PROVIDER_IDS.map((provider) => ({ provider, secret: keyNameOf({ provider }) }));
  return [
    ...HTTP_PROVIDER_IDS.flatMap((provider) => {
      const urls = [httpProvider(provider)?.defaultBaseUrl, read(baseUrlName(provider))];
      const keys = [keyNameOf({ provider }), ...secrets];
      return urls.flatMap((url) => keys.flatMap((secret) => hostOf(url, { provider, secret })));
    }),
    ...profiles.flatMap((profile) => {
      const { provider, baseUrl = httpProvider(provider)?.defaultBaseUrl } = profile;
      return hostOf(baseUrl, { provider, secret: keyNameOf(profile) });
    }),
    ...hosts.flatMap((origin) => [
      ...keyNames.flatMap((only) => hostOf(origin, only)),
      ...[...secrets, ...inCode].map((secret) => ({ origin, secret })),
    ]),
  ];
}

/** Reports whether the key of this profile may go to the profile's host (TRUST-1, TRUST-3). */
export function mayReceiveKey(
  profile: Pick<ModelProfile, "provider" | "baseUrl" | "apiKeySecret">,
  trusted: readonly TrustedHost[] = OWN,
): boolean {
  const { baseUrl = httpProvider(profile.provider)?.defaultBaseUrl } = profile;
  // Providers that are not reached over HTTP receive no key.
  if (baseUrl === undefined) return true;
  if (!URL.canParse(baseUrl)) return false;
  const { origin } = new URL(baseUrl);
  const secret = keyNameOf(profile);
  return trusted.some(
    (host) =>
      host.origin === origin &&
      (host.provider === undefined || baseUrlName(host.provider) === baseUrlName(profile.provider)) &&
      (host.secret === undefined || host.secret === secret),
  );
}

export function keyNameOf({
  provider,
  apiKeySecret,
}: Pick<ModelProfile, "provider" | "apiKeySecret">): string | undefined {
  return apiKeySecret ?? httpProvider(provider)?.keyName;
}

/** Reports whether a variable may contain a key, by its name. No other variable is ever read. */
export function isKeyName(name: string): boolean {
  return /^[A-Za-z_]\w*_(?:KEY|TOKEN)$/.test(name);
}

/** Identifies the service of a provider: providers with the same variable for the base URL share a service. */
function baseUrlName(provider: ProviderId): string {
  return httpProvider(provider)?.baseUrlName ?? provider;
}

function hostOf(
  url: string | undefined,
  { provider, secret }: { provider: ProviderId; secret?: string | undefined },
): TrustedHost[] {
  if (url === undefined || !URL.canParse(url)) return [];
  return [{ origin: new URL(url).origin, provider, ...defined({ secret }) }];
}

/**
 * Returns the check of the entries of a list. Its error has their position instead of their value, because `/health` is public and the
 * value may be a secret.
 */
const allowedSecret =
  (list: string) =>
  (name: string, index: number): string => {
    if (isKeyName(name)) return name;
    const message = `Entry ${index + 1} of ${list} cannot contain a key: list names of variables that end in _KEY or _TOKEN.`;
    throw invalid(message);
  };

/** As `allowedSecret`, for hosts. */
const allowedHost =
  (list: string) =>
  (host: string, index: number): string => {
    const address = /^https?:\/\//.test(host) ? host : `https://${host}`;
    const url = URL.canParse(address) ? new URL(address) : undefined;
    if (url !== undefined && url.href === `${url.origin}/`) return url.origin;
    const message = `Entry ${index + 1} of ${list} is not a host: list "host", "host:port" or "http://host:port".`;
    throw invalid(message);
  };
