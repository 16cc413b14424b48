/** Posts requests to providers over HTTP. `http-providers.ts` holds the differences between them. */
import type { ErrorCategory } from "../../model/error.ts";
import type { ModelRequest } from "../../model/gateway.ts";
import type { ModelProfile } from "../../model/profile.ts";
import type { ResponseInfo } from "../../model/reply.ts";
import { race } from "../../ports/deadline.ts";
import { defined } from "../../shared/defined.ts";
import {
  categoryOfResponse,
  type FailureDetails,
  ModelFailure,
  readErrorBody,
} from "../errors/model-errors.ts";
import { responseInfo, retryAfterMs } from "../errors/response-info.ts";
import { eventData, MAX_REPLY_BYTES } from "./events.ts";
import { baseUrlOf, type HttpCall, type HttpProvider, httpProvider } from "./http-providers.ts";
import type { Arrival, AttemptWatch, GatewayPorts, Transport } from "./ports.ts";
import { type RequestBody, requestBody } from "./request-body.ts";
import { readBeginning, readText, reasonOf } from "./stream-reader.ts";
import { keyNameOf, mayReceiveKey } from "./trusted-hosts.ts";

/** Maximum length of an error body that is read, in characters. */
const MAX_ERROR_BODY = 16 * 1024;

interface Call extends ModelRequest {
  provider: HttpProvider;
  ports: GatewayPorts;
  attempt: AttemptWatch;
}

export const httpTransport: Transport = async function* (request, ports, attempt) {
  const provider = httpProvider(request.profile.provider);
  if (provider === undefined) {
    throw new ModelFailure(
      "validation",
      `The provider "${request.profile.provider}" is not reached over HTTP.`,
    );
  }
  yield* postTo(provider, request, ports, attempt);
};

/** Posts a request as this description of its provider says. */
export async function* postTo(
  provider: HttpProvider,
  request: ModelRequest,
  ports: GatewayPorts,
  attempt: AttemptWatch,
): AsyncGenerator<Arrival> {
  const call: Call = { ...request, provider, ports, attempt };
  const { body, ...target } = provider.call(call);
  const outgoing = requestBody({ ...call, body }, { onReading: (isReading) => attempt.reading(isReading) });
  try {
    yield* exchange(call, target, outgoing);
  } finally {
    outgoing.stop();
  }
}

type Target = Omit<HttpCall, "body">;

async function* exchange(call: Call, target: Target, outgoing: RequestBody): AsyncGenerator<Arrival> {
  const { ports, attempt } = call;
  const response = await post(call, target, outgoing);
  const { headers, body } = response;
  const info = responseInfo(response.status, headers, ports.clock.now());
  yield { response: info };
  if (!response.ok) throw await refusal(call, response, info);
  if (body === null) return;
  const type = headers.get("content-type") ?? "";
  if (/[/+]json\b/i.test(type)) {
    yield { payloads: [await readText(body, attempt, MAX_REPLY_BYTES)] };
  } else if (/^text\/html\b/i.test(type)) {
    await body.cancel();
    const message = `The base URL leads to a web page, not to a model. ${checkBaseUrl(call)}`;
    throw new ModelFailure("validation", message, detailsOf(info));
  } else {
    yield { payloads: eventData(body, attempt) };
  }
}

export function keyOf(profile: ModelProfile, { secret }: Pick<GatewayPorts, "secret">): string | undefined {
  const name = keyNameOf(profile);
  return name === undefined ? undefined : secret(name)?.trim() || undefined;
}

async function post(call: Call, { path, headers }: Target, outgoing: RequestBody): Promise<Response> {
  const { profile, provider, ports, attempt } = call;
  const { href, origin } = baseUrlOf(profile, provider);
  const init: RequestInit = {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "text/event-stream, application/json",
      ...headers,
      ...outgoing.headers,
      ...authorization(call),
    },
    ...outgoing.init,
    signal: attempt.signal,
    // A redirect could carry the key to another host.
    redirect: "manual",
  };
  // Called without a receiver: the platform's `fetch` fails as a method of another object.
  const { fetch } = ports;
  const send = async () => fetch(href.replace(/\/+$/, "") + path, init);
  try {
    // A replaced `fetch` may ignore its signal.
    return await race(send, attempt.signal, (late) => late.body?.cancel());
  } catch (error) {
    attempt.signal.throwIfAborted();
    throw new ModelFailure("network", `The model server ${origin} could not be reached: ${reasonOf(error)}.`);
  }
}

/** Returns the header with the key. Throws `ModelFailure` if a key is missing, invalid, or not trusted (GATE-5). */
function authorization({ profile, provider, ports }: Call): Record<string, string> {
  const name = keyNameOf(profile);
  const key = keyOf(profile, ports);
  if (key === undefined) {
    if (profile.baseUrl !== undefined) return {};
    throw new ModelFailure(
      "auth",
      `The API key is missing. Set ${name}, or the base URL of a server that needs no key.`,
    );
  }
  if (!mayReceiveKey(profile, ports.trustedHosts)) {
    const { origin } = baseUrlOf(profile, provider);
    throw new ModelFailure(
      "auth",
      `The key in ${name} is not sent to ${origin}: this deployment does not trust that host with this key. Add the host to models.allowedHosts or DRAMATIS_MODEL_HOSTS, and the key to models.allowedSecrets or DRAMATIS_MODEL_SECRETS.`,
    );
  }
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw new ModelFailure(
      "auth",
      `The key in ${name} has characters that are invalid in a header: correct it.`,
    );
  }
  return provider.keyHeader(key);
}

async function refusal(
  call: Call,
  { status, headers, body }: Response,
  info: ResponseInfo,
): Promise<ModelFailure> {
  const reported = readErrorBody(
    body === null ? "" : await readBeginning(body, call.attempt, MAX_ERROR_BODY),
  );
  const isRedirect = status >= 300 && status < 400;
  const category = isRedirect ? "validation" : categoryOfResponse(status, reported);
  const wait = retryAfterMs(headers, call.ports.clock.now()) ?? reported.retryAfterMs;
  const detail = reported.message === undefined ? "" : `: ${reported.message.replace(/\.$/, "")}`;
  const advice = isRedirect
    ? `It redirects to another address. ${checkBaseUrl(call)}`
    : adviceOn(category, call);
  const { origin } = baseUrlOf(call.profile, call.provider);
  const message = `The model server ${origin} answered ${status}${detail}. ${advice}`.trimEnd();
  return new ModelFailure(category, message, { ...detailsOf(info), ...defined({ retryAfterMs: wait }) });
}

function detailsOf({ status, requestId }: ResponseInfo): FailureDetails {
  return defined({ status, requestId });
}

function adviceOn(category: ErrorCategory, call: Call): string {
  const { profile, ports } = call;
  const name = keyNameOf(profile);
  switch (category) {
    case "auth":
      return keyOf(profile, ports) === undefined
        ? `No key was sent: set ${name}.`
        : `Check the key in ${name}.`;
    case "not_found":
      return `Check the model id "${profile.modelId}". ${checkBaseUrl(call)}`;
    default:
      return "";
  }
}

function checkBaseUrl({ profile, provider }: Call): string {
  return `Check the base URL ${profile.baseUrl ?? provider.defaultBaseUrl}.`;
}
