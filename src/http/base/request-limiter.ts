/**
 * The rate limit of requests.
 *
 * LIMIT-2  The requests of a principal (tenant and subject) share one limit on every authenticated route.
 * LIMIT-3  A refused request gets `RATE_LIMITED` and the seconds to wait in `Retry-After`.
 */
import type { Clock } from "../../ports/clock.ts";
import { DramatisError } from "../../shared/errors.ts";
import type { Principal } from "../../shared/principal.ts";
import { type RateLimit, RateLimiter } from "../../shared/token-bucket.ts";

/** The binding of the platform's rate limiter: one count for all isolates of a location. */
export interface PlatformLimiter {
  limit(options: { key: string }): Promise<{ success: boolean }>;
}

/** Shortest period of the platform's limiter, in milliseconds. Its answer has no waiting time. */
const PLATFORM_WAIT_MS = 10_000;

export class RequestLimiter {
  readonly #isolate: RateLimiter | null;

  constructor(
    limit: RateLimit | false,
    private readonly clock: Pick<Clock, "now">,
  ) {
    this.#isolate = limit === false ? null : new RateLimiter(limit);
  }

  /**
   * Counts a request of a principal with the platform's limiter. Without a binding or an answer, it counts in this isolate.
   * Throws `RATE_LIMITED`.
   */
  async count(
    { tenant, subject }: Pick<Principal, "tenant" | "subject">,
    platform: PlatformLimiter | undefined,
  ): Promise<void> {
    if (this.#isolate === null) return;
    const key = JSON.stringify([tenant, subject]);
    const answer = await platform?.limit({ key }).catch((error: unknown) => {
      console.warn("The bound rate limiter does not answer; this isolate counts alone:", error);
      return undefined;
    });
    const retryAfter =
      answer === undefined
        ? this.#isolate.take(key, this.clock.now())
        : answer.success
          ? 0
          : PLATFORM_WAIT_MS;
    if (retryAfter === 0) return;
    throw new DramatisError("RATE_LIMITED", "Too many requests. Wait for the seconds in `Retry-After`.", {
      retriable: true,
      retryAfter,
    });
  }
}
