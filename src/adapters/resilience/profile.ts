/** The number of attempts of a request, and their time limits. Pure. */
import { z } from "zod";
import { validate } from "../../shared/validation.ts";

/** Times are in milliseconds. */
export interface ResilienceProfile {
  /** Attempts with one model, including the first. Default: 1, because a model call is not idempotent. */
  maxAttempts: number;
  /** `false` allows one attempt only, despite `maxAttempts`. Default: `true`. */
  retryEnabled: boolean;
  /** Limit of one attempt, unless the model profile has its own `timeoutMs`. Default: 30 000. */
  perAttemptTimeoutMs: number;
  /** Limit of all attempts and the pauses between them. Default: 90 000. */
  overallTimeoutMs: number;
  /** Pause before the second attempt. It doubles with each further attempt. Default: 250. */
  baseBackoffMs: number;
  /** Limit of one pause. Default: 60 000. */
  maxBackoffMs: number;
  /** Range of the random factor of each pause. Default: 0.8 to 1.2. */
  jitterFactorRange: readonly [number, number];
  /** A second limit of the whole request, for the latency that the caller accepts. */
  maxEndToEndLatencyMs?: number;
}

/** Defaults of a gateway's client: three attempts. */
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
  maxEndToEndLatencyMs: milliseconds.min(1).exactOptional(),
});

/** Completes a profile with defaults. Throws `INVALID_INPUT` for an invalid profile. */
export function completeResilience(profile: Partial<ResilienceProfile> = {}): ResilienceProfile {
  return validate(schema, profile, "/resilience", "The resilience profile");
}

/** Returns the deadline of a request, in milliseconds since the epoch: the earliest of all limits. */
export function requestDeadline(
  { overallTimeoutMs, maxEndToEndLatencyMs = Number.POSITIVE_INFINITY }: ResilienceProfile,
  startedAt: number,
  callers = Number.POSITIVE_INFINITY,
): number {
  return Math.min(startedAt + overallTimeoutMs, startedAt + maxEndToEndLatencyMs, callers);
}
