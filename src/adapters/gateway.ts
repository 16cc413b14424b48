/**
 * The gateway: sends one request to its provider and yields the deltas of the reply.
 *
 * GATE-1  One attempt, and it never throws: a failure is one `error` delta, and that is the last delta.
 * GATE-2  A reply whose finish reason arrived is complete, whatever happens to the connection afterwards.
 * GATE-3  No error delta contains the key that was sent.
 * GATE-4  A model profile reaches only secrets that are named like keys, so it cannot send out another one.
 */
import { DramatisError } from "../shared/errors.ts";
import { ModelFailure, modelError } from "./errors.ts";
import { aiSdkTransport } from "./gateway/ai-sdk.ts";
import { offlineTransport } from "./gateway/offline.ts";
import { openaiKey, openaiTransport } from "./gateway/openai.ts";
import type { GatewayPorts, Transport } from "./gateway/ports.ts";
import { workersAITransport } from "./gateway/workers-ai.ts";
import { adapterFor } from "./lookup.ts";
import { redactSecrets } from "./redact.ts";
import type {
  ModelDelta,
  ModelError,
  ModelGateway,
  ModelRequest,
  ProviderId,
  StreamDecoder,
} from "./types.ts";

/**
 * The gateway over its ports.
 * @example createModelGateway({ secret: secretsOf(env), fetch, clock, ai: env.AI })
 */
export function createModelGateway(ports: GatewayPorts): ModelGateway {
  return { stream: (request, signal) => streamReply(request, ports, signal) };
}

/** Secrets of a Worker's environment whose name ends in `_KEY` or `_TOKEN`; every other name is as if it were not set. */
export function secretsOf(env: object): GatewayPorts["secret"] {
  const values: ReadonlyMap<string, unknown> = new Map(Object.entries(env));
  return (name) => {
    const value = /_(?:KEY|TOKEN)$/.test(name) ? values.get(name) : undefined;
    return typeof value === "string" && value !== "" ? value : undefined;
  };
}

async function* streamReply(
  request: ModelRequest,
  ports: GatewayPorts,
  signal: AbortSignal,
): AsyncGenerator<ModelDelta> {
  const { provider } = request.profile;
  let decoder: StreamDecoder | undefined;
  let failure: ModelError | undefined;
  try {
    decoder = adapterFor(provider).decoder();
    signal.throwIfAborted();
    for await (const payload of transportOf(provider)(request, ports, signal)) {
      signal.throwIfAborted();
      for (const delta of decoder.push(payload)) {
        yield redacted(delta, request, ports);
        if (delta.type === "error") return;
      }
    }
  } catch (error) {
    failure = describe(error, provider, signal);
  }
  const tail = decoder?.end() ?? [];
  const isComplete = decoder !== undefined && tail.every((delta) => delta.type !== "error");
  const last: ModelDelta[] = failure === undefined || isComplete ? tail : [{ type: "error", error: failure }];
  for (const delta of last) yield redacted(delta, request, ports);
}

function transportOf(provider: ProviderId): Transport {
  switch (provider) {
    case "openai":
      return openaiTransport;
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

function describe(error: unknown, provider: ProviderId, signal: AbortSignal): ModelError {
  if (signal.aborted) {
    const isTimeout = nameOf(signal.reason) === "TimeoutError";
    return isTimeout
      ? modelError(provider, "timeout", "The model took too long to answer.")
      : modelError(provider, "canceled", "The model call was cancelled.");
  }
  if (error instanceof ModelFailure) {
    return modelError(provider, error.category, error.message, error.details);
  }
  if (error instanceof DramatisError) return modelError(provider, "validation", error.message);
  // Nothing that the transports expect: logged here with its stack, told to nobody.
  console.error(error);
  return modelError(provider, "unknown", "The model call failed unexpectedly.");
}

function nameOf(reason: unknown): unknown {
  return typeof reason === "object" && reason !== null && "name" in reason ? reason.name : undefined;
}

function redacted(delta: ModelDelta, { profile }: ModelRequest, ports: GatewayPorts): ModelDelta {
  if (delta.type !== "error") return delta;
  const key = openaiKey(profile, ports);
  const message = redactSecrets(delta.error.message, key === undefined ? [] : [key]);
  return { type: "error", error: { ...delta.error, message } };
}
