/** Posts to a provider over HTTP. What differs between providers is in `http-providers.ts`. */

import type { ErrorCategory } from "../../model/error.ts";
import type { ModelRequest } from "../../model/gateway.ts";
import type { ModelProfile } from "../../model/profile.ts";
import type { ResponseInfo } from "../../model/reply.ts";
import { defined } from "../../shared/defined.ts";
import { categoryOfResponse, ModelFailure, readErrorBody } from "../errors/model-errors.ts";
import { responseInfo, retryAfterMs } from "../errors/response-info.ts";
import { beginningOf, readText, reasonOf } from "./bytes.ts";
import type { AttemptDeadlines } from "./deadlines.ts";
import { eventData, MAX_REPLY_BYTES } from "./events.ts";
import { baseUrlOf, type HttpProvider, httpProvider } from "./http-providers.ts";
import type { GatewayPorts, Transport } from "./ports.ts";
import { keyNameOf, mayReceiveKey } from "./trusted-hosts.ts";

const MAX_ERROR_BODY = 16 * 1024;

export const httpTransport: Transport = async function* (request, ports, attempt) {
  const provider = descriptionOf(request.profile);
  const response = await post(request, provider, ports, attempt.signal);
  const { headers, body } = response;
  const info = responseInfo(response.status, headers, ports.clock.now());
  yield { response: info };
  if (!response.ok) throw await refusal(response, info, request.profile, ports, attempt);
  if (body === null) return;
  const type = headers.get("content-type") ?? "";
  if (/[/+]json\b/i.test(type)) {
    yield { payloads: [await readText(body, attempt.signal, MAX_REPLY_BYTES, attempt)] };
  } else if (/^text\/html\b/i.test(type)) {
    await body.cancel();
    throw new ModelFailure(
      "validation",
      `A web page answered instead of a model. ${check(request.profile, provider)}`,
      detailsOf(info),
    );
  } else {
    yield { payloads: eventData(body, attempt.signal, attempt) };
  }
};

/** The key that a request of this profile carries. */
export function keyOf(profile: ModelProfile, { secret }: Pick<GatewayPorts, "secret">): string | undefined {
  const name = keyNameOf(profile);
  return name === undefined ? undefined : secret(name)?.trim() || undefined;
}

function descriptionOf({ provider }: ModelProfile): HttpProvider {
  const found = httpProvider(provider);
  if (found === undefined) {
    throw new ModelFailure("validation", `The provider "${provider}" is not reached over HTTP.`);
  }
  return found;
}

async function post(
  { profile, body: given }: ModelRequest,
  provider: HttpProvider,
  ports: GatewayPorts,
  signal: AbortSignal,
): Promise<Response> {
  const { href, origin } = baseUrlOf(profile, provider);
  const base = href.replace(/\/+$/, "");
  const { path, headers, body } = provider.call({ profile, body: given });
  const init: RequestInit = {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "text/event-stream, application/json",
      ...headers,
      ...authorization(profile, provider, ports),
    },
    body: JSON.stringify(body),
    signal,
    // A redirect is not followed: it could take the key to another host.
    redirect: "manual",
  };
  // Called without a receiver: the platform's `fetch` refuses to be a method of something else.
  const { fetch } = ports;
  try {
    return await fetch(base + path, init);
  } catch (error) {
    signal.throwIfAborted();
    throw new ModelFailure("network", `The model server ${origin} could not be reached: ${reasonOf(error)}.`);
  }
}

/** GATE-5: throws `ModelFailure` rather than send a key where it may not go, or a request where it is of no use. */
function authorization(
  profile: ModelProfile,
  provider: HttpProvider,
  ports: GatewayPorts,
): Record<string, string> {
  const name = keyNameOf(profile);
  const key = keyOf(profile, ports);
  if (key === undefined) {
    if (profile.baseUrl !== undefined) return {};
    throw new ModelFailure(
      "auth",
      `There is no key: set ${name}, or a base URL of a server that needs none.`,
    );
  }
  if (!mayReceiveKey(profile, ports.trustedHosts)) {
    const { origin } = baseUrlOf(profile, provider);
    throw new ModelFailure(
      "auth",
      `The key in ${name} is not sent to ${origin}: this deployment does not trust that host with this key. Name the host in models.allowedHosts or DRAMATIS_MODEL_HOSTS, the key in models.allowedSecrets or DRAMATIS_MODEL_SECRETS.`,
    );
  }
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw new ModelFailure(
      "auth",
      `The key in ${name} has characters that no header can carry. Set it anew.`,
    );
  }
  return provider.keyHeader(key);
}

async function refusal(
  { status, headers, body }: Response,
  info: ResponseInfo,
  profile: ModelProfile,
  ports: GatewayPorts,
  attempt: AttemptDeadlines,
): Promise<ModelFailure> {
  const text = body === null ? "" : await beginningOf(body, attempt.signal, MAX_ERROR_BODY, attempt);
  const said = readErrorBody(text);
  const isRedirect = status >= 300 && status < 400;
  const category = isRedirect ? "validation" : categoryOfResponse(status, said);
  const wait = retryAfterMs(headers, ports.clock.now()) ?? said.retryAfterMs;
  const message = [
    `The model server answered ${status}${said.message === undefined ? "" : `: ${said.message.replace(/\.$/, "")}`}.`,
    isRedirect
      ? `It redirects elsewhere. ${check(profile, descriptionOf(profile))}`
      : advice(category, profile, ports),
  ];
  return new ModelFailure(category, message.filter((part) => part !== "").join(" "), {
    ...detailsOf(info),
    ...defined({ retryAfterMs: wait }),
  });
}

function detailsOf({ status, requestId }: ResponseInfo) {
  return {
    ...defined({ status, requestId }),
  };
}

function advice(category: ErrorCategory, profile: ModelProfile, ports: GatewayPorts): string {
  const name = keyNameOf(profile);
  switch (category) {
    case "auth":
      return keyOf(profile, ports) === undefined
        ? `No key was sent: set ${name}.`
        : `Check the key in ${name}.`;
    case "not_found":
      return `Check the model id "${profile.modelId}". ${check(profile, descriptionOf(profile))}`;
    default:
      return "";
  }
}

function check(profile: ModelProfile, { defaultBaseUrl }: HttpProvider): string {
  return `Check the base URL ${profile.baseUrl ?? defaultBaseUrl}.`;
}
