/** The places of parts in their fan-out. Pure. */
import type { Spread } from "./state.ts";

/** Returns the first index of a part, and the number of its branches. */
export function placeOf({ total, size }: Spread, part: number): { first: number; size: number } {
  const first = part * size;
  return { first, size: Math.min(size, total - first) };
}
