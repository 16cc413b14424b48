/** Ids of vectors in a store: each names its space, because vectors of two embedders may be in the store while one replaces the other. */
import type { SentSpace } from "./spaces.ts";

/** Returns the id of a memory's vector. */
export function idOf(space: number, n: number): string {
  return `${space}.${n}`;
}

/** Returns the number of the memory whose vector has the id; `undefined` for one of another space. */
export function numberOf(space: number, id: string): number | undefined {
  const [of, n] = id.split(".");
  return of === String(space) ? Number(n) : undefined;
}

/** Returns the ids that the vectors of a row may have. */
export function idsOfRow({ number, perRow }: SentSpace, at: number): string[] {
  return Array.from({ length: perRow }, (_, place) => idOf(number, at * perRow + place));
}
