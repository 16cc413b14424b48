/** Finds similar ids: equal except for their spelling, or similar enough that an author may have meant the other id. */

/** Maximum number of ids in an error. */
export const MAX_LISTED_IDS = 20;

/** Returns an id in a form without case, and with `-` for `_`. */
export function foldedId(id: string): string {
  return id.toLowerCase().replaceAll("_", "-");
}

/** Returns at most `limit` ids for an error. The ids most similar to `wanted` come first. Equally similar ids keep their order. */
export function listIds(wanted: string, ids: readonly string[], limit = MAX_LISTED_IDS): string {
  return idLister(ids, limit)(wanted);
}

/** Returns `listIds` for these ids. Use it for several errors: it takes the ids apart once, for the first error. */
export function idLister(ids: readonly string[], limit = MAX_LISTED_IDS): (wanted: string) => string {
  let known: Known[] | undefined;
  return (wanted) => {
    if (ids.length === 0) return "none";
    known ??= knownOf(ids);
    const listed = ranked(wanted, known, limit).map(({ id }) => id);
    return [...listed, ...(ids.length > limit ? ["and more"] : [])].join(", ");
  };
}

/** The lowest similarity of a name that an author may have meant. */
const SIMILAR = 0.7;

/** Returns the question for the most similar name, with a space before it; empty if no name is similar. */
export function didYouMean(wanted: string, names: readonly string[]): string {
  const meant = similarId(wanted, names);
  return meant === undefined ? "" : ` Did you mean "${meant}"?`;
}

/** Returns the most similar id, if its similarity is above `least`. */
export function similarId(wanted: string, ids: readonly string[], least = SIMILAR): string | undefined {
  const [first] = ranked(wanted, knownOf(ids), 1);
  return first !== undefined && first.alike > least ? first.id : undefined;
}

interface Known {
  id: string;
  pieces: ReadonlySet<string>;
}

function knownOf(ids: readonly string[]): Known[] {
  return ids.map((id) => ({ id, pieces: piecesOf(id) }));
}

function ranked(wanted: string, known: readonly Known[], limit: number): { id: string; alike: number }[] {
  const own = piecesOf(wanted);
  return known
    .map(({ id, pieces }) => ({ id, alike: similarity(own, pieces) }))
    .sort((one, other) => other.alike - one.alike)
    .slice(0, limit);
}

/** Returns the characters and the pairs of neighbours. Swapped letters keep all characters. Other typing errors keep most of both. */
export function piecesOf(id: string): Set<string> {
  const characters = [...foldedId(id)];
  return new Set([...characters, ...characters.slice(1).map((next, at) => `${characters[at]}${next}`)]);
}

/** Returns the share of common pieces, from 0 to 1 for equal sets. */
export function similarity(one: ReadonlySet<string>, other: ReadonlySet<string>): number {
  const common = [...one].filter((piece) => other.has(piece)).length;
  return (2 * common) / Math.max(1, one.size + other.size);
}
