/**
 * A gateway that owns its attempts: it tries again, asks the next model, and says once what became of it all. For callers
 * whose attempts need not survive a crash; a conversation keeps its own.
 *
 * RESIL-7  A request ends with one outcome, whatever became of it: the last delta, unless whoever reads leaves before.
 * RESIL-8  Text that streamed before an attempt failed is taken back by a `reset` before anything else follows.
 * RESIL-9  Once the caller has left or its signal has aborted, nothing is tried any more: the request is canceled.
 */
import type { RequestOutcome } from "../../model/call-record.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Ids } from "../../ports/ids.ts";
import type { JsonObject } from "../../shared/json.ts";
import type { ModelGateway, RequestTrace } from "../../model/gateway.ts";
import type { ExecutionContext } from "../../shared/execution-context.ts";
import type { ModelDelta } from "../../model/reply.ts";
import type { ModelProfile } from "../../model/profile.ts";
import type { Classifier } from "./classify.ts";
import type { HostGuards } from "./host-guards.ts";
import type { Interceptor } from "./interceptors.ts";
import { LogicalCall } from "./logical-call.ts";
import type { MetricsSink } from "./metrics.ts";
import type { ResilienceProfile } from "./profile.ts";

export type ResilientDelta =
  | ModelDelta
  /** Everything since the request began is void: another attempt begins. */
  | { type: "reset" }
  /** The last one. `profile` is that of the model that was asked last. */
  | { type: "outcome"; outcome: RequestOutcome; profile: ModelProfile };

/** One logical request. */
export interface ResilientRequest {
  /** Who may answer: the next is asked when one has failed for good. */
  profiles: readonly [ModelProfile, ...ModelProfile[]];
  /** The request in the format of the profile's provider. Throw `UNSUPPORTED` for what it cannot express. */
  body: (profile: ModelProfile) => JsonObject;
  context: ExecutionContext;
  trace?: Omit<RequestTrace, "attempt">;
  /** Over the gateway's own, field by field. */
  resilience?: Partial<ResilienceProfile>;
  /** The caller's own deadline, in milliseconds since the epoch. */
  deadline?: number;
}

export interface ResilientGatewayOptions {
  clock: Clock;
  /** Ids of requests that have none. */
  ids: Ids;
  /** Over `DEFAULT_CLIENT`, field by field. */
  resilience?: Partial<ResilienceProfile>;
  /** Absent = nothing guards the hosts. */
  guards?: HostGuards;
  interceptors?: readonly Interceptor[];
  classify?: Classifier;
  metrics?: MetricsSink;
  /** The first half of span names; `dramatis` when absent. */
  client?: string;
  /** From 0 to below 1, for the jitter. */
  random?: () => number;
}

export interface ResilientGateway {
  /** Never throws; a request that failed ends with one `error` delta before its outcome. */
  stream(request: ResilientRequest, signal: AbortSignal): AsyncIterable<ResilientDelta>;
}

/**
 * `gateway` makes one attempt a call, as `createModelGateway` does.
 * @example createResilientGateway(createModelGateway(ports), { clock, ids, guards })
 */
export function createResilientGateway(
  gateway: ModelGateway,
  options: ResilientGatewayOptions,
): ResilientGateway {
  return { stream: (request, signal) => new LogicalCall(gateway, options, request, signal).run() };
}
