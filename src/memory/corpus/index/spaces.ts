/**
 * The spaces of an index: one for each embedder. Searches use the active space. Pure.
 *
 * MEMSPACE-1  A space has vectors of one embedder only. A new embedder gets a new space. The old space stays active until the new space has
 *             all memories and all vectors. Then the old space is dropped.
 * MEMSPACE-2  If no space can be read, the first space with all memories becomes active, even before it has all vectors.
 */

/** Name and dimensions of an embedder. `null` for an index without vectors. */
export type SpaceEmbedder = { id: string; dimensions: number } | null;

export interface Space {
  /** Never reused. */
  number: number;
  embedder: SpaceEmbedder;
  /** Memories up to this key are in the space. `null` if all are. */
  filledTo: number | null;
}

/** A space with vectors in a store, and the number of vectors per row. */
export interface SentSpace {
  number: number;
  perRow: number;
}

export interface SpacesState {
  spaces: Space[];
  /** The space that searches use. `null` before a space has all memories. */
  active: number | null;
  dropped: number[];
  last: number;
  /** The space that the vector store receives, if any. */
  published?: number;
  /** Spaces that the store received and searches no longer use. The store must delete all their vectors. */
  withdrawn?: SentSpace[];
}

export const NO_SPACES: SpacesState = { spaces: [], active: null, dropped: [], last: 0 };

export function activeSpace({ spaces, active }: SpacesState): Space | undefined {
  return spaces.find(({ number }) => number === active);
}

export function spaceOf({ spaces }: SpacesState, embedder: SpaceEmbedder): Space | undefined {
  return spaces.find((space) => isEqual(space.embedder, embedder));
}

/**
 * Returns the state with a space for the wanted embedder. Drops other spaces except the active space. With `isEmpty` there are no memories,
 * so the new space is complete. A missing embedder (`null`) never replaces an index, because it may be missing only temporarily.
 */
export function wanting(state: SpacesState, embedder: SpaceEmbedder, isEmpty: boolean): SpacesState {
  if (embedder === null && state.spaces.length > 0) return state;
  const kept = state.spaces.filter(
    (space) => space.number === state.active || isEqual(space.embedder, embedder),
  );
  const dropped = state.spaces.filter((space) => !kept.includes(space)).map(({ number }) => number);
  const next = { ...state, spaces: kept, dropped: [...state.dropped, ...dropped] };
  if (spaceOf(next, embedder) !== undefined) return dropped.length === 0 ? state : next;
  const space: Space = { number: state.last + 1, embedder, filledTo: isEmpty ? null : 0 };
  return activated({ ...next, last: space.number, spaces: [...kept, space] }, space.number, isEmpty);
}

/** Returns the state after the space was filled up to a key, or completely. `hasAllVectors` reports whether all its memories have vectors. */
export function filled(
  state: SpacesState,
  number: number,
  to: number | null,
  hasAllVectors: boolean,
): SpacesState {
  const spaces = state.spaces.map((space) => (space.number === number ? { ...space, filledTo: to } : space));
  return activated({ ...state, spaces }, number, hasAllVectors);
}

export function publishing(state: SpacesState): SpacesState {
  return state.active === null ? state : { ...state, published: state.active };
}

/** Returns the state in which the vector store must delete a space that it received. */
export function withdrawing(state: SpacesState, space: SentSpace): SpacesState {
  const { published: _, withdrawn = [], ...others } = state;
  return { ...others, withdrawn: [...withdrawn, space] };
}

/** Returns the state without a space that cannot be read. */
export function unreadable(state: SpacesState, number: number): SpacesState {
  return {
    ...state,
    spaces: state.spaces.filter((space) => space.number !== number),
    active: state.active === number ? null : state.active,
    dropped: [...state.dropped, number],
  };
}

/** Activates a space if it is complete, or if no space is active and it has all memories. */
function activated(state: SpacesState, number: number, hasAllVectors: boolean): SpacesState {
  const space = state.spaces.find((one) => one.number === number);
  if (space === undefined || space.filledTo !== null || state.active === number) return state;
  if (activeSpace(state) !== undefined && !hasAllVectors) return state;
  const others = state.spaces.filter((one) => one !== space).map((one) => one.number);
  return { ...state, spaces: [space], active: number, dropped: [...state.dropped, ...others] };
}

function isEqual(one: SpaceEmbedder, other: SpaceEmbedder): boolean {
  return one?.id === other?.id && one?.dimensions === other?.dimensions;
}
