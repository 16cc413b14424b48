/** The I/O half of a model provider: sends a request and yields the deltas of the reply. */
import type { CallContext } from "../shared/identifiers.ts";
import type { JsonObject } from "../shared/json.ts";
import type { RequestClass } from "./correlation.ts";
import type { ModelProfile } from "./profile.ts";
import type { ModelDelta } from "./reply.ts";

/** One model call: a provider-native request and its destination. */
export interface ModelRequest {
  profile: ModelProfile;
  /** The provider's own body, built by a format adapter or a context hook. */
  body: JsonObject;
  /**
   * Media that the body only names, by placeholder. A placeholder consists of ASCII letters, digits and `_`, and represents the media in
   * base64 in strings of the body. Only for gateways that stream media.
   */
  media?: ReadonlyMap<string, DeferredMedia>;
  /** The caller, for correlation. It reaches no provider. */
  context: CallContext;
  /** Further data for telemetry and policies. It reaches no provider. */
  trace?: RequestTrace;
}

/** Media that are read while their request is sent. */
export interface DeferredMedia {
  /** Bytes. */
  size: number;
  /** Reads `length` bytes from `offset`. Rejects if they cannot be read, or are no longer the same. */
  read(offset: number, length: number): Promise<Uint8Array>;
  /** Called when the connection has taken the last piece. */
  sent?(): void;
}

/** Data about a request, for telemetry and policies. */
export interface RequestTrace {
  /** The same for all attempts of one logical request. Default: generated. */
  requestId?: string;
  /** The run id of the previous turn, or of the caller of a delegated call. */
  parentCorrelationId?: string;
  /** From 1. Default: 1. */
  attempt?: number;
  /** Default: `interactive`. */
  requestClass?: RequestClass;
  metadata?: Record<string, unknown>;
}

/** Calls models. */
export interface ModelGateway {
  /**
   * Makes one attempt. The caller owns retries, because its attempts may be durable. Never throws: a failure is one `error`
   * delta. An abort gives the category `canceled`, or `timeout` if the signal's reason is a `TimeoutError`.
   */
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelDelta>;
  /**
   * Identifies the account that a profile's calls use, by a fingerprint of its key, never by the key itself. Each account
   * has breakers of its own.
   */
  accountOf?(profile: ModelProfile): string | undefined;
  /** Reports whether requests of this profile may have `media`. Without it, bodies contain all media. */
  streamsMedia?(profile: ModelProfile): boolean;
}
