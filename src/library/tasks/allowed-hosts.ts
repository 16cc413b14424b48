/**
 * The hosts that requests of posted tasks may reach: those that the deployer lists. Pure.
 *
 * HOSTS-3  A task that an author posts reaches only hosts that the deployer lists, as they are written there. `*` lists all hosts that are
 *          not private.
 */
import { DramatisError } from "../../shared/errors.ts";
import { hostProblem, isPrivateHost } from "./host-rules.ts";

/** Returns the check of hosts. Throws `INVALID_INPUT` for what is no host. */
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
