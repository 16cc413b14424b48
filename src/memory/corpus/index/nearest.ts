/**
 * Selects memories with the help of a vector store. The store names candidates. The search computes their cosines from the rows. Pure.
 *
 * MEMNEAREST-1  A search asks the store only if the reader sees all memories and there are more than `EXACT_UP_TO`. The reader and the
 *               filter must also be likely to keep enough of the nearest hundred.
 * MEMNEAREST-2  If too few candidates remain, the search compares all vectors. Memories that have changed, that belong to another agent, or
 *               that the reader must not see are not candidates.
 * MEMNEAREST-3  The search also compares memories with words of the query, neighbours of candidates, and memories whose vectors may be
 *               missing in the store.
 */
import { MAX_IDS_ONLY } from "../../../ports/vector-index.ts";
import { around } from "../../ranking/candidates.ts";
import { largest } from "../../ranking/largest.ts";
import type { FullTextMatches } from "../full-text.ts";
import type { LoadedSpace } from "./loaded-space.ts";
import { cosine, type QueryVector } from "./similarity.ts";
import type { SpaceRows } from "./space-rows.ts";

/** Up to this many memories, a search compares all vectors. This takes about a millisecond. */
export const EXACT_UP_TO = 1_000;
const NEEDED = 50;
/** Memories with words of the query that are also compared. */
const BY_WORDS = 200;

/** The places that the reader sees and that the filter keeps. Absent means all. */
export interface Eligible {
  visible?: Uint8Array;
  allowed?: Uint8Array;
}

function isEligible({ visible, allowed }: Eligible, place: number): boolean {
  return visible?.[place] !== 0 && allowed?.[place] !== 0;
}

/** Reports whether enough of the nearest memories are likely to be eligible (MEMNEAREST-1). */
export function isWorthAsking(loaded: LoadedSpace, eligible: Eligible, limit: number): boolean {
  if (eligible.visible === undefined && eligible.allowed === undefined) return true;
  const { size, count } = loaded.columns;
  let kept = 0;
  for (let place = 0; place < size; place++)
    if (loaded.isUsed(place) && isEligible(eligible, place)) kept += 1;
  return (kept / Math.max(1, count)) * MAX_IDS_ONLY >= needed(limit);
}

/**
 * Returns the cosines of candidates by place, and 0 for other places. Returns `null` if there are too few candidates, so the search must
 * compare all. `ns` are the keys from the store. `scanned` are the first keys of blocks with vectors that may be missing in the store.
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

/** Returns a memory with the neighbours in its session that lift its score. */
function withNeighbours({ columns }: LoadedSpace, n: number): number[] {
  const place = columns.placeOf(n);
  const places = place === undefined ? [] : around({ columns }, place);
  return [n, ...places.map((one) => columns.n[one] ?? n)];
}

function needed(limit: number): number {
  return Math.max(limit, NEEDED);
}
