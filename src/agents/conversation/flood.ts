/**
 * How much one connection may send: two token buckets, of frames and of their length. Pure.
 *
 * FLOOD-1  Within any span of time a connection gets through at most the burst and what flows in meanwhile.
 */
import { FLOOD } from "./limits.ts";

/** What a connection has left, as of a moment in milliseconds. */
export interface Allowance {
  frames: number;
  length: number;
  at: number;
}

const FULL = { frames: FLOOD.frames.burst, length: FLOOD.length.burst };

/**
 * The allowance after a frame of this length; `null` if there is not enough left. `undefined` is a full one. A frame
 * longer than the burst costs all of it: that it is too long, something else says.
 */
export function spend(before: Allowance | undefined, length: number, now: number): Allowance | null {
  const { at, ...left } = before ?? { ...FULL, at: now };
  const seconds = Math.max(0, now - at) / 1000;
  const frames = Math.min(FULL.frames, left.frames + seconds * FLOOD.frames.perSecond) - 1;
  const rest =
    Math.min(FULL.length, left.length + seconds * FLOOD.length.perSecond) - Math.min(length, FULL.length);
  return frames < 0 || rest < 0 ? null : { frames, length: rest, at: now };
}
