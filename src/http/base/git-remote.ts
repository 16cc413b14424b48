/**
 * Git servers on other hosts, over HTTP.
 *
 * REMOTE-3  A request goes only to a host that the deployer lists, without redirects, with the project's secrets for the host. Answers are bounded.
 */
import { MAX_BUNDLE_BYTES } from "../../git/limits.ts";
import type { Remote } from "../../git/remote.ts";
import type { Service } from "../../git/wire.ts";
import { checkResolved, type ResolveHost } from "../../library/tasks/resolver.ts";
import { ToolError } from "../../library/tools/tool-error.ts";
import { DramatisError, notFound, tooLarge, unavailable } from "../../shared/errors.ts";
import { addressProblem } from "../../shared/host-rules.ts";
import { redactSecrets } from "../../shared/redact.ts";
import { invalidAt } from "../../shared/validation.ts";

/** Time limit of a request to a remote, in milliseconds. */
const REMOTE_MS = 120_000;
/** Bytes of the list of references. */
const MAX_LIST_BYTES = 8 * 1_024 * 1_024;
/** Bytes of an answer. The lines around a pack need less than a thousandth. */
const MAX_ANSWER_BYTES = MAX_BUNDLE_BYTES + 1_024 * 1_024;

export interface RemotePorts {
  mayReach(host: string): boolean;
  /** Absent: names are not resolved. */
  resolve?: ResolveHost | undefined;
  credentials(url: URL): Promise<readonly { header: string; value: string; secret: string }[]>;
}

/** Uses the repository at an address. Throws `INVALID_INPUT` and `PERMISSION_DENIED`, and the errors of `use` without secrets that the server sends back. */
export async function withRemote<Value>(
  address: string,
  ports: RemotePorts,
  use: (remote: Remote) => Promise<Value>,
): Promise<Value> {
  const secrets: string[] = [];
  try {
    return await use(remoteAt(address, ports, secrets));
  } catch (error) {
    if (!(error instanceof DramatisError)) throw error;
    throw new DramatisError(error.code, redactSecrets(error.message, secrets), error.options);
  }
}

function remoteAt(address: string, ports: RemotePorts, secrets: string[]): Remote {
  const root = URL.parse(address.replace(/\/+$/, ""));
  const problem =
    root === null
      ? "Must be an address of HTTP, such as https://github.com/acme/web.git."
      : addressProblem(root, [root.host, root.hostname]);
  if (root === null || problem !== null) throw invalidAt("/url", problem ?? "");
  if (/[?#]/.test(address)) throw invalidAt("/url", "Must be an address without ? and #.");
  if (!ports.mayReach(root.host))
    throw new DramatisError(
      "PERMISSION_DENIED",
      `The deployment does not allow the host "${root.host}". Add it to DRAMATIS_HTTP_HOSTS.`,
    );
  const send = async function* (path: string, type: string, most: number, init: RequestInit) {
    const url = new URL(`${root.href}/${path}`);
    const signal = AbortSignal.timeout(REMOTE_MS);
    await reachable(url.hostname, ports.resolve, signal);
    const headers = new Headers(init.headers);
    for (const { header, value, secret } of await ports.credentials(url)) {
      headers.set(header, value);
      secrets.push(secret);
    }
    try {
      const response = await fetch(url, { ...init, headers, signal, redirect: "manual" });
      if (response.status === 200 && response.headers.get("content-type") === type)
        return yield* partsOf(response, most);
      await response.body?.cancel();
      throw refusal(root, response);
    } catch (cause) {
      if (cause instanceof DramatisError) throw cause;
      throw unavailable(`"${root.host}" did not answer. Try again.`, {
        retriable: true,
        cause,
      });
    }
  };
  return {
    announced: (service: Service) =>
      send(`info/refs?service=${service}`, `application/x-${service}-advertisement`, MAX_LIST_BYTES, {}),
    ask: (service, body) =>
      send(service, `application/x-${service}-result`, MAX_ANSWER_BYTES, {
        ...{ method: "POST", body },
        headers: { "content-type": `application/x-${service}-request` },
      }),
  };
}

async function reachable(...check: Parameters<typeof checkResolved>): Promise<void> {
  try {
    await checkResolved(...check);
  } catch (error) {
    if (!(error instanceof ToolError)) throw error;
    throw new DramatisError(
      error.code === "PERMISSION_DENIED" ? "PERMISSION_DENIED" : "UNAVAILABLE",
      error.message,
    );
  }
}

function refusal({ host, pathname }: URL, { status }: Response): DramatisError {
  if (status === 401 || status === 403)
    return new DramatisError(
      "PERMISSION_DENIED",
      `"${host}" answers ${status}. Store a secret of the project for this host, or check its rights.`,
    );
  if (status === 404) return notFound(`"${host}" has no repository ${pathname}, or hides it.`);
  if (status >= 300 && status < 400)
    return invalidAt("/url", "Redirects to another address. Give that address.");
  if (status === 200) return invalidAt("/url", "Is not the address of a git repository with smart HTTP.");
  return unavailable(`"${host}" answers ${status}. Try again.`, { retriable: true });
}

async function* partsOf({ body }: Response, most: number): AsyncGenerator<Uint8Array, void> {
  let size = 0;
  for await (const part of body ?? []) {
    size += part.byteLength;
    if (size > most)
      throw tooLarge(
        `The remote sends more than ${most} bytes. Fetch one branch, or make the history smaller.`,
      );
    yield part;
  }
}
