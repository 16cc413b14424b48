/** Which addresses of model servers may be sent a key: those of the providers, and those that the deployer named. Pure. */

/** The variables that name hosts. */
export interface ModelHostsEnv {
  /** Hosts that model profiles by API may point to, as `llm.example.com, 10.0.0.5:8000`. */
  DRAMATIS_MODEL_HOSTS?: string;
  OPENAI_BASE_URL?: string;
}

/** Origins: a provider is not called without encryption. */
const PROVIDERS = [
  "https://api.openai.com",
  "https://api.anthropic.com",
  "https://generativelanguage.googleapis.com",
];

/**
 * Tells whether a base URL leads to a trusted host; one with a user, a password, a query or a fragment never does. Hosts
 * are compared with their port, where it is not the protocol's own.
 */
export function trustedHosts(
  env: ModelHostsEnv,
  allowedHosts: readonly string[] = [],
): (baseUrl: string) => boolean {
  const named = [...(env.DRAMATIS_MODEL_HOSTS?.split(/[\s,]+/) ?? []), ...allowedHosts];
  const hosts = new Set(named.map((host) => host.trim().toLowerCase()).filter((host) => host !== ""));
  const own = env.OPENAI_BASE_URL?.trim() ?? "";
  if (URL.canParse(own)) hosts.add(new URL(own).host);
  return (baseUrl) => {
    if (!URL.canParse(baseUrl)) return false;
    const { host, origin, username, password, search, hash } = new URL(baseUrl);
    return username + password + search + hash === "" && (hosts.has(host) || PROVIDERS.includes(origin));
  };
}
