/**
 * What follows a failed attempt: another one after a pause, another model, or nothing. Pure.
 *
 * RESIL-1  The pause is what the classifier suggests; else what the provider asked for; else it grows from attempt to
 *          attempt, with a random factor. It is never longer than `maxBackoffMs`.
 * RESIL-2  Nobody sleeps into the deadline: where the pause would reach it, the request fails now.
 * RESIL-3  A provider that asks for a longer pause than the usual one is not waited for while another can be asked.
 */
import { type Classified, mayFallBack } from "./classify.ts";
import type { ResilienceProfile } from "./profile.ts";

/** The pause after so many failed attempts, in milliseconds. `random` is from 0 to below 1. */
function backoffMs(
  profile: ResilienceProfile,
  failed: number,
  { suggestedBackoffMs, retryAfterMs }: Pick<Classified, "suggestedBackoffMs" | "retryAfterMs">,
  random: number,
): number {
  const asked = suggestedBackoffMs ?? retryAfterMs;
  const wanted = asked ?? ownBackoffMs(profile, failed, random);
  return Math.min(Math.max(0, wanted), profile.maxBackoffMs);
}

export type NextStep = { type: "retry"; delayMs: number } | { type: "fall-back" } | { type: "give-up" };

export interface FailedAttempt {
  profile: ResilienceProfile;
  error: Classified;
  /** Attempts of this model so far, this one included. */
  failed: number;
  /** Another model can be asked. */
  hasFallback: boolean;
  now: number;
  /** Milliseconds since the epoch. */
  deadline: number;
  /** From 0 to below 1. */
  random: number;
}

export function nextStep(attempt: FailedAttempt): NextStep {
  const { profile, error, failed, now, deadline, random } = attempt;
  const canFallBack = attempt.hasFallback && mayFallBack(error.category) && now < deadline;
  const canRetry = profile.retryEnabled && error.retryable && failed < profile.maxAttempts;
  const delayMs = backoffMs(profile, failed, error, random);
  const isLong = delayMs > ownBackoffMs(profile, failed, random);
  if (canRetry && now + delayMs < deadline && !(isLong && canFallBack)) return { type: "retry", delayMs };
  return { type: canFallBack ? "fall-back" : "give-up" };
}

function ownBackoffMs(
  { baseBackoffMs, maxBackoffMs, jitterFactorRange: [from, to] }: ResilienceProfile,
  failed: number,
  random: number,
): number {
  return Math.min(maxBackoffMs, baseBackoffMs * 2 ** (failed - 1) * (from + (to - from) * random));
}
