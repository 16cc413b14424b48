/** Ids of vectors in a store. Each id names its space, because two embedders may share the store during a replacement. */
import type { SentSpace } from "./spaces.ts";

export function idOf(space: number, n: number): string {
  return `${space}.${n}`;
}

/** Returns the number of the memory in a vector id, or `undefined` for an id of another space. */
export function numberOf(space: number, id: string): number | undefined {
  const [of, n] = id.split(".");
  return of === String(space) ? Number(n) : undefined;
}

export function idsOfRow({ number, perRow }: SentSpace, at: number): string[] {
  return Array.from({ length: perRow }, (_, place) => idOf(number, at * perRow + place));
}
