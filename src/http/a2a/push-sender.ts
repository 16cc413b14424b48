/**
 * Notices of A2A to webhooks.
 *
 * A2A-14  A notice goes only to a host that the deployer lists, by https, without redirects. The rules of hosts are the rules of `http.request`:
 *         a private host needs its port in the list, and a name with a private address is refused if names are resolved. An answer of 2xx
 *         within 15 seconds acknowledges a notice.
 */
import { statusNotice } from "../../compat/a2a/tasks.ts";
import { questionsOfTurn } from "../../compat/mcp/questions.ts";
import { checkResolved, type ResolveHost } from "../../library/tasks/resolver.ts";
import { ToolError } from "../../library/tools/tool-error.ts";
import { A2A_VERSION } from "../../protocol/remote-call.ts";
import type { PostWebhook } from "../../protocol/webhooks.ts";
import { type DramatisError, forbidden, unavailable } from "../../shared/errors.ts";
import { addressProblem, allowedHosts } from "../../shared/host-rules.ts";

const TIMEOUT_MS = 15_000;

/**
 * Returns the function that names the problem of an address; `undefined` if no host is listed. The function throws `INVALID_INPUT` for an invalid
 * list, so that an invalid list breaks no other request.
 */
export function webhookProblems(listed: readonly string[]): ((url: URL) => string | null) | undefined {
  if (listed.length === 0) return undefined;
  return (url) => {
    const mayReach = allowedHosts(listed);
    const port = url.port || (url.protocol === "https:" ? "443" : "80");
    const hosts = [url.hostname, `${url.hostname}:${port}`].filter(mayReach);
    if (hosts.length > 0) return addressProblem(url, hosts);
    return `The deployment sends no notices to the host "${url.host}".`;
  };
}

/** Returns the function that posts notices; `undefined` if no host is listed. It resolves names with `resolve`, if given. */
export function webhookPoster(
  listed: readonly string[],
  resolve: ResolveHost | undefined,
): PostWebhook | undefined {
  const problemOf = webhookProblems(listed);
  if (problemOf === undefined) return undefined;
  return async ({ url: address, headers, conversationId, turn, reader }) => {
    const url = new URL(address);
    const problem = problemOf(url);
    if (problem !== null) throw forbidden(problem);
    const place = { conversationId, turnId: turn.id };
    const notice = statusNotice(place, turn, questionsOfTurn(place, turn, reader));
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const response = await answered(async () => {
      await checkResolved(url.hostname, resolve, signal);
      return fetch(url, {
        method: "POST",
        headers: { ...headers, "content-type": "application/a2a+json", "a2a-version": A2A_VERSION },
        body: JSON.stringify(notice),
        redirect: "manual",
        signal,
      });
    });
    await response.body?.cancel();
    if (!response.ok) throw failed(`The webhook answered ${response.status}.`);
  };
}

async function answered(send: () => Promise<Response>): Promise<Response> {
  try {
    return await send();
  } catch (cause) {
    if (cause instanceof ToolError && cause.code === "PERMISSION_DENIED") throw forbidden(cause.message);
    throw failed("The webhook did not answer.", cause);
  }
}

/** Returns the error of an attempt. Its message has no part of the address or of the headers. */
function failed(message: string, cause?: unknown): DramatisError {
  return unavailable(message, { retriable: true, cause });
}
