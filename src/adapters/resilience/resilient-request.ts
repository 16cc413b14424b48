import type { RequestOutcome } from "../../model/call-record.ts";
import type { RequestTrace } from "../../model/gateway.ts";
import type { ModelProfile } from "../../model/profile.ts";
import type { ModelDelta } from "../../model/reply.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Ids } from "../../ports/ids.ts";
import type { CallContext } from "../../shared/identifiers.ts";
import type { JsonObject } from "../../shared/json.ts";
import type { Classifier } from "./classify.ts";
import type { HostGuards } from "./host-guards.ts";
import type { Interceptor } from "./interceptors.ts";
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
  context: CallContext;
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
