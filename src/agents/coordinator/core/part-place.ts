/** Indexes and paths of parts within their fan-out. Pure. */
import type { FanOut, Spread } from "./state.ts";

/** Returns the first index of a part, and the number of its branches. */
export function placeOf({ total, size }: Spread, part: number): { first: number; size: number } {
  const first = part * size;
  return { first, size: Math.min(size, total - first) };
}

/** Returns the path of the tokens of a branch, and its group and index. A part of a spread fan-out has the indexes of its branches in its path. */
export function branchPlace(
  { path, origin, branches, group, part, spread }: FanOut,
  index: number,
): { path: string; group: string; branch: number } {
  if (spread !== undefined) {
    const { first, size } = placeOf(spread, index);
    return { path: `${path}.${origin}.${first}-${first + size - 1}`, group, branch: first };
  }
  const branch = (part?.first ?? 0) + index;
  const own = (part?.total ?? branches.length) > 1 ? `${path}.${origin}.${branch}` : path;
  return { path: own, group, branch };
}
