/** One attempt of a model call, behind everything that guards it. */

import type { ModelError } from "../../model/error.ts";
import type { ModelGateway, ModelRequest } from "../../model/gateway.ts";
import type { ModelDelta } from "../../model/reply.ts";
import { race } from "../../ports/deadline.ts";
import { modelError } from "../errors/model-errors.ts";
import { thrownError } from "../errors/thrown.ts";
import { TIMEOUTS } from "../gateway/deadlines.ts";
import { callEndOf, type HostGuards, type Pass } from "./host-guards.ts";
import { afterAttempt, beforeSend, type CompletedAttempt, type Interceptor } from "./interceptors.ts";
import type { RequestInfo } from "./request-info.ts";

export interface AttemptInput {
  gateway: ModelGateway;
  /** Absent = nothing guards the hosts. */
  guards?: HostGuards;
  interceptors: readonly Interceptor[];
  request: ModelRequest;
  info: RequestInfo;
}

export interface AttemptEnd {
  /** Something reached the gateway. */
  sent: boolean;
  /** An interceptor stopped the request: it is not to be tried in any way. */
  stopped: boolean;
}

/** Longer than any attempt: only a slot whose holder is gone is held for so long after its time is up. */
const LEASE_MARGIN_MS = 60_000;

/** Yields the reply's deltas. Never throws: a failure is one `error` delta, the last. */
export async function* runAttempt(
  { gateway, guards, interceptors, request: given, info }: AttemptInput,
  signal: AbortSignal,
): AsyncGenerator<ModelDelta, AttemptEnd> {
  const { provider } = given.profile;
  const end: AttemptEnd = { sent: false, stopped: false };
  const reply: Partial<CompletedAttempt> & Pick<CompletedAttempt, "response"> = { response: {} };
  // What holds where whoever reads the reply leaves before its end.
  let error: ModelError | undefined = modelError(provider, "canceled", "The model call was cancelled.");
  let pass: Pass | undefined;
  try {
    const prepared = await race(() => beforeSend(interceptors, given, info), signal);
    if ("stopped" in prepared) {
      end.stopped = true;
      error = prepared.stopped;
    } else {
      const { request } = prepared;
      pass = await guards?.enter(request.profile, leaseOf(request), signal);
      end.sent = true;
      let failure: ModelError | undefined;
      for await (const delta of gateway.stream(request, signal)) {
        if (delta.type === "error") failure = delta.error;
        if (failure !== undefined) break;
        if (delta.type === "response") reply.response = delta.response;
        if (delta.type === "usage") reply.usage = { ...reply.usage, ...delta.usage };
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
  return modelError(profile.provider, "transient", "The reply ended before it was complete.");
}

function leaseOf({ profile: { executionConfig } }: ModelRequest): number {
  return (executionConfig?.timeoutMs ?? TIMEOUTS.timeoutMs) + LEASE_MARGIN_MS;
}
