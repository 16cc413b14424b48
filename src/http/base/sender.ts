/**
 * The sender of a request without a principal, by its address.
 *
 * LIMIT-4  Requests by handle and deliveries to webhooks use the same limit as a principal. A limit covers one IPv4
 *          address, or one /64 network of IPv6, the usual network of a subscriber. Requests without the platform's
 *          header `cf-connecting-ip` share one limit.
 */

/** Groups of 16 bits in the network's part of an IPv6 address. */
const NETWORK_GROUPS = 4;

/** Returns the sender as the limiter counts it. Only the platform sets the header: outside of Cloudflare a caller may forge it. */
export function senderOf({ headers }: Request): { tenant: string; subject: string } {
  return { tenant: "", subject: networkOf(headers.get("cf-connecting-ip") ?? "") };
}

/** Returns an IPv4 address as it is, and the /64 network of an IPv6 address: `2001:db8:0:7::/64`. */
export function networkOf(address: string): string {
  const groups = groupsOf(address);
  if (groups === null) return address;
  const [, , , , , mapped = 0, high = 0, low = 0] = groups;
  const isMapped = mapped === 0xffff && groups.slice(0, 5).every((group) => group === 0);
  if (isMapped) return [high >> 8, high & 255, low >> 8, low & 255].join(".");
  const network = groups.slice(0, NETWORK_GROUPS).map((group) => group.toString(16));
  return `${network.join(":")}::/64`;
}

/** Returns the eight groups of an IPv6 address; `null` for any other text. */
function groupsOf(address: string): number[] | null {
  if (!address.includes(":") || !URL.canParse(`http://[${address}]`)) return null;
  // The parser writes an address in its canonical form, without a dotted ending.
  const [before = "", after] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::");
  const [head, tail] = [numbers(before), numbers(after ?? "")];
  return [...head, ...new Array<number>(8 - head.length - tail.length).fill(0), ...tail];
}

function numbers(groups: string): number[] {
  return groups === "" ? [] : groups.split(":").map((group) => Number.parseInt(group, 16));
}
