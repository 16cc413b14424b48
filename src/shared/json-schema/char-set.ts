/** Sets of characters, as ascending ranges of code points that do not touch. Pure. */
export type CharSet = readonly (readonly [from: number, to: number])[];

export const NOTHING: CharSet = [];
export const EVERYTHING: CharSet = [[0, 0x10ffff]];

export function union(...sets: readonly CharSet[]): CharSet {
  const merged: [number, number][] = [];
  for (const [from, to] of sets.flat().sort(([a], [b]) => a - b)) {
    const last = merged.at(-1);
    if (last !== undefined && from <= last[1] + 1) last[1] = Math.max(last[1], to);
    else merged.push([from, to]);
  }
  return merged;
}

export function complement(set: CharSet): CharSet {
  const rest: [number, number][] = [];
  let next = 0;
  for (const [from, to] of set) {
    if (from > next) rest.push([next, from - 1]);
    next = to + 1;
  }
  if (next <= 0x10ffff) rest.push([next, 0x10ffff]);
  return rest;
}

export function overlap(one: CharSet, other: CharSet): boolean {
  return one.some(([from, to]) => other.some(([start, end]) => from <= end && start <= to));
}

const DIGITS: CharSet = [[48, 57]];
const WORD: CharSet = union(DIGITS, [
  [65, 90],
  [95, 95],
  [97, 122],
]);
const SPACE: CharSet = union([
  [9, 13],
  [32, 32],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
]);

/** The characters that `.` matches. */
export const ANY: CharSet = complement([
  [10, 10],
  [13, 13],
  [0x2028, 0x2029],
]);

/** The characters that each one-letter escape matches. */
export const CLASSES: ReadonlyMap<string, CharSet> = new Map([
  ["d", DIGITS],
  ["D", complement(DIGITS)],
  ["w", WORD],
  ["W", complement(WORD)],
  ["s", SPACE],
  ["S", complement(SPACE)],
]);
