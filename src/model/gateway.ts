/** The I/O half of a model provider: posts a request, yields the deltas of the reply. */

import type { CallContext } from "../shared/identifiers.ts";
import type { JsonObject } from "../shared/json.ts";
import type { ModelProfile } from "./profile.ts";
import type { ModelDelta } from "./reply.ts";

/** One call of a model: a provider-native request and where it goes. */
export interface ModelRequest {
  profile: ModelProfile;
  /** The provider's own body, as built by the format adapter or by a context hook. */
  body: JsonObject;
  /** Who is calling, for correlation; reaches no provider. */
  context: CallContext;
  /** What telemetry and policies are told beside that; reaches no provider. */
  trace?: RequestTrace;
}

/** What is known of a request beside where it comes from. */
export interface RequestTrace {
  /** The same for all attempts of one logical request; made up where it is absent. */
  requestId?: string;
  /** That of the turn before, or of the caller of a delegated call. */
  parentCorrelationId?: string;
  /** From 1; 1 when absent. */
  attempt?: number;
  /** `interactive` when absent. */
  requestClass?: "interactive" | "background" | "batch";
  metadata?: Record<string, unknown>;
}

/**
 * The I/O half. One attempt: no retries here, the caller owns them, because an attempt is durable there.
 * Failures before or inside the stream come as one `error` delta, never as a throw; aborting gives category `canceled`
 * (or `timeout`, when the signal's reason is a `TimeoutError`).
 */
export interface ModelGateway {
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelDelta>;
}
