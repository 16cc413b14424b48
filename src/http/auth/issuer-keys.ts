/**
 * The public keys of an identity provider, fetched on demand.
 *
 * JWT-4  If the keys cannot be fetched, requests fail with 503 rather than 401. Keys fetched before stay in use for one
 *        more hour.
 */
import { createLocalJWKSet, createRemoteJWKSet, customFetch, errors, type JWTVerifyGetKey } from "jose";
import type { Clock } from "../../ports/clock.ts";
import { unavailable } from "../../shared/errors.ts";

/** Delay after a failed fetch, in milliseconds. */
const KEYS_RETRY_MS = 5_000;
/** Use of the fetched keys while fetches fail, in milliseconds. */
const KEYS_GRACE_MS = 3_600_000;

/**
 * Returns the keys at an address, cached for ten minutes. An unknown key id causes a fetch at once, but at most every 30
 * seconds, so keys are rotated without a restart. `jose` fetches per request: on Workers a request cannot await the
 * promise of another.
 */
export function issuerKeys(url: URL, clock: Pick<Clock, "now">): JWTVerifyGetKey {
  let retryAt = 0;
  let goodAt = Number.NEGATIVE_INFINITY;
  const keys = createRemoteJWKSet(url, {
    // A flood of tokens must not become a flood of requests to a failing server.
    [customFetch]: async (input, init) => {
      if (clock.now() < retryAt) throw new Error("The last fetch of the keys failed a moment ago.");
      return fetch(input, init);
    },
  });
  return async (header, token) => {
    try {
      const key = await keys(header, token);
      if (keys.fresh) goodAt = clock.now();
      return key;
    } catch (cause) {
      if (namesNoKey(cause)) throw cause;
      if (clock.now() >= retryAt) {
        retryAt = clock.now() + KEYS_RETRY_MS;
        console.error(`The keys at ${url.origin} could not be fetched:`, cause);
      }
      const known = clock.now() - goodAt < KEYS_GRACE_MS ? keys.jwks() : undefined;
      const key = known && (await createLocalJWKSet(known)(header, token).catch(() => null));
      if (key) return key;
      throw unavailable("The keys that verify tokens could not be fetched. Try again later.", {
        cause,
      });
    }
  };
}

/** Reports an error of the token: no fetched key matches, or several keys match. */
function namesNoKey(error: unknown): boolean {
  return error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys;
}
