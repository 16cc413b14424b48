/** The failure of a model call as data. */
import type { ProviderId } from "./profile.ts";

/** The classes of failure (§3.4): they decide whether a call is tried again. */
export type ErrorCategory =
  | "auth"
  | "validation"
  | "not_found"
  | "quota"
  | "rate_limit"
  | "timeout"
  | "transient"
  | "network"
  | "canceled"
  | "safety"
  | "unknown";

/** A failed model call as data. `message` never holds a secret. */
export interface ModelError {
  category: ErrorCategory;
  message: string;
  retriable: boolean;
  provider: ProviderId;
  status?: number;
  /** The provider's own id of the request. */
  requestId?: string;
  /** The provider asked to wait this long, in milliseconds. */
  retryAfterMs?: number;
}
