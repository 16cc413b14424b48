/**
 * The record of one provider call: opened before the call is made, closed with what became of it, also when it failed.
 * Pure.
 *
 * CALL-1  A record that is closed has the time of its end and an outcome.
 */

import { defined } from "../shared/defined.ts";
import { type CallOperation, type CallSite, runIdOf } from "./correlation.ts";
import type { ErrorCategory } from "./error.ts";
import type { RateLimitFeedback } from "./reply.ts";
import type { TokenUsage } from "./usage.ts";

/** What is known before a call is made. */
export interface OpenCall extends CallSite {
  /** The record's own id. */
  id: string;
  /** `chat` when absent. */
  operation?: CallOperation;
  /** The run id of the turn before, or of whoever delegated the call. */
  parentCorrelationId?: string;
  requestMetadata?: Record<string, unknown>;
  /** Milliseconds since the epoch. */
  startedAt: number;
}

/** What is known when a call is over. */
export interface ClosedCall {
  outcome: RequestOutcome;
  usage?: TokenUsage;
  /** US dollars. */
  cost?: number;
  /** The provider's own id of the request. */
  requestId?: string;
  responseMetadata?: Record<string, unknown>;
  /** Milliseconds since the epoch. */
  finishedAt: number;
}

/** The record of a call that is about to be made. */
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

/** The same record, closed. */
export function closeCallRecord(record: ProviderCallRecord, call: ClosedCall): ProviderCallRecord {
  const { outcome, usage, cost, requestId, responseMetadata, finishedAt } = call;
  return {
    ...record,
    ...defined({ requestId, responseMetadata, usage, cost }),
    outcome,
    finishedAt: toIso(finishedAt),
  };
}

/** Milliseconds since the epoch as ISO 8601 UTC. */
export function toIso(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}

/** What became of one logical request: one per call, however many attempts it took, also when it failed. */
export interface RequestOutcome {
  ok: boolean;
  /** The HTTP status of the last attempt, where there was one. */
  status?: number;
  /** `none` where it went well. */
  errorCategory: ErrorCategory | "none";
  /** 0 where no attempt was made. */
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
  /** That of the turn before, or of the caller of a delegated call. */
  parentCorrelationId?: string;
  /** Sent to no provider. */
  requestMetadata?: Record<string, unknown>;
  responseMetadata?: Record<string, unknown>;
  usage?: TokenUsage;
  /** US dollars, where the profile has prices and the provider counted. */
  cost?: number;
  outcome?: RequestOutcome;
  /** ISO 8601 UTC. */
  startedAt: string;
  /** Absent while it runs. */
  finishedAt?: string;
}
