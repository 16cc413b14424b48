/**
 * The hosts that requests of actions may reach. Pure.
 *
 * HOSTS-1  A request goes over HTTPS to a host that its action names. If the name has a port, the request goes to this port only.
 * HOSTS-2  A private host is `localhost`, a name without a dot, an internal domain, or an address that is not public. Its name must include the
 *          port. Plain HTTP is allowed for private hosts only.
 * HOSTS-3  A posted task reaches only hosts in the deployer's list, by exact spelling. `*` allows all public hosts.
 */
import ipaddr from "ipaddr.js";
import { invalid } from "./errors.ts";

/** Names that resolve only within a private network. */
const PRIVATE_NAME = /(?:^|\.)(?:localhost|local|internal|intranet|private|corp|home|lan|home\.arpa)$/;

/** IPv6 addresses with an embedded IPv4 address, which may be private. */
const IPV4_IN_IPV6 = ipaddr.IPv6.parseCIDR("::/96");

export function isPrivateHost(hostname: string): boolean {
  const address = hostname.replace(/^\[|\]$/g, "");
  if (ipaddr.isValid(address)) {
    const parsed = ipaddr.process(address);
    return parsed.range() !== "unicast" || (parsed instanceof ipaddr.IPv6 && parsed.match(IPV4_IN_IPV6));
  }
  const name = hostname.replace(/\.+$/, "").toLowerCase();
  return !name.includes(".") || PRIVATE_NAME.test(name);
}

/** Reads a list that is separated by commas, such as the hosts of a variable. */
export function listedIn(text = ""): string[] {
  return text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}

/** Returns the problem of a host in an action; `null` if the host is valid. */
export function hostProblem(host: string): string | null {
  const url = URL.parse(`https://${host}`);
  if (url === null || url.host !== host.replace(/:443$/, ""))
    return `"${host}" is not a host. Write \`host\` or \`host:port\` in lowercase, as in a URL.`;
  return isPrivateHost(url.hostname) && !/:\d+$/.test(host)
    ? `"${host}" is a private host. To allow it, name its port too.`
    : null;
}

/** Returns the reason why a URL is not allowed; `null` if it is allowed. */
export function addressProblem(url: URL, hosts: readonly string[]): string | null {
  const { protocol, hostname, username, password } = url;
  const port = url.port || (protocol === "https:" ? "443" : "80");
  if (protocol !== "https:" && protocol !== "http:") return `The scheme "${protocol}" is not allowed.`;
  if (username !== "" || password !== "") return "An address must not have a user name or a password.";
  const isExact = hosts.includes(`${hostname}:${port}`);
  const isPrivate = isPrivateHost(hostname);
  if (!isExact && (isPrivate || !hosts.includes(hostname)))
    return `The host "${url.host}" is not among the action's \`hosts\`.`;
  if (!isExact && port !== "443")
    return `The port ${port} of "${hostname}" is not among the action's \`hosts\`.`;
  return protocol === "http:" && !isPrivate ? "Plain HTTP is not allowed: use https." : null;
}

/** Returns a function that checks a host. Throws `INVALID_INPUT` for an invalid entry of the list. */
export function allowedHosts(listed: readonly string[]): (host: string) => boolean {
  for (const host of listed) {
    const problem = host === "*" ? null : hostProblem(host);
    if (problem !== null) throw invalid(`Hosts of posted tasks: ${problem}`);
  }
  const all = new Set(listed);
  return (host) => all.has(host) || (all.has("*") && !isPrivate(host));
}

/** Returns the problem of hosts that posted definitions may not reach (HOSTS-3). `what`: the kind of the definitions, in the plural. */
export function unlistedHosts(what: string, hosts: readonly string[]): string {
  const names = hosts.map((host) => `"${host}"`).join(", ");
  return `Posted ${what} may not reach ${names}. The deployer lists hosts in DRAMATIS_HTTP_HOSTS, or in \`tasks.allowedHosts\` of dramatis().`;
}

function isPrivate(host: string): boolean {
  const url = URL.parse(`https://${host}`);
  return url === null || isPrivateHost(url.hostname);
}
