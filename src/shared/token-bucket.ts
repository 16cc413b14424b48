/**
 * Token buckets limit a burst and its refill rate. Times are in milliseconds.
 *
 * BUCKET-1  In any span of time a bucket gives at most its burst plus the refill of that span.
 * BUCKET-2  A refusal takes no tokens. It returns a sufficient wait that is less than 1 ms too long.
 * BUCKET-3  A clock that jumps back leaves a bucket empty at worst: its debt never exceeds one filling.
 * LIMIT-1   A limiter remembers at most `capacity` keys and forgets the least recently used key first.
 */

/** A limit as applications write it. */
export interface RateLimit {
  /** Tokens that refill per minute; more than 0. */
  perMinute: number;
  /** Tokens that may be taken at once; at least 1. */
  burst: number;
}

/** A full bucket needs no memory, because it equals a new bucket. */
export interface TokenBucket {
  readonly limit: RateLimit;
  /** The time, as of `at`, until the bucket is full again. A span is more precise than a time of 13 digits. */
  readonly debt: number;
  readonly at: number;
}

/** The outcome of taking tokens, and the bucket afterwards. `retryAfter` is in whole milliseconds. */
export type Taken =
  | { allowed: true; bucket: TokenBucket }
  | { allowed: false; bucket: TokenBucket; retryAfter: number };

export function tokenBucket(limit: RateLimit): TokenBucket {
  return { limit, debt: 0, at: 0 };
}

/** Takes `cost` tokens. A cost above the burst takes a full bucket. */
export function takeToken(bucket: TokenBucket, cost: number, now: number): Taken {
  const { limit } = bucket;
  const perToken = 60_000 / limit.perMinute;
  const filling = limit.burst * perToken;
  const debt = debtOf(bucket, now);
  const wanted = debt + Math.min(cost, limit.burst) * perToken;
  // The sum of fractions that were added one by one is inexact.
  const excess = wanted - filling - perToken * ROUNDING;
  if (excess <= 0) return { allowed: true, bucket: { limit, debt: wanted, at: now } };
  return { allowed: false, bucket: { limit, debt, at: now }, retryAfter: Math.ceil(excess) };
}

export function returnToken(bucket: TokenBucket): TokenBucket {
  return { ...bucket, debt: Math.max(0, bucket.debt - 60_000 / bucket.limit.perMinute) };
}

/** Reports whether the bucket is full and can be forgotten. */
export function isFull(bucket: TokenBucket, now: number): boolean {
  return debtOf(bucket, now) === 0;
}

function debtOf({ debt, at }: TokenBucket, now: number): number {
  return Math.max(0, debt - Math.max(0, now - at));
}

/** In tokens. */
const ROUNDING = 1e-6;

const CAPACITY = 10_000;

/** Token buckets by key, in the memory of one isolate. */
export class RateLimiter {
  /** In the order of their last use. */
  readonly #buckets = new Map<string, TokenBucket>();

  constructor(
    private readonly limit: RateLimit,
    private readonly capacity = CAPACITY,
  ) {}

  /** Takes a token of the key. Returns the milliseconds to wait, 0 if the token was granted. */
  take(key: string, now: number): number {
    const taken = takeToken(this.#buckets.get(key) ?? tokenBucket(this.limit), 1, now);
    this.#keep(key, taken.bucket, now);
    return taken.allowed ? 0 : taken.retryAfter;
  }

  get size(): number {
    return this.#buckets.size;
  }

  #keep(key: string, bucket: TokenBucket, now: number): void {
    this.#buckets.delete(key);
    this.#buckets.set(key, bucket);
    for (const [oldest, quiet] of this.#buckets) {
      if (this.#buckets.size <= this.capacity && !isFull(quiet, now)) break;
      this.#buckets.delete(oldest);
    }
  }
}
