/**
 * The hosts that requests of posted tasks may reach. Pure.
 *
 * HOSTS-3  A posted task reaches only hosts in the deployer's list, by exact spelling. `*` allows all public hosts.
 */
import { DramatisError } from "../../shared/errors.ts";
import { hostProblem, isPrivateHost } from "./host-rules.ts";

/** Returns a function that checks a host. Throws `INVALID_INPUT` for an invalid entry of the list. */
export function allowedHosts(listed: readonly string[]): (host: string) => boolean {
  for (const host of listed) {
    const problem = host === "*" ? null : hostProblem(host);
    if (problem !== null) throw new DramatisError("INVALID_INPUT", `Hosts of posted tasks: ${problem}`);
  }
  const all = new Set(listed);
  return (host) => all.has(host) || (all.has("*") && !isPrivate(host));
}

function isPrivate(host: string): boolean {
  const url = URL.parse(`https://${host}`);
  return url === null || isPrivateHost(url.hostname);
}
