/**
 * A token bucket: how much may happen at once, and how fast that comes back. Pure; times are milliseconds.
 *
 * BUCKET-1  In any span of time a bucket gives at most its burst and what its rate brings in that span.
 * BUCKET-2  What is refused costs nothing and says how long to wait: that is enough, and at most 2 ms too long.
 * BUCKET-3  A clock that jumps back leaves a bucket empty at worst: it is never in debt for longer than one filling.
 */

/** A limit as applications write it. */
export interface RateLimit {
  /** How many come back in a minute; more than 0. */
  perMinute: number;
  /** How many may come at once; at least 1. */
  burst: number;
}

/** Kept as the time at which it is full again, so one that is full needs no memory: a new one is the same. */
export interface TokenBucket {
  readonly limit: RateLimit;
  readonly fullAt: number;
}

/** Whether the tokens were given, and the bucket after that. `retryAfter` is in whole milliseconds. */
export type Taken =
  | { allowed: true; bucket: TokenBucket }
  | { allowed: false; bucket: TokenBucket; retryAfter: number };

/** A full bucket. */
export function tokenBucket(limit: RateLimit): TokenBucket {
  return { limit, fullAt: Number.NEGATIVE_INFINITY };
}

/** Takes `cost` tokens; what costs more than the burst takes a full bucket. */
export function takeToken(bucket: TokenBucket, cost: number, now: number): Taken {
  const { limit } = bucket;
  const perToken = 60_000 / limit.perMinute;
  const filling = limit.burst * perToken;
  const debt = Math.min(Math.max(bucket.fullAt - now, 0), filling);
  const wanted = debt + Math.min(cost, limit.burst) * perToken;
  if (wanted <= filling) return { allowed: true, bucket: { limit, fullAt: now + wanted } };
  // Times since the epoch hold fractions of a millisecond only roughly: one more makes up for it.
  const retryAfter = Math.ceil(wanted - filling) + 1;
  return { allowed: false, bucket: { limit, fullAt: now + debt }, retryAfter };
}

/** Whether the bucket can be forgotten: a new one gives the same. */
export function isFull(bucket: TokenBucket, now: number): boolean {
  return bucket.fullAt <= now;
}
