/**
 * The gateway: sends one request to its provider and yields the deltas of the reply, starting with `response`.
 *
 * GATE-1  The gateway makes one attempt and never throws. A failure is one `error` delta at the end.
 * GATE-2  A reply is complete once its finish reason has arrived, even if the connection fails afterwards.
 * GATE-3  Error deltas and response deltas never contain the sent key.
 * GATE-4  A model profile reaches only secrets with the name of a key, so it cannot send out other secrets.
 * GATE-5  A key is sent only to hosts that the deployer trusts (TRUST-1). For any other host no request is sent.
 * GATE-6  Every body is sent with well-formed texts (UNICODE-1).
 */
import type { ModelError } from "../../model/error.ts";
import type { StreamDecoder } from "../../model/format-adapter.ts";
import type { ModelGateway, ModelRequest } from "../../model/gateway.ts";
import type { ModelProfile, ProviderId } from "../../model/profile.ts";
import type { ModelDelta } from "../../model/reply.ts";
import { defined } from "../../shared/defined.ts";
import { wellFormed } from "../../shared/json.ts";
import { redactSecrets } from "../../shared/redact.ts";
import { fingerprint } from "../../shared/text.ts";
import { ModelFailure, thrownError } from "../errors/model-errors.ts";
import { adapterFor } from "../formats/lookup.ts";
import { offlineModel } from "../formats/offline/model.ts";
import { aiSdkTransport } from "./ai-sdk.ts";
import { AttemptDeadlines } from "./deadlines.ts";
import { httpTransport, keyOf } from "./http.ts";
import { httpProvider } from "./http-providers.ts";
import type { GatewayPorts, Transport } from "./ports.ts";
import { isKeyName } from "./trusted-hosts.ts";
import { workersAITransport } from "./workers-ai.ts";

/**
 * Creates a gateway to all providers.
 *
 * @example createModelGateway({ secret: secretsOf(env), fetch, clock, ai: env.AI })
 */
export function createModelGateway(ports: GatewayPorts): ModelGateway {
  return {
    stream: (request, signal) => streamReply(request, ports, signal),
    accountOf: (profile) => accountOf(profile, ports),
    streamsMedia: ({ provider }) => httpProvider(provider) !== undefined,
  };
}

/** Returns a fingerprint of the key for requests of this profile, if it has a key. */
function accountOf(profile: ModelProfile, ports: Pick<GatewayPorts, "secret">): string | undefined {
  const key = keyOf(profile, ports);
  return key === undefined ? undefined : fingerprint(key);
}

/** Reads secrets of a Worker's environment. Only names that end in `_KEY` or `_TOKEN` are readable. */
export function secretsOf(env: object): GatewayPorts["secret"] {
  const values: ReadonlyMap<string, unknown> = new Map(Object.entries(env));
  return (name) => {
    const value = isKeyName(name) ? values.get(name) : undefined;
    return typeof value === "string" && value !== "" ? value : undefined;
  };
}

async function* streamReply(
  given: ModelRequest,
  ports: GatewayPorts,
  signal: AbortSignal,
): AsyncGenerator<ModelDelta> {
  const request: ModelRequest = { ...given, body: wellFormed(given.body) };
  const { provider } = request.profile;
  let decoder: StreamDecoder | undefined;
  let failure: ModelError | undefined;
  const attempt = new AttemptDeadlines(ports.clock, request.profile.executionConfig, signal);
  try {
    attempt.signal.throwIfAborted();
    checkMedia(request);
    for await (const arrival of transportOf(provider)(request, ports, attempt)) {
      attempt.signal.throwIfAborted();
      if ("response" in arrival) {
        yield redacted({ type: "response", response: arrival.response }, request, ports);
        continue;
      }
      decoder ??= adapterFor(provider).decoder();
      const { payloads } = arrival;
      for await (const batch of Array.isArray(payloads) ? [payloads] : payloads) {
        for (const payload of batch) {
          for (const delta of decoder.push(payload)) {
            attempt.signal.throwIfAborted();
            yield redacted(delta, request, ports);
            if (delta.type === "error") return;
          }
        }
      }
    }
    decoder ??= adapterFor(provider).decoder();
  } catch (error) {
    failure = withHost(thrownError(error, provider, attempt.signal), request.profile);
  } finally {
    attempt.stop();
  }
  const tail = decoder?.end() ?? [];
  const isComplete = decoder !== undefined && tail.every((delta) => delta.type !== "error");
  const last: ModelDelta[] = failure === undefined || isComplete ? tail : [{ type: "error", error: failure }];
  for (const delta of last) yield redacted(delta, request, ports);
}

/** Runs the offline model at the pace that the request sets. */
const offlineTransport: Transport = async function* ({ body }, { clock }, attempt) {
  yield { response: {} };
  for await (const data of offlineModel(body, (milliseconds) => clock.sleep(milliseconds, attempt.signal))) {
    attempt.received();
    yield { payloads: [data] };
  }
};

function transportOf(provider: ProviderId): Transport {
  if (httpProvider(provider) !== undefined) return httpTransport;
  switch (provider) {
    case "workers-ai":
      return workersAITransport;
    case "ai-sdk":
      return aiSdkTransport;
    case "offline":
      return offlineTransport;
    default:
      throw new ModelFailure("validation", `There is no transport for the provider "${provider}".`);
  }
}

/** Throws `ModelFailure` for media that the transport would not read: an interceptor chose another provider. */
function checkMedia({ profile: { provider }, media }: ModelRequest): void {
  if (media === undefined || media.size === 0 || httpProvider(provider) !== undefined) return;
  throw new ModelFailure("validation", `The provider "${provider}" accepts media only inline in the body.`);
}

/** Names the host of a silent server: its base URL may be wrong. */
function withHost(error: ModelError, { provider, baseUrl }: ModelProfile): ModelError {
  const address = baseUrl ?? httpProvider(provider)?.defaultBaseUrl ?? "";
  if (error.category !== "timeout" || !URL.canParse(address)) return error;
  return { ...error, message: `${error.message} Its server is ${new URL(address).origin}.` };
}

/** Removes the key of a request from everything that the provider reported (GATE-3). */
function redacted(delta: ModelDelta, { profile }: ModelRequest, ports: GatewayPorts): ModelDelta {
  if (delta.type !== "error" && delta.type !== "response") return delta;
  const key = keyOf(profile, ports);
  const clean = (text: string) => redactSecrets(text, key === undefined ? [] : [key]);
  if (delta.type === "error") {
    const { requestId, ...error } = delta.error;
    const id = defined({ requestId: requestId && clean(requestId) });
    return { type: "error", error: { ...error, message: clean(error.message), ...id } };
  }
  const { requestId, rateLimit, ...response } = delta.response;
  const headers = Object.entries(rateLimit?.rawHeaders ?? {}).map(([name, value]) => [name, clean(value)]);
  const known = {
    requestId: requestId && clean(requestId),
    rateLimit: rateLimit && { ...rateLimit, rawHeaders: Object.fromEntries(headers) },
  };
  return { type: "response", response: { ...response, ...defined(known) } };
}
