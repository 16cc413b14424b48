/**
 * Searches that ask a store of vectors for the nearest memories. The store names candidates; their cosines are those of the rows. Pure.
 *
 * MEMNEAREST-1  A search asks the store only for a reader who sees all memories, where it has more memories than it compares itself in no time, and where enough of the nearest hundred can be
 *               expected to be the reader's and to pass the filter.
 * MEMNEAREST-2  Where too few of them are, all vectors are compared. A memory that the reader must not see, one that has changed, and one of
 *               another agent is no candidate.
 * MEMNEAREST-3  Memories that have the words of the query, those around candidates, and those whose vectors the store may lack, are compared as well.
 */
import { MAX_IDS_ONLY } from "../../../ports/vector-index.ts";
import { around } from "../../ranking/candidates.ts";
import { largest } from "../../ranking/largest.ts";
import type { FullTextMatches } from "../full-text.ts";
import type { LoadedSpace } from "./loaded-space.ts";
import { cosine, type QueryVector } from "./similarity.ts";
import type { SpaceRows } from "./space-rows.ts";

/** Up to so many memories a search compares all vectors, which takes about a millisecond. */
export const EXACT_UP_TO = 1_000;
/** Candidates that a search needs, at least. */
const NEEDED = 50;
/** Memories with the words of the query whose vectors are compared. */
const BY_WORDS = 200;

/** The places that a search may show: those that the reader sees, and that the filter keeps. Absent: all. */
export interface Eligible {
  visible?: Uint8Array;
  allowed?: Uint8Array;
}

function isEligible({ visible, allowed }: Eligible, place: number): boolean {
  return visible?.[place] !== 0 && allowed?.[place] !== 0;
}

/** Reports whether enough of the nearest memories can be expected to be eligible (MEMNEAREST-1). */
export function isWorthAsking(loaded: LoadedSpace, eligible: Eligible, limit: number): boolean {
  if (eligible.visible === undefined && eligible.allowed === undefined) return true;
  const { size, count } = loaded.columns;
  let kept = 0;
  for (let place = 0; place < size; place++)
    if (loaded.isUsed(place) && isEligible(eligible, place)) kept += 1;
  return (kept / Math.max(1, count)) * MAX_IDS_ONLY >= needed(limit);
}

/**
 * Returns the cosines of candidates by place, 0 for others; `null` where there are too few, so that all are to be compared. `ns` are the keys that the store
 * gave, `scanned` the first keys of blocks that it may lack vectors of.
 */
export function nearestCosines(
  loaded: LoadedSpace,
  rows: SpaceRows,
  vector: QueryVector,
  { ns, scanned }: { ns: readonly number[]; scanned: readonly number[] },
  { eligible, limit, lexical }: { eligible: Eligible; limit: number; lexical: FullTextMatches },
): Float32Array | null {
  const isSeen = (n: number) => {
    const place = loaded.columns.placeOf(n);
    return place !== undefined && isEligible(eligible, place);
  };
  const near = ns.filter(isSeen);
  if (ns.length >= MAX_IDS_ONLY && near.length < needed(limit)) return null;
  const matches = lexical.matches.filter(({ n }) => isSeen(n));
  const byWords = largest(
    Float64Array.from(matches, ({ score }) => score),
    BY_WORDS,
  ).flatMap((index) => matches[index]?.n ?? []);
  const wanted = new Set([...near, ...byWords].flatMap((n) => withNeighbours(loaded, n)));
  const whole = new Set(scanned);
  const firsts = new Set([...whole, ...[...wanted].map((n) => rows.vectorBlock(n) * rows.vectorsPerRow)]);
  const cosines = new Float32Array(loaded.columns.size);
  for (const key of firsts) {
    const { first, vectors } = rows.vectorsAt(key);
    loaded.eachVector(first, vectors, (at, place) => {
      const scale = vectors.scales[place] ?? 0;
      if (scale > 0 && (whole.has(first) || wanted.has(first + place)))
        cosines[at] = cosine(vector, vectors.values, place * vectors.dimensions, scale);
    });
  }
  return cosines;
}

/** Returns a memory and those around it in its session, whose scores lift it. */
function withNeighbours({ columns }: LoadedSpace, n: number): number[] {
  const place = columns.placeOf(n);
  const places = place === undefined ? [] : around({ columns }, place);
  return [n, ...places.map((one) => columns.n[one] ?? n)];
}

function needed(limit: number): number {
  return Math.max(limit, NEEDED);
}
