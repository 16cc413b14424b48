/**
 * What an application does around every attempt of a model call.
 *
 * RESIL-4  `beforeSend` runs in the order of registration, once per attempt. One that throws stops the request: nothing is
 *          sent, and it is not tried again. One that hangs is waited for as long as the attempt may take.
 * RESIL-5  `afterResponse` and `onError` run in the reverse order, exactly one of them per attempt. What they throw is
 *          logged and changes nothing.
 */

import type { ModelError } from "../../model/error.ts";
import type { ModelRequest } from "../../model/gateway.ts";
import type { FinishReason, ResponseInfo } from "../../model/reply.ts";
import type { TokenUsage } from "../../model/usage.ts";
import { DramatisError } from "../../shared/errors.ts";
import { modelError } from "../errors/model-errors.ts";
import type { RequestInfo } from "./request-info.ts";

/** A reply that came to its end. */
export interface CompletedAttempt {
  response: ResponseInfo;
  finishReason: FinishReason;
  usage?: TokenUsage;
}

export interface Interceptor {
  /** May return another request, which then goes out. Throw a `DramatisError` to say why nothing may. */
  beforeSend?(
    request: ModelRequest,
    info: RequestInfo,
  ): ModelRequest | undefined | Promise<ModelRequest | undefined>;
  /** After an attempt whose reply is complete. */
  afterResponse?(reply: CompletedAttempt, info: RequestInfo): void | Promise<void>;
  /** After an attempt that failed, was cancelled or was stopped. */
  onError?(error: ModelError, info: RequestInfo): void | Promise<void>;
}

/** The request as the interceptors leave it, or why it is stopped. */
export async function beforeSend(
  interceptors: readonly Interceptor[],
  request: ModelRequest,
  info: RequestInfo,
): Promise<{ request: ModelRequest } | { stopped: ModelError }> {
  let current = request;
  try {
    for (const interceptor of interceptors)
      current = (await interceptor.beforeSend?.(current, info)) ?? current;
    return { request: current };
  } catch (error) {
    if (!(error instanceof DramatisError)) console.error(error);
    const why = error instanceof DramatisError ? error.message : "An interceptor failed.";
    return { stopped: modelError(current.profile.provider, "validation", `The request was stopped: ${why}`) };
  }
}

/** Tells the interceptors, the last first, how an attempt ended. */
export async function afterAttempt(
  interceptors: readonly Interceptor[],
  end: CompletedAttempt | ModelError,
  info: RequestInfo,
): Promise<void> {
  for (const interceptor of interceptors.toReversed()) {
    try {
      if ("category" in end) await interceptor.onError?.(end, info);
      else await interceptor.afterResponse?.(end, info);
    } catch (error) {
      console.error(error);
    }
  }
}
