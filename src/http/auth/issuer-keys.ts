/**
 * The keys of an identity provider, fetched when they are needed.
 *
 * JWT-4  Keys that could not be fetched are the server's failure (503), not the token's; those fetched before are taken for
 *        an hour longer.
 */
import { createLocalJWKSet, createRemoteJWKSet, customFetch, errors, type JWTVerifyGetKey } from "jose";
import { DramatisError } from "../../shared/errors.ts";

/** After a failed fetch of the keys, milliseconds until the next. */
const KEYS_RETRY_MS = 5_000;
/** While no newer keys can be had, those that were fetched are taken for so many milliseconds. */
const KEYS_GRACE_MS = 3_600_000;

/**
 * The keys at an address, kept for ten minutes; an unknown key is looked for at once, but at most every 30 seconds, so
 * keys are rotated without a restart. Each request fetches for itself: on Workers what one request has begun, another
 * cannot await, and `jose` sees to that.
 */
export function issuerKeys(url: URL): JWTVerifyGetKey {
  let retryAt = 0;
  let goodAt = Number.NEGATIVE_INFINITY;
  const keys = createRemoteJWKSet(url, {
    // A flood of tokens must not become a flood of requests to a server that is in trouble.
    [customFetch]: async (input, init) => {
      if (Date.now() < retryAt) throw new Error("The keys could not be fetched a moment ago.");
      return fetch(input, init);
    },
  });
  return async (header, token) => {
    try {
      const key = await keys(header, token);
      if (keys.fresh) goodAt = Date.now();
      return key;
    } catch (cause) {
      if (isOfToken(cause)) throw cause;
      if (Date.now() >= retryAt) {
        retryAt = Date.now() + KEYS_RETRY_MS;
        console.error(`The keys at ${url.origin} could not be fetched:`, cause);
      }
      const known = Date.now() - goodAt < KEYS_GRACE_MS ? keys.jwks() : undefined;
      const key = known && (await createLocalJWKSet(known)(header, token).catch(() => null));
      if (key) return key;
      throw new DramatisError("UNAVAILABLE", "The keys that tokens are checked with could not be fetched.", {
        cause,
      });
    }
  };
}

/** Whether the keys are well, and it is the token that names none of them. */
function isOfToken(error: unknown): boolean {
  return error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys;
}
