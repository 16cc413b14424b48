/**
 * Where keys may go. A model profile may be written by an author of a tenant; whose keys are sent is the deployer's
 * matter. Pure.
 *
 * TRUST-1  A key goes only to the provider's own host, or to one that the deployer named: by the provider's base URL in
 *          the environment, by a profile in the deployed code (for the key of that profile), or as an allowed host.
 * TRUST-2  Hosts are compared with scheme and port: a host named for HTTPS gets no key over plain HTTP.
 * TRUST-3  A key goes nowhere only because a profile names its variable: it is the provider's own, that of a profile in
 *          the deployed code, or one that the deployer named.
 */

import type { ModelProfile, ProviderId } from "../../model/profile.ts";
import { defined } from "../../shared/defined.ts";
import { DramatisError } from "../../shared/errors.ts";
import { HTTP_PROVIDER_IDS, httpProvider } from "./http-providers.ts";

/** A place that may get keys: any key, unless a provider or the name of the key's variable is said. */
export interface TrustedHost {
  /** `https://host` or `http://host:port`. */
  origin: string;
  provider?: ProviderId;
  secret?: string;
}

/** What decides which hosts are trusted. */
export interface TrustOptions {
  /**
   * Read for each provider's base URL, and for `DRAMATIS_MODEL_HOSTS` and `DRAMATIS_MODEL_SECRETS`: hosts and names of
   * keys, separated by commas or spaces.
   */
  env?: object;
  /** Profiles that stand in the deployed code. */
  profiles?: readonly ModelProfile[];
  /** `host`, `host:port`, or with `http://` or `https://` before it; without a scheme HTTPS is meant. */
  allowedHosts?: readonly string[];
  /** Names of variables whose keys may go wherever the provider's own key may. */
  allowedSecrets?: readonly string[];
}

/** The providers' own hosts. */
const OWN: readonly TrustedHost[] = HTTP_PROVIDER_IDS.flatMap((provider) =>
  hostOf(httpProvider(provider)?.defaultBaseUrl, { provider }),
);

/**
 * The hosts that the deployer trusts, the providers' own included, each with a key that it may get. Throws
 * `INVALID_INPUT` for an allowed host that is none, and for an allowed secret that cannot be one.
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
  const secrets = named([...allowedSecrets, ...listed("DRAMATIS_MODEL_SECRETS")]).map(allowedSecret);
  const hosts = named([...allowedHosts, ...listed("DRAMATIS_MODEL_HOSTS")]).map(allowedHost);
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

/** Whether the key that this profile names may go where the profile says (TRUST-1, TRUST-3). */
export function mayReceiveKey(
  profile: Pick<ModelProfile, "provider" | "baseUrl" | "apiKeySecret">,
  trusted: readonly TrustedHost[] = OWN,
): boolean {
  const { baseUrl = httpProvider(profile.provider)?.defaultBaseUrl } = profile;
  // A provider that is not reached over HTTP gets no key.
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

/** The variable that holds the key of a profile's requests. */
export function keyNameOf({
  provider,
  apiKeySecret,
}: Pick<ModelProfile, "provider" | "apiKeySecret">): string | undefined {
  return apiKeySecret ?? httpProvider(provider)?.keyName;
}

/** Whether a variable of this name may hold a key: others hold what is nobody's business. */
export function isKeyName(name: string): boolean {
  return /^[A-Za-z_]\w*_(?:KEY|TOKEN)$/.test(name);
}

/** Providers that share it are one service. */
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

function allowedSecret(name: string): string {
  if (isKeyName(name)) return name;
  throw new DramatisError(
    "INVALID_INPUT",
    `"${name}" is no name of a key: write names of variables that end in _KEY or _TOKEN into models.allowedSecrets and DRAMATIS_MODEL_SECRETS.`,
  );
}

/** The host's origin. */
function allowedHost(host: string): string {
  const address = /^https?:\/\//.test(host) ? host : `https://${host}`;
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url === undefined || url.href !== `${url.origin}/`) {
    throw new DramatisError(
      "INVALID_INPUT",
      `"${host}" is no host of models: write "host", "host:port" or "http://host:port" into models.allowedHosts and DRAMATIS_MODEL_HOSTS.`,
    );
  }
  return url.origin;
}
