/**
 * Decides the step after a failed attempt: a retry after a pause, another model, or failure. Pure.
 *
 * RESIL-1  The pause is suggested by the classifier, or requested by the provider, or an exponential backoff with jitter, in this order. It
 *          never exceeds `maxBackoffMs`.
 * RESIL-2  A pause that would reach the deadline is not started: the request fails at once.
 * RESIL-3  If the provider requests a longer pause than the backoff, an available fallback is preferred to waiting. If all fallbacks fail,
 *          the request returns to the model after the pause.
 */
import {
  backoffMs,
  type ErrorCategory,
  isRetriable,
  type ModelError,
  mayFallBack,
} from "../../model/error.ts";
import { defined } from "../../shared/defined.ts";
import type { ResilienceProfile } from "./profile.ts";

export interface ClassifiedError {
  category: ErrorCategory;
  statusCode?: number;
  /** Another attempt can succeed. Default: decided by the category. */
  retryable?: boolean;
  /** Milliseconds. Overrides the wait that the provider requested. */
  suggestedBackoffMs?: number;
  reason?: string;
}

/** Classifies a failure. `undefined` keeps the gateway's classification. */
export type Classifier = (error: ModelError) => ClassifiedError | undefined;

/** A failure with its classification, and everything else that decides the next step. */
export type Classified = ClassifiedError & { retryable: boolean; retryAfterMs?: number };

/** Classifies a failure. The application's own classifier overrides the gateway. */
export function classified(error: ModelError, custom?: Classifier): Classified {
  const { category, status, retryAfterMs } = error;
  const found = custom?.(error) ?? { category, retryable: error.retriable };
  return {
    ...defined({ statusCode: status, retryAfterMs }),
    ...found,
    retryable: found.retryable ?? isRetriable(found.category),
  };
}

export type NextStep =
  | { type: "retry"; delayMs: number }
  /** Call another model. `retryAt` is the time at which this model may be called again, in milliseconds since the epoch. */
  | { type: "fall-back"; retryAt?: number }
  | { type: "give-up" };

export interface FailedAttempt {
  profile: ResilienceProfile;
  error: Classified;
  /** Attempts with this model so far, including the current attempt. */
  failed: number;
  hasFallback: boolean;
  now: number;
  /** Milliseconds since the epoch. */
  deadline: number;
  /** From 0 to below 1. */
  random: number;
}

/** Decides the next step after a failed attempt. */
export function nextStep(attempt: FailedAttempt): NextStep {
  const { profile, error, failed, hasFallback, now, deadline, random } = attempt;
  const { baseBackoffMs, maxBackoffMs: maximumMs } = profile;
  const [from, to] = profile.jitterFactorRange;
  const scheduledMs = Math.min(maximumMs, baseBackoffMs * 2 ** (failed - 1) * (from + (to - from) * random));
  const requestedMs = error.suggestedBackoffMs ?? error.retryAfterMs;
  const delayMs = backoffMs({ scheduledMs, requestedMs, maximumMs });
  const canFallBack = hasFallback && mayFallBack(error.category) && now < deadline;
  const isAllowed = profile.retryEnabled && error.retryable && failed < profile.maxAttempts;
  const canRetry = isAllowed && now + delayMs < deadline;
  const prefersFallback = canFallBack && delayMs > scheduledMs;
  if (canRetry && !prefersFallback) return { type: "retry", delayMs };
  if (!canFallBack) return { type: "give-up" };
  return { type: "fall-back", ...(canRetry ? { retryAt: now + delayMs } : {}) };
}
