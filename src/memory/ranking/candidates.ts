/** Selects the memories to score for a query: all of few, or the best of many. Pure. */
import { NONE } from "./columns.ts";
import { largest } from "./largest.ts";
import type { RankInput } from "./rank-input.ts";

/** Up to this many memories, all are scored. */
const SCORE_ALL = 20_000;

/** Of more memories, the nearest by words and by meaning are scored, with their neighbours. */
const LEXICAL_CANDIDATES = 400;
const SEMANTIC_CANDIDATES = 400;

/** Offsets of neighbouring turns that are also candidates. */
const AROUND = [1, -1, 2, -2, 3, -3];

export interface Candidates {
  places: readonly number[];
  indexOf(place: number): number | undefined;
}

export function candidatesOf(input: RankInput): Candidates {
  const places = seenSize(input) <= SCORE_ALL ? everyPlace(input) : bestPlaces(input);
  const indexes = new Int32Array(input.columns.size).fill(NONE);
  for (const [index, place] of places.entries()) indexes[place] = index;
  const indexOf = (place: number) => {
    const index = indexes[place] ?? NONE;
    return index === NONE ? undefined : index;
  };
  return { places, indexOf };
}

function seenSize({ columns, visible }: RankInput): number {
  return visible === undefined ? columns.size : visible.reduce((sum, one) => sum + one, 0);
}

function everyPlace(input: RankInput): number[] {
  const places: number[] = [];
  for (let place = 0; place < input.columns.size; place++) if (isSeen(input, place)) places.push(place);
  return places;
}

function bestPlaces(input: RankInput): number[] {
  const found = new Set(bestByWords(input));
  for (const place of bestByMeaning(input)) found.add(place);
  for (const place of [...found]) for (const neighbour of around(input, place)) found.add(neighbour);
  return [...found];
}

function bestByWords(input: RankInput): number[] {
  const { matches } = input.lexical;
  const places = new Int32Array(matches.length);
  const scores = new Float64Array(matches.length);
  for (const [index, { n, score }] of matches.entries()) {
    const place = input.columns.placeOf(n) ?? NONE;
    if (place === NONE || !isSeen(input, place)) continue;
    places[index] = place;
    scores[index] = score;
  }
  return largest(scores, LEXICAL_CANDIDATES).map((index) => places[index] ?? NONE);
}

/** Gives hidden memories no cosine, so they cannot displace visible memories. */
function bestByMeaning({ columns: { n, size }, visible, semantic }: RankInput): number[] {
  if (semantic === undefined) return [];
  const cosines = new Float64Array(semantic);
  for (let place = 0; place < size; place++)
    if (n[place] === NONE || visible?.[place] === 0) cosines[place] = 0;
  return largest(cosines, SEMANTIC_CANDIDATES);
}

export function around(input: Pick<RankInput, "columns" | "visible">, place: number): readonly number[] {
  const places: number[] = [];
  for (const away of AROUND) {
    const neighbour = neighbourOf(input, place, away);
    if (neighbour !== undefined) places.push(neighbour);
  }
  return places;
}

/** Returns the memory at an offset of visible turns from a place in its session. A negative offset means earlier. */
export function neighbourOf(
  { columns, visible }: Pick<RankInput, "columns" | "visible">,
  place: number,
  away: number,
): number | undefined {
  const start = columns.indexInSession(place);
  if (start === NONE) return undefined;
  const places = columns.sessionPlaces(columns.session[place] ?? NONE);
  const step = Math.sign(away);
  let left = Math.abs(away);
  for (let index = start + step; index >= 0 && index < places.length; index += step) {
    const neighbour = places[index] ?? NONE;
    if (visible?.[neighbour] !== 0) left -= 1;
    if (left === 0) return neighbour;
  }
  return undefined;
}

function isSeen({ columns, visible }: RankInput, place: number): boolean {
  return columns.n[place] !== NONE && visible?.[place] !== 0;
}
