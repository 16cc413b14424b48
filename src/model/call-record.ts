/**
 * The record of one provider call: opened before the call, closed with its outcome, whether it succeeded or failed. Pure.
 *
 * CALL-1  A closed record has an end time and an outcome.
 */
import { defined } from "../shared/defined.ts";
import { toIso } from "../shared/time.ts";
import { type CallOperation, type CallSite, runIdOf } from "./correlation.ts";
import type { ErrorCategory } from "./error.ts";
import type { RateLimitFeedback } from "./reply.ts";
import type { TokenUsage } from "./usage.ts";

/** The outcome of one logical request with all of its attempts. */
export interface RequestOutcome {
  ok: boolean;
  /** The HTTP status of the last attempt, if it got a response. */
  status?: number;
  /** `none` after a success. */
  errorCategory: ErrorCategory | "none";
  /** 0 if no attempt was made. */
  attempts: number;
  /** Milliseconds since the epoch. */
  startedAt: number;
  finishedAt: number;
  rateLimitFeedback?: RateLimitFeedback;
}

/** One call of a provider. */
export interface ProviderCallRecord {
  id: string;
  conversationId: string;
  turnId: string;
  provider: string;
  model: string;
  operation: CallOperation;
  /** The provider's own id of the request. */
  requestId?: string;
  /** `{conversationId}:{turnId}`. */
  correlationId?: string;
  /** The run id of the previous turn, or of the caller of a delegated call. */
  parentCorrelationId?: string;
  /** Application data about the request. It reaches no provider. */
  requestMetadata?: Record<string, unknown>;
  responseMetadata?: Record<string, unknown>;
  usage?: TokenUsage;
  /** US dollars; absent without prices in the profile or without usage. */
  cost?: number;
  outcome?: RequestOutcome;
  /** ISO 8601 UTC. */
  startedAt: string;
  /** Absent while the call runs. */
  finishedAt?: string;
}

/** The data of a call before it starts. */
export interface OpenCall
  extends CallSite,
    Pick<ProviderCallRecord, "id" | "parentCorrelationId" | "requestMetadata"> {
  /** Default: `chat`. */
  operation?: CallOperation;
  /** Milliseconds since the epoch. */
  startedAt: number;
}

/** The data of a finished call. */
export interface ClosedCall
  extends Pick<ProviderCallRecord, "usage" | "cost" | "requestId" | "responseMetadata"> {
  outcome: RequestOutcome;
  /** Milliseconds since the epoch. */
  finishedAt: number;
}

/**
 * Creates the record of a call that is about to start.
 *
 * @example const record = openCallRecord({ id, conversationId, turnId, agent, provider, model, startedAt: Date.now() });
 */
export function openCallRecord(call: OpenCall): ProviderCallRecord {
  const { id, conversationId, turnId, provider, model, parentCorrelationId, requestMetadata } = call;
  return {
    id,
    conversationId,
    turnId,
    provider,
    model,
    operation: call.operation ?? "chat",
    correlationId: runIdOf(conversationId, turnId),
    ...defined({ parentCorrelationId, requestMetadata }),
    startedAt: toIso(call.startedAt),
  };
}

/**
 * Returns the record with its outcome.
 *
 * @example closeCallRecord(record, { outcome, usage, finishedAt: Date.now() })
 */
export function closeCallRecord(record: ProviderCallRecord, call: ClosedCall): ProviderCallRecord {
  const { outcome, usage, cost, requestId, responseMetadata, finishedAt } = call;
  return {
    ...record,
    ...defined({ requestId, responseMetadata, usage, cost }),
    outcome,
    finishedAt: toIso(finishedAt),
  };
}
