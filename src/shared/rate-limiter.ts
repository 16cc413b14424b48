/**
 * Token buckets by key, in the memory of one isolate.
 *
 * LIMIT-1  At most `capacity` keys are remembered; the one that has been quiet for longest is forgotten first.
 */
import { isFull, type RateLimit, type TokenBucket, takeToken, tokenBucket } from "./token-bucket.ts";

const CAPACITY = 10_000;

export class RateLimiter {
  /** In the order of their last use. */
  readonly #buckets = new Map<string, TokenBucket>();

  constructor(
    private readonly limit: RateLimit,
    private readonly capacity = CAPACITY,
  ) {}

  /** Takes a token of the key; answers the milliseconds to wait, 0 where it was given. */
  take(key: string, now: number): number {
    const taken = takeToken(this.#buckets.get(key) ?? tokenBucket(this.limit), 1, now);
    this.#keep(key, taken.bucket, now);
    return taken.allowed ? 0 : taken.retryAfter;
  }

  /** How many keys are remembered. */
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
