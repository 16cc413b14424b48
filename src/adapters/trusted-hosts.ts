/**
 * Where keys may go. A model profile may be written by an author of a tenant; whose keys are sent is the deployer's
 * matter. Pure.
 *
 * TRUST-1  A key goes only to the provider's own host, or to one that the deployer named: by the provider's base URL in
 *          the environment, by a profile in the deployed code (for the key of that profile), or as an allowed host.
 * TRUST-2  Hosts are compared with scheme and port: a host named for HTTPS gets no key over plain HTTP.
 */
import { DramatisError } from "../shared/errors.ts";
import { HTTP_PROVIDER_IDS, httpProvider } from "./gateway/http-providers.ts";
import type { ModelProfile, ProviderId } from "./types.ts";

/** A place that may get keys: any key, unless a provider or the key's name is said. */
export interface TrustedHost {
  /** `https://host` or `http://host:port`. */
  origin: string;
  provider?: ProviderId;
  secret?: string;
}

/** What decides which hosts are trusted. */
export interface TrustOptions {
  /** Read for each provider's base URL and for `DRAMATIS_MODEL_HOSTS`: hosts, separated by commas or spaces. */
  env?: object;
  /** Profiles that stand in the deployed code. */
  profiles?: readonly ModelProfile[];
  /** `host`, `host:port`, or with `http://` or `https://` before it; without a scheme HTTPS is meant. */
  allowedHosts?: readonly string[];
}

/** The providers' own hosts. */
const OWN: readonly TrustedHost[] = HTTP_PROVIDER_IDS.flatMap((provider) =>
  hostOf(httpProvider(provider)?.defaultBaseUrl, { provider }),
);

/** The hosts that the deployer trusts, the providers' own included. Throws `INVALID_INPUT` for an allowed host that is none. */
export function trustedHosts({
  env = {},
  profiles = [],
  allowedHosts = [],
}: TrustOptions = {}): TrustedHost[] {
  const variables: ReadonlyMap<string, unknown> = new Map(Object.entries(env));
  const read = (name: string) => String(variables.get(name) ?? "").trim();
  const named = [...allowedHosts, ...read("DRAMATIS_MODEL_HOSTS").split(/[\s,]+/)].filter(
    (host) => host !== "",
  );
  return [
    ...OWN,
    ...HTTP_PROVIDER_IDS.flatMap((provider) => hostOf(read(baseUrlName(provider)), { provider })),
    ...profiles.flatMap((profile) => {
      const secret = keyNameOf(profile);
      return hostOf(profile.baseUrl, {
        provider: profile.provider,
        ...(secret === undefined ? {} : { secret }),
      });
    }),
    ...named.map(allowedHost),
  ];
}

/** Whether the key that this profile names may go where the profile says (TRUST-1). */
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

/** Providers that share it are one service. */
function baseUrlName(provider: ProviderId): string {
  return httpProvider(provider)?.baseUrlName ?? provider;
}

function hostOf(url: string | undefined, only: Omit<TrustedHost, "origin">): TrustedHost[] {
  return url !== undefined && URL.canParse(url) ? [{ origin: new URL(url).origin, ...only }] : [];
}

function allowedHost(host: string): TrustedHost {
  const address = /^https?:\/\//.test(host) ? host : `https://${host}`;
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url === undefined || url.href !== `${url.origin}/`) {
    throw new DramatisError(
      "INVALID_INPUT",
      `"${host}" is no host of models: write "host", "host:port" or "http://host:port" into models.allowedHosts and DRAMATIS_MODEL_HOSTS.`,
    );
  }
  return { origin: url.origin };
}
