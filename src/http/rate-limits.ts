/**
 * Who asks too often is told to wait.
 *
 * LIMIT-2  The requests of a principal (tenant and subject) are limited together, on every route that asks who one is.
 * LIMIT-3  An address whose requests `authorize` refused too often is not even asked who it is for a while, so tokens
 *          cannot be guessed at the speed of the network.
 * LIMIT-4  Who is refused gets `RATE_LIMITED` and, in `Retry-After`, the seconds to wait.
 */
import { DramatisError } from "../shared/errors.ts";
import type { Limits } from "../shared/limits.ts";
import type { Principal } from "../shared/principal.ts";
import { RateLimiter } from "../shared/rate-limiter.ts";

/** The platform's rate limiter, as it is bound: one count for all isolates of a location. */
export interface PlatformLimiter {
  limit(options: { key: string }): Promise<{ success: boolean }>;
}

/** The platform does not say how long to wait; its shortest period is this long, in milliseconds. */
const PLATFORM_WAIT_MS = 10_000;

export class HttpLimits {
  readonly #requests: RateLimiter | null;
  readonly #refusals: RateLimiter | null;

  constructor(
    { requests, refusals }: Required<Limits>,
    private readonly now: () => number,
  ) {
    this.#requests = requests === false ? null : new RateLimiter(requests);
    this.#refusals = refusals === false ? null : new RateLimiter(refusals);
  }

  /** Throws `RATE_LIMITED` for an address that was refused too often. */
  checkAddress(request: Request): void {
    const address = addressOf(request);
    if (address !== null) refuse(this.#refusals?.wait(address, this.now()) ?? 0);
  }

  /** Counts a request that `authorize` refused. */
  countRefusal(request: Request): void {
    const address = addressOf(request);
    if (address !== null) this.#refusals?.take(address, this.now());
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

/** The client's address as Cloudflare tells it. Of IPv6 the network counts: one client has all addresses of its /64. */
function addressOf(request: Request): string | null {
  const address = request.headers.get("cf-connecting-ip");
  if (address === null || !address.includes(":")) return address;
  const [head = "", tail] = address.split("::");
  const groups = head === "" ? [] : head.split(":");
  if (tail !== undefined) groups.push(...Array<string>(8 - groups.length).fill("0"));
  return groups.slice(0, 4).join(":");
}

function refuse(wait: number): void {
  if (wait === 0) return;
  throw new DramatisError("RATE_LIMITED", "Too many requests. Wait as long as `Retry-After` says.", {
    retriable: true,
    retryAfter: wait,
  });
}
