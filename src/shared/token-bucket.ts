/**
 * A token bucket: how much may happen at once, and how fast that comes back. Pure; times are milliseconds.
 *
 * BUCKET-1  In any span of time a bucket gives at most its burst and what its rate brings in that span.
 * BUCKET-2  What is refused costs nothing and says how long to wait: that is enough, and less than 1 ms too long.
 * BUCKET-3  A clock that jumps back leaves a bucket empty at worst: it is never in debt for longer than one filling.
 */

/** A limit as applications write it. */
export interface RateLimit {
  /** How many come back in a minute; more than 0. */
  perMinute: number;
  /** How many may come at once; at least 1. */
  burst: number;
}

/** One that is full needs no memory: a new one is the same. */
export interface TokenBucket {
  readonly limit: RateLimit;
  /** Milliseconds that it took, as of `at`, to be full again: as a span it loses nothing beside times of 13 digits. */
  readonly debt: number;
  readonly at: number;
}

/** Whether the tokens were given, and the bucket after that. `retryAfter` is in whole milliseconds. */
export type Taken =
  | { allowed: true; bucket: TokenBucket }
  | { allowed: false; bucket: TokenBucket; retryAfter: number };

/** A full bucket. */
export function tokenBucket(limit: RateLimit): TokenBucket {
  return { limit, debt: 0, at: 0 };
}

/** Takes `cost` tokens; what costs more than the burst takes a full bucket. */
export function takeToken(bucket: TokenBucket, cost: number, now: number): Taken {
  const { limit } = bucket;
  const perToken = 60_000 / limit.perMinute;
  const filling = limit.burst * perToken;
  const debt = debtOf(bucket, now);
  const wanted = debt + Math.min(cost, limit.burst) * perToken;
  // Fractions that were added one by one miss their sum by a little.
  const excess = wanted - filling - perToken * ROUNDING;
  if (excess <= 0) return { allowed: true, bucket: { limit, debt: wanted, at: now } };
  return { allowed: false, bucket: { limit, debt, at: now }, retryAfter: Math.ceil(excess) };
}

/** Whether the bucket can be forgotten: a new one gives the same. */
export function isFull(bucket: TokenBucket, now: number): boolean {
  return debtOf(bucket, now) === 0;
}

function debtOf({ debt, at }: TokenBucket, now: number): number {
  return Math.max(0, debt - Math.max(0, now - at));
}

/** Of one token. */
const ROUNDING = 1e-6;
