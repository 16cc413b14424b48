/**
 * How much one connection may send: two token buckets, of frames and of their length. Pure.
 *
 * FLOOD-1  Within any span of time a connection gets through at most the burst and what flows in meanwhile.
 */
import { type TokenBucket, takeToken, tokenBucket } from "../../../shared/token-bucket.ts";
import { FLOOD } from "../core/limits.ts";

/** What a connection has left. */
export interface Allowance {
  frames: TokenBucket;
  length: TokenBucket;
}

const FULL: Allowance = { frames: tokenBucket(FLOOD.frames), length: tokenBucket(FLOOD.length) };

/**
 * The allowance after a frame of this length; `null` if there is not enough left. `undefined` is a full one. A frame
 * longer than the burst costs all of it: that it is too long, something else says.
 */
export function spend(before: Allowance | undefined, length: number, now: number): Allowance | null {
  const left = before ?? FULL;
  const frames = takeToken(left.frames, 1, now);
  const lengths = takeToken(left.length, length, now);
  return frames.allowed && lengths.allowed ? { frames: frames.bucket, length: lengths.bucket } : null;
}
