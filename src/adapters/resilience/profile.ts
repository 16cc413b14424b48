/** How persistent a request is: how often it is tried, how long each attempt and all of it may take. Pure. */
import { z } from "zod";
import { validate } from "../../shared/validation.ts";

/** Times are in milliseconds. */
export interface ResilienceProfile {
  /** Attempts of one model, the first included; 1 when absent. A model call is no idempotent request: it opts in to more. */
  maxAttempts: number;
  /** `false` = one attempt, whatever `maxAttempts` says; `true` when absent. */
  retryEnabled: boolean;
  /** One attempt, unless the model profile has a `timeoutMs` of its own; 30 000 when absent. */
  perAttemptTimeoutMs: number;
  /** All attempts, with the pauses between them; 90 000 when absent. */
  overallTimeoutMs: number;
  /** The pause before the second attempt, doubled with each further one; 250 when absent. */
  baseBackoffMs: number;
  /** No pause is longer; 60 000 when absent. */
  maxBackoffMs: number;
  /** A random factor of each pause, from and to; 0.8 to 1.2 when absent. */
  jitterFactorRange: readonly [number, number];
  /** A second bound of all of it, for whoever waits. */
  maxEndToEndLatencyMs?: number;
}

/** What a client gets that says nothing: model calls are worth three attempts. */
export const DEFAULT_CLIENT = { maxAttempts: 3 } as const satisfies Partial<ResilienceProfile>;

const milliseconds = z.int().min(0);
const factor = z.number().min(0).max(10);

const schema = z.strictObject({
  maxAttempts: z.int().min(1).max(20).default(1),
  retryEnabled: z.boolean().default(true),
  perAttemptTimeoutMs: milliseconds.min(1).default(30_000),
  overallTimeoutMs: milliseconds.min(1).default(90_000),
  baseBackoffMs: milliseconds.default(250),
  maxBackoffMs: milliseconds.default(60_000),
  jitterFactorRange: z
    .tuple([factor, factor])
    .refine(([from, to]) => from <= to, "The first factor must not be larger than the second.")
    .default([0.8, 1.2]),
  maxEndToEndLatencyMs: z.exactOptional(milliseconds.min(1)),
});

/** The profile, written out. Throws `INVALID_INPUT` for one that makes no sense. */
export function completeResilience(profile: Partial<ResilienceProfile> = {}): ResilienceProfile {
  return validate(schema, profile, "/resilience", "The resilience profile");
}

/** When the request must be over, in milliseconds since the epoch: the earliest of all bounds. */
export function requestDeadline(
  { overallTimeoutMs, maxEndToEndLatencyMs = Number.POSITIVE_INFINITY }: ResilienceProfile,
  startedAt: number,
  callers = Number.POSITIVE_INFINITY,
): number {
  return Math.min(startedAt + overallTimeoutMs, startedAt + maxEndToEndLatencyMs, callers);
}
