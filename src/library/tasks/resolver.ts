/**
 * Resolves the hosts of requests, by DNS over HTTPS in the JSON form.
 *
 * HTTP-6  With a resolver, a public name with a private address is refused before the request, also after a redirect. If the resolver does not
 *         answer, the request is not sent.
 */
import { z } from "zod";

import { invalid } from "../../shared/errors.ts";
import { isPrivateHost } from "../../shared/host-rules.ts";
import { ToolError } from "../tools/tool-error.ts";

/** Returns the addresses of a public name. Throws `ToolError`. */
export type ResolveHost = (name: string, signal: AbortSignal) => Promise<string[]>;

/** The types of records with addresses, and their numbers. */
const RECORDS = { A: 1, AAAA: 28 } as const;

/** Complete answers to questions about names that exist, or that do not. */
const answerSchema = z.object({
  Status: z.literal([0, 3]),
  TC: z.literal(false).optional(),
  Answer: z.array(z.object({ type: z.number(), data: z.string() })).optional(),
});

/** Returns a resolver. Throws `INVALID_INPUT` unless the address is https, or http on a loopback address. */
export function resolverAt(address: string): ResolveHost {
  const url = URL.parse(address);
  const isLocal = url?.protocol === "http:" && ["127.0.0.1", "localhost", "[::1]"].includes(url.hostname);
  if (url?.protocol !== "https:" && !isLocal)
    throw invalid(
      `\`tasks.resolver\` is "${address}". Give the https address of a server for DNS over HTTPS, such as https://cloudflare-dns.com/dns-query.`,
    );
  return async (name, signal) => {
    const found = await Promise.all(
      Object.entries(RECORDS).map(([type, number]) => ask(address, { name, type, number }, signal)),
    );
    return found.flat();
  };
}

async function ask(
  address: string,
  { name, type, number }: { name: string; type: string; number: number },
  signal: AbortSignal,
): Promise<string[]> {
  const url = new URL(address);
  url.searchParams.set("name", name);
  url.searchParams.set("type", type);
  try {
    const response = await fetch(url, { headers: { accept: "application/dns-json" }, signal });
    if (!response.ok) throw new Error(`The resolver answered ${response.status}.`);
    const { Answer = [] } = answerSchema.parse(await response.json());
    return Answer.filter((record) => record.type === number).map(({ data }) => data);
  } catch (cause) {
    if (signal.aborted) throw signal.reason;
    throw new ToolError(`The resolver did not find the address of "${name}".`, { retriable: true, cause });
  }
}

/** Throws `PERMISSION_DENIED` with the rule `network` for a public name with a private address (HTTP-6). */
export async function checkResolved(
  hostname: string,
  resolve: ResolveHost | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (resolve === undefined || isPrivateHost(hostname) || isAddress(hostname)) return;
  const inside = (await resolve(hostname, signal)).find(isPrivateHost);
  if (inside === undefined) return;
  throw new ToolError(`The host "${hostname}" has the private address ${inside}.`, {
    code: "PERMISSION_DENIED",
    rule: "network",
  });
}

/** Reports whether a host of a URL is an address. A URL writes IPv4 in four numbers, and IPv6 in brackets. */
function isAddress(hostname: string): boolean {
  return hostname.startsWith("[") || /^\d+(?:\.\d+){3}$/.test(hostname);
}
