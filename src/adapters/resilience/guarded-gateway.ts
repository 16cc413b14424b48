/** A gateway behind breakers, limits and interceptors: still one attempt a call, for whoever owns the attempts. */

import type { ModelGateway, ModelRequest } from "../../model/gateway.ts";
import type { ModelDelta } from "../../model/reply.ts";
import type { Ids } from "../../ports/ids.ts";
import { runAttempt } from "./attempt.ts";
import type { HostGuards } from "./host-guards.ts";
import type { Interceptor } from "./interceptors.ts";
import { requestInfo } from "./request-info.ts";

export interface GuardedGatewayOptions {
  guards?: HostGuards;
  interceptors?: readonly Interceptor[];
  /** Ids of requests that have none. */
  ids: Ids;
}

/** @example guardGateway(createModelGateway(ports), { guards: new HostGuards(clock), ids }) */
export function guardGateway(
  gateway: ModelGateway,
  { guards, interceptors = [], ids }: GuardedGatewayOptions,
): ModelGateway {
  async function* stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelDelta, void> {
    const info = requestInfo(request, request.trace?.requestId ?? ids.ulid());
    const guarded = guards === undefined ? {} : { guards };
    yield* runAttempt({ gateway, interceptors, request, info, ...guarded }, signal);
  }
  return { stream };
}
