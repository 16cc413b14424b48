/**
 * Limits what one connection may send: a token bucket of frames, and one of their length. Pure.
 *
 * FLOOD-1  In any span of time a connection may send at most the burst plus the refill of that time.
 */
import { type TokenBucket, takeToken, tokenBucket } from "../../../shared/token-bucket.ts";

/**
 * Rates of one connection: frames, and their length in UTF-16 units. Both buckets fill up within the ten idle seconds that pass before an
 * actor hibernates.
 */
export const FLOOD = {
  frames: { burst: 100, perMinute: 600 },
  length: { burst: 8 * 1024 * 1024, perMinute: 60 * 1024 * 1024 },
} as const;

/** The remaining allowance of a connection. */
export interface Allowance {
  frames: TokenBucket;
  length: TokenBucket;
}

const FULL: Allowance = { frames: tokenBucket(FLOOD.frames), length: tokenBucket(FLOOD.length) };

/**
 * Returns the allowance after a frame of this length; `null` if the rest is too small. `undefined` is a full allowance. A frame longer than
 * the burst takes all of it; the parser refuses the frame.
 */
export function spend(before: Allowance | undefined, length: number, now: number): Allowance | null {
  const left = before ?? FULL;
  const frames = takeToken(left.frames, 1, now);
  const lengths = takeToken(left.length, length, now);
  return frames.allowed && lengths.allowed ? { frames: frames.bucket, length: lengths.bucket } : null;
}
