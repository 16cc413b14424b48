/**
 * Runs the application's code around each attempt of a model call.
 *
 * RESIL-4  `beforeSend` runs in order of registration, once per attempt. If an interceptor throws, the request is not sent and not retried.
 *          A slow interceptor counts against the attempt's time limit.
 * RESIL-5  `afterResponse` and `onError` run in reverse order, exactly one of them per attempt. Their errors are logged and otherwise
 *          ignored.
 */
import type { ModelError } from "../../model/error.ts";
import type { ModelRequest } from "../../model/gateway.ts";
import type { FinishReason, ResponseInfo } from "../../model/reply.ts";
import type { TokenUsage } from "../../model/usage.ts";
import { DramatisError } from "../../shared/errors.ts";
import { modelError } from "../errors/model-errors.ts";
import type { RequestInfo } from "./telemetry.ts";

/** A complete reply. */
export interface CompletedAttempt {
  response: ResponseInfo;
  finishReason: FinishReason;
  usage?: TokenUsage;
}

/**
 * Code of the application around each attempt.
 *
 * @example const log: Interceptor = { onError: ({ category }, { attempt }) => console.warn(attempt, category) };
 */
export interface Interceptor {
  /** May return another request to send instead. Throw a `DramatisError` to stop the request with a reason. */
  beforeSend?(
    request: ModelRequest,
    info: RequestInfo,
  ): ModelRequest | undefined | Promise<ModelRequest | undefined>;
  /** Runs after an attempt with a complete reply. */
  afterResponse?(reply: CompletedAttempt, info: RequestInfo): void | Promise<void>;
  /** Runs after an attempt that failed, was cancelled or was stopped. */
  onError?(error: ModelError, info: RequestInfo): void | Promise<void>;
}

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

/** Reports the end of an attempt to the interceptors in reverse order. */
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
