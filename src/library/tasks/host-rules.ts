/**
 * The hosts that requests of actions may reach. Pure.
 *
 * HOSTS-1  A request goes to a host that its action names, over HTTPS. With a port in its name, only to this port.
 * HOSTS-2  A private host, such as `localhost`, a name without a dot, or an address that is not public, must be named with its port. Only
 *          such a one may be reached over plain HTTP.
 */
import ipaddr from "ipaddr.js";

/** Names that are resolved within a network. */
const PRIVATE_NAME = /(?:^|\.)(?:localhost|local|internal|intranet|private|corp|home|lan|home\.arpa)$/;

/** IPv6 addresses that hold one of IPv4, which may be a private one. */
const IPV4_IN_IPV6 = ipaddr.IPv6.parseCIDR("::/96");

/** Reports whether a host, as a URL has it, is reached within a network only. */
export function isPrivateHost(hostname: string): boolean {
  const address = hostname.replace(/^\[|\]$/g, "");
  if (ipaddr.isValid(address)) {
    const parsed = ipaddr.process(address);
    return parsed.range() !== "unicast" || (parsed instanceof ipaddr.IPv6 && parsed.match(IPV4_IN_IPV6));
  }
  const name = hostname.replace(/\.+$/, "").toLowerCase();
  return !name.includes(".") || PRIVATE_NAME.test(name);
}

/** Returns the problem of a host that an action names; `null` where there is none. */
export function hostProblem(host: string): string | null {
  const url = URL.parse(`https://${host}`);
  if (url === null || url.host !== host.replace(/:443$/, ""))
    return `"${host}" is no host. Write \`host\` or \`host:port\`, in small letters, as a URL has it.`;
  return isPrivateHost(url.hostname) && !/:\d+$/.test(host)
    ? `"${host}" is a private host. Name its port, too, if it is meant.`
    : null;
}

/** Returns the reason why a request must not go to an address; `null` where it may. */
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
