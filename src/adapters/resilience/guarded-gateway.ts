/** Runs one attempt of a model call behind breakers, limits and interceptors. The caller owns the retries. */
import type { ModelError } from "../../model/error.ts";
import type { ModelGateway, ModelRequest } from "../../model/gateway.ts";
import type { ModelProfile } from "../../model/profile.ts";
import type { ModelDelta } from "../../model/reply.ts";
import { race } from "../../ports/deadline.ts";
import type { Ids } from "../../ports/ids.ts";
import { incompleteReply, modelError, thrownError } from "../errors/model-errors.ts";
import { TIMEOUTS } from "../gateway/deadlines.ts";
import { callEndOf, type HostGuards, type Pass } from "./host-guards.ts";
import { afterAttempt, beforeSend, type CompletedAttempt, type Interceptor } from "./interceptors.ts";
import { requestInfo } from "./telemetry.ts";

export interface GuardedGatewayOptions {
  /** Without guards there are no breakers and no limits. */
  guards?: HostGuards;
  interceptors?: readonly Interceptor[];
  /** Generates the ids of requests without one. */
  ids: Ids;
}

/**
 * Wraps a gateway in breakers, limits and interceptors.
 *
 * @example guardGateway(createModelGateway(ports), { guards: new HostGuards(clock), ids })
 */
export function guardGateway(
  gateway: ModelGateway,
  { ids, ...guarding }: GuardedGatewayOptions,
): ModelGateway {
  async function* stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelDelta, void> {
    yield* runAttempt(gateway, guarding, request, request.trace?.requestId ?? ids.ulid(), signal);
  }
  return { stream, streamsMedia: (profile) => gateway.streamsMedia?.(profile) ?? false };
}

export interface AttemptEnd {
  /** The request reached the gateway. */
  sent: boolean;
  /** An interceptor stopped the request: it must not be retried or passed to another model. */
  stopped: boolean;
}

/** Added to the time limit of an attempt, so that only the slot of a lost caller outlives its lease. Milliseconds. */
const LEASE_MARGIN_MS = 60_000;

/** Yields the deltas of the reply. Never throws. A failure is one `error` delta at the end. */
export async function* runAttempt(
  gateway: ModelGateway,
  { guards, interceptors = [] }: Omit<GuardedGatewayOptions, "ids">,
  given: ModelRequest,
  requestId: string,
  signal: AbortSignal,
): AsyncGenerator<ModelDelta, AttemptEnd> {
  const { provider } = given.profile;
  const info = requestInfo(given, requestId);
  const end: AttemptEnd = { sent: false, stopped: false };
  const reply: Partial<CompletedAttempt> & Pick<CompletedAttempt, "response"> = { response: {} };
  // Applies if the consumer leaves before the end.
  let error: ModelError | undefined = modelError(provider, "canceled", "The model call was cancelled.");
  let pass: Pass | undefined;
  try {
    const prepared = await race(() => beforeSend(interceptors, given, info), signal);
    if ("stopped" in prepared) {
      end.stopped = true;
      error = prepared.stopped;
    } else {
      const { request } = prepared;
      const account = gateway.accountOf?.(request.profile);
      const { tenant } = given.context;
      pass = await guards?.enter(request.profile, {
        tenant,
        leaseMs: leaseOf(request.profile),
        account,
        signal,
      });
      end.sent = true;
      let failure: ModelError | undefined;
      for await (const delta of gateway.stream(request, signal)) {
        if (delta.type === "error") failure = delta.error;
        if (failure !== undefined) break;
        if (delta.type === "response") reply.response = delta.response;
        if (delta.type === "usage") reply.usage = delta.usage;
        if (delta.type === "finish") reply.finishReason = delta.reason;
        if (reply.finishReason !== undefined) error = undefined;
        yield delta;
      }
      error = failure ?? incomplete(reply, request);
    }
  } catch (thrown) {
    error = thrownError(thrown, provider, signal);
  } finally {
    pass?.leave(callEndOf(error));
    await afterAttempt(
      interceptors,
      error ?? { ...reply, finishReason: reply.finishReason ?? "other" },
      info,
    );
  }
  if (error !== undefined) yield { type: "error", error };
  return end;
}

function incomplete(reply: Partial<CompletedAttempt>, { profile }: ModelRequest): ModelError | undefined {
  if (reply.finishReason !== undefined) return undefined;
  return incompleteReply(profile.provider);
}

/** Returns how long an attempt may hold its units, in milliseconds. */
export function leaseOf({ executionConfig }: Pick<ModelProfile, "executionConfig">): number {
  return (executionConfig?.timeoutMs ?? TIMEOUTS.timeoutMs) + LEASE_MARGIN_MS;
}
