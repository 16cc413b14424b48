/**
 * Who asks too often is told to wait.
 *
 * LIMIT-2  The requests of a principal (tenant and subject) are limited together, on every route that asks who one is.
 * LIMIT-3  Who is refused gets `RATE_LIMITED` and, in `Retry-After`, the seconds to wait.
 */
import { DramatisError } from "../../shared/errors.ts";
import type { Principal } from "../../shared/principal.ts";
import { RateLimiter } from "../../shared/token-bucket.ts";
import type { Limits } from "./limits.ts";

/** The platform's rate limiter, as it is bound: one count for all isolates of a location. */
export interface PlatformLimiter {
  limit(options: { key: string }): Promise<{ success: boolean }>;
}

/** The platform does not say how long to wait; its shortest period is this long, in milliseconds. */
const PLATFORM_WAIT_MS = 10_000;

export class HttpLimits {
  readonly #requests: RateLimiter | null;

  constructor(
    { requests }: Required<Limits>,
    private readonly now: () => number,
  ) {
    this.#requests = requests === false ? null : new RateLimiter(requests);
  }

  /** Counts a request of a principal, by the platform's limiter where there is one; throws `RATE_LIMITED`. */
  async countRequest({ tenant, subject }: Principal, platform: PlatformLimiter | undefined): Promise<void> {
    if (this.#requests === null) return;
    const key = JSON.stringify([tenant, subject]);
    const allowed = await platform?.limit({ key }).catch((error: unknown) => {
      console.warn("The bound rate limiter does not answer; this isolate counts on its own:", error);
      return undefined;
    });
    if (allowed === undefined) refuse(this.#requests.take(key, this.now()));
    else if (!allowed.success) refuse(PLATFORM_WAIT_MS);
  }
}

function refuse(wait: number): void {
  if (wait === 0) return;
  throw new DramatisError("RATE_LIMITED", "Too many requests. Wait as long as `Retry-After` says.", {
    retriable: true,
    retryAfter: wait,
  });
}
