/**
 * The spaces of an index: one for each embedder whose vectors it has. Searches use the active one. Pure.
 *
 * MEMSPACE-1  Vectors of two embedders are never in one space. A new embedder gets a new space, and the old one stays active until the
 *             new one has all memories and all vectors; then the old one is dropped.
 * MEMSPACE-2  Where no space can be read, the first one that has all memories is active, even before it has all vectors.
 */

/** Name and numbers of an embedder; `null` for an index without vectors. */
export type SpaceEmbedder = { id: string; dimensions: number } | null;

export interface Space {
  /** Never used again. */
  number: number;
  embedder: SpaceEmbedder;
  /** Memories up to this key are in it; `null` when all are. */
  filledTo: number | null;
}

/** A space whose vectors a store got, and the number of vectors of a row. */
export interface SentSpace {
  number: number;
  perRow: number;
}

/** The stored state of the spaces. */
export interface SpacesState {
  spaces: Space[];
  /** The space that searches use; `null` before one has all memories. */
  active: number | null;
  /** Spaces whose rows are to be deleted. */
  dropped: number[];
  /** The last number in use. */
  last: number;
  /** The space whose vectors the store of vectors gets, once there was one. */
  published?: number;
  /** Spaces that the store got and searches no longer use. It must forget all of their vectors. */
  withdrawn?: SentSpace[];
}

export const NO_SPACES: SpacesState = { spaces: [], active: null, dropped: [], last: 0 };

/** Returns the active space. */
export function activeSpace({ spaces, active }: SpacesState): Space | undefined {
  return spaces.find(({ number }) => number === active);
}

/** Returns the space of an embedder. */
export function spaceOf({ spaces }: SpacesState, embedder: SpaceEmbedder): Space | undefined {
  return spaces.find((space) => isEqual(space.embedder, embedder));
}

/**
 * Returns the state with a space for the embedder that is wanted. Spaces of others are dropped, except the active one. `isEmpty`: there
 * are no memories, so the new space is whole. No embedder (`null`) never replaces an index: it may be missing for a while only.
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

/** Returns the state after the space was filled up to a key, or wholly. `hasAllVectors`: none of its memories lacks one. */
export function filled(
  state: SpacesState,
  number: number,
  to: number | null,
  hasAllVectors: boolean,
): SpacesState {
  const spaces = state.spaces.map((space) => (space.number === number ? { ...space, filledTo: to } : space));
  return activated({ ...state, spaces }, number, hasAllVectors);
}

/** Returns the state in which the active space is the one that the store of vectors gets. */
export function publishing(state: SpacesState): SpacesState {
  return state.active === null ? state : { ...state, published: state.active };
}

/** Returns the state in which the store of vectors must forget the space that it got. */
export function withdrawing(state: SpacesState, space: SentSpace): SpacesState {
  const { published: _, withdrawn = [], ...others } = state;
  return { ...others, withdrawn: [...withdrawn, space] };
}

/** Returns the state without the spaces that cannot be read. */
export function unreadable(state: SpacesState, number: number): SpacesState {
  return {
    ...state,
    spaces: state.spaces.filter((space) => space.number !== number),
    active: state.active === number ? null : state.active,
    dropped: [...state.dropped, number],
  };
}

/** Makes a space active if it is whole, or if none is active and it has all memories. */
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
