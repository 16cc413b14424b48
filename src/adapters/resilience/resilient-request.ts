/** The request, the deltas and the options of a resilient gateway. */
import type { RequestOutcome } from "../../model/call-record.ts";
import type { RequestTrace } from "../../model/gateway.ts";
import type { ModelProfile } from "../../model/profile.ts";
import type { ModelDelta } from "../../model/reply.ts";
import type { Clock } from "../../ports/clock.ts";
import type { CallContext } from "../../shared/call-context.ts";
import type { JsonObject } from "../../shared/json.ts";
import type { GuardedGatewayOptions } from "./guarded-gateway.ts";
import type { Classifier } from "./next-step.ts";
import type { ResilienceProfile } from "./profile.ts";
import type { MetricsSink } from "./telemetry.ts";

export type ResilientDelta =
  | ModelDelta
  /** Withdraws all deltas so far: another attempt begins. */
  | { type: "reset" }
  /** The last delta. `profile` is that of the last model tried. */
  | { type: "outcome"; outcome: RequestOutcome; profile: ModelProfile };

/** One logical request. */
export interface ResilientRequest {
  /** The models to try, in order. */
  profiles: readonly [ModelProfile, ...ModelProfile[]];
  /** Builds the request in the format of the profile's provider. Throws `UNSUPPORTED` for what it cannot express. */
  body: (profile: ModelProfile) => JsonObject;
  context: CallContext;
  trace?: Omit<RequestTrace, "attempt">;
  /** Overrides the gateway's own settings, field by field. */
  resilience?: Partial<ResilienceProfile>;
  /** The caller's own deadline, in milliseconds since the epoch. */
  deadline?: number;
}

export interface ResilientGatewayOptions extends GuardedGatewayOptions {
  clock: Clock;
  /** Overrides `DEFAULT_CLIENT`, field by field. */
  resilience?: Partial<ResilienceProfile>;
  classify?: Classifier;
  metrics?: MetricsSink;
  /** The first half of span names; `dramatis` when absent. */
  client?: string;
  /** The source of jitter, from 0 to below 1; `Math.random` when absent. */
  random?: () => number;
}
